"""Models for programs in other languages than C.

In: what a plan says of inputs and outputs.
Out: a file for each language that is asked for.
First: `registry.py`.
"""
