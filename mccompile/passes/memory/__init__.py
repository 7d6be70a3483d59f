"""What shares memory: results in place of operands, in parts of others, states, lifetimes; and the judge of it all."""
