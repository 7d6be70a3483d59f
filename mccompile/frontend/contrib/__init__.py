"""Operators of other domains, one file each; found by folder (contributed.py).

In: a node of another domain.
Out: nodes of ONNX that compute the same.
First: `gelu.py`, one of the shortest.
"""
