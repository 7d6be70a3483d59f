"""Two memories, of which steps work in one: which tensors lie in the other, and how their rows come and go.

In: an ordered program, and bytes of each memory.
Out: the runs of calls to join, and where every tensor lies.
First: `route.py`.
"""
