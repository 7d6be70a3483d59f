"""Decoders of language models: what their files say as one description, and that as an ONNX model."""
