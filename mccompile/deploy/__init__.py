"""Projects of ecosystems: a model compiled for a board, with a program around it that is built and flashed as it is.

In: a model with its options, which name a board; an ecosystem; what the program is to do.
Out: the files of a folder.
First: `projects.py`; a folder in `ecosystems/` is all that an ecosystem is, one in `mains/` all that a program is.
"""
