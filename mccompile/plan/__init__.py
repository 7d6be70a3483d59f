"""Floor 5: the third IR. Steps with addresses: all that is left to decide is how to spell it in C.

In: a program, and a place for every buffer.
Out: steps that `emit` prints.
First: `ir.py`.
"""
