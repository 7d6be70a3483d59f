"""tile_columns: parts of the graph are computed in strips of columns, one after the other."""
