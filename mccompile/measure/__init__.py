"""Floor 11: what a compiled model does on this machine. Results against the reference, layer by layer; time later."""
