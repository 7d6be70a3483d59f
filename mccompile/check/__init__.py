"""Floor 8: what a model should compute, on which inputs, and how far results are from it.

In: a graph or an ONNX file, and results of its code.
Out: inputs to try, results to expect, and a verdict on those that came.
First: `compare.py`; `oracle.py` runs the reference.
"""
