"""How many instructions a function of a linked program takes at most, by abstract execution of its machine code.

In: a program for Cortex-M and the name of a function.
Out: a bound, or what has none.
First: `program.py`.
"""
