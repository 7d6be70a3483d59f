"""Passes over the Program IR, one file each; pipeline.py has their order.

In: a program.
Out: the same program, changed in place.
First: `fuse.py`; `select_kernels.py` chooses kernels.
"""
