"""Passes over graphs: each improves a graph in place and keeps every node's provenance.

In: a graph.
Out: the same graph, changed in place.
First: `fuse_pad.py`.
"""
