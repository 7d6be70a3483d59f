"""Two memories, where steps work only in one: which tensors are stored in the other, and how their rows are copied.

In: an ordered program, and bytes of each memory.
Out: the runs of calls to join, and where every tensor lies.
First: `route.py`.
"""
