"""Floor 9: float models into models with integers, as ONNX files that the rest of the compiler reads like any other.

In: a float graph, samples, and a recipe.
Out: an ONNX file with integers.
First: `quantize.py`.
"""
