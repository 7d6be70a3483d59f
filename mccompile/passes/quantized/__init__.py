"""Quantized tensors in exact numbers, and the fixed-point arithmetic that rounds them.

In: scales, zero points and ranges.
Out: integers that multiply and shift.
First: `fixed_point.py`.
"""
