"""drop_channels: channels that never vary, or that nobody reads, are not computed.

In: a graph.
Out: the graph with narrower tensors.
First: `drop_channels.py`.
"""
