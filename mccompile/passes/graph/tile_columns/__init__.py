"""tile_columns: parts of the graph are computed in tiles of columns, one after the other.

In: a graph, and the tiles that the driver asks for.
Out: the graph with a copy of its nodes for each tile.
First: `tile_columns.py`.
"""
