"""Floor 6: between ONNX files and graphs, and onnx's own evaluator."""
