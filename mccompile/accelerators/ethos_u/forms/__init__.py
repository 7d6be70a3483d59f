"""Operators as TFLite has them, a file for each family; importing the package registers all.

In: a unit of the graph, with its scales.
Out: why it has no form, or its operators in a TFLite file.
First: `families.py`.
"""

from . import channels, dense, means, moves, pairs, softmax, tables, transposed, windows

__all__ = ["channels", "dense", "means", "moves", "pairs", "softmax", "tables", "transposed", "windows"]
