"""Boards and chips by the names that people use. One TOML file per maker, read by `catalogue`."""
