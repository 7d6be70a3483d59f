"""Floor 1: typed scalar expressions; one tree, printed as scalar C or evaluated in numpy.

In: numbers, operands and functions of them.
Out: an expression: printed as C, as C over vectors, or evaluated.
First: `ir.py`; `scalar_c.py` prints.
"""
