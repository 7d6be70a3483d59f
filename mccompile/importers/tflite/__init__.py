"""TensorFlow Lite files: read without TensorFlow, decomposed into ONNX operators."""
