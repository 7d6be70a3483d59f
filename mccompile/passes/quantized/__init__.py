"""Quantized tensors in exact numbers, and the fixed point that rounds them."""
