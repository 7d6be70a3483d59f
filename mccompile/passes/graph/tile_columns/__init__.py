"""tile_columns: parts of the graph are computed in strips of columns, one after the other.

In: a graph, and the strips that the driver asks for.
Out: the graph with a copy of its nodes for each strip.
First: `tile_columns.py`.
"""
