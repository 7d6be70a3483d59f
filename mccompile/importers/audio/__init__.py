"""Audio front ends written as ONNX models: from samples to the features that networks are trained on.

In: a recipe of features, such as mel bands.
Out: an ONNX model from samples to features.
First: `recipe.py`, then `build_model.py`.
"""
