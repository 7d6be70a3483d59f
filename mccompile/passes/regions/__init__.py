"""Regions of a graph that an accelerator computes: its units, which of them go together, and whether that pays.

In: a graph before its quantized operators are lowered.
Out: the graph with one node in place of each region.
First: `partition.py`.
"""
