"""Graphs that learn: gradients as ordinary nodes.

In: a graph and a loss.
Out: a graph with gradients and an optimizer.
First: `gradients.py`.
"""
