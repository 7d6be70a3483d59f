"""Floor 2: the computations that kernels implement, one file each.

In: nothing; operators make calls of them when they are lowered.
Out: parameters, roles of operands, what a part of a result reads.
First: `api.py`, then `pool.py`.
"""
