"""What operators share: rules for types, shapes, windows and loops. No operator is defined here.

In: types, shapes and windows of operands.
Out: those of results, and loops over sizes at run time.
First: `elementwise.py`.
"""
