"""Floor 1: the judge, an evaluator of ONNX models in real arithmetic, written from the standard's words.

Floats are computed in float64, integers are exact. Nothing of it comes from onnx's reference evaluator or from what the
compiler does with an operator, so it can be held against either. A family of operators is one file in `operators/`.

In: an ONNX model and inputs.
Out: outputs in real arithmetic.
First: `run.py`.
"""
