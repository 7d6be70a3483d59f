"""Decoders of language models: what their files say as one description, and that as an ONNX model.

In: a folder of Hugging Face, or a GGUF file.
Out: an ONNX model with its cache as states.
First: `description.py`, then `as_onnx.py`.
"""
