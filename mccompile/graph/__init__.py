"""Floor 2: the first IR. Nodes over typed values in SSA form, close to ONNX, without memory.

In: nodes and values that the frontend adds.
Out: a graph that passes change, and `verify.py` checks.
First: `ir.py`.
"""
