"""The operators, one file per family; found by folder.

In: operands in real numbers.
Out: results in real numbers.
First: `elementwise.py`.
"""
