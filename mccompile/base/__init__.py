"""Floor 0: words that every other floor uses. Imports nothing of mccompile.

In: nothing.
Out: errors, names, types of elements, shapes, constants and texts, for all floors.
First: `errors.py`.
"""
