"""move_gather: elements of an axis are taken before a product, not after.

In: a graph.
Out: the graph with smaller products.
First: `move_gather.py`; `operand_axes.py` has the operators.
"""
