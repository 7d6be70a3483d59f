"""merge_parallel: convolutions and products over one input become one.

In: a graph with branches over one value.
Out: one operator for them, and views of its result.
First: `merge_parallel.py`.
"""
