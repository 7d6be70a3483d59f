"""Floor 5: C that several kernels write: loops, tiles, vectors, sums. Kernels use it; nothing here knows a kernel.

In: the sizes, strides and element types of a call.
Out: loops, tiles and sums that templates of kernels print.
First: `loops.py`; `tiles.py` for sums in registers.
"""
