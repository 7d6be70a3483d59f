"""Floor 5: between ONNX files and graphs, and onnx's own evaluator."""
