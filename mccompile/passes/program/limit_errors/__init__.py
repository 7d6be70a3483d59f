"""limit_errors: products are computed more exactly where their rounding errors would grow.

In: products of floats, their weights, and what outputs may be off.
Out: products that round less.
First: `limit_errors.py`.
"""
