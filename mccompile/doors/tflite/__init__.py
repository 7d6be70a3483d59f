"""TensorFlow Lite files: read without TensorFlow, written out as ONNX operators."""
