"""What shares memory: results in place of operands, in parts of others, states, lifetimes; and the judge of it all.

In: a program over views of buffers.
Out: which buffers may lie in one place, and how long each lives.
First: `liveness.py`.
"""
