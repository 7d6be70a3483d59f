"""limit_errors: products are made more exactly where their rounding errors would grow."""
