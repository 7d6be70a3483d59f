"""Floor 5: one file per ONNX operator or tight family: versions, attributes, type rule, layout behaviour, lowering.

In: nodes of ONNX with attributes.
Out: types of their results, and calls of kinds when they are lowered.
First: `api.py`, then `bit_cast.py`.
"""
