"""Floor 3: the second IR. Kernels over buffers, in order, without addresses.

In: calls that lowering makes.
Out: a program that passes change, and `verify.py` checks.
First: `ir.py`.
"""
