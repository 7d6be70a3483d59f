"""Accelerators: what computes regions of a graph in place of the core, a folder with `backend.py` for each.

In: units of a graph, which are taken or not, and regions of them.
Out: the C of a region, its constants, workspace and cycles.
First: `api.py`, the contract.
"""
