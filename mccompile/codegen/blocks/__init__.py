"""Weights of few bits in blocks: how they are packed, and unpacked in vectors.

In: weights of few bits, as ONNX packs them.
Out: their bytes in the order of a kernel, and C that unpacks them.
First: `block_weights.py`.
"""
