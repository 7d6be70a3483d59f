"""Boards and chips by the names that people use. One TOML file per maker, read by `catalogue`.

In: a name.
Out: a board: its core, RAM and flash.
First: `catalogue.py`.
"""
