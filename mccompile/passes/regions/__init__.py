"""Regions of a graph that an accelerator computes: the units of the graph, which units form a region, and whether the
region pays.

In: a graph before its quantized operators are lowered.
Out: the graph with one node in place of each region.
First: `partition.py`.
"""
