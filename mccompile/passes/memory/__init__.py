"""Which buffers share memory: results in place of operands or in parts of other buffers, states, lifetimes; and the
verifier of all this.

In: a program over views of buffers.
Out: which buffers may lie in one place, and how long each lives.
First: `liveness.py`.
"""
