"""Floor 2: the first IR. Nodes over typed values in SSA form, close to ONNX, without memory."""
