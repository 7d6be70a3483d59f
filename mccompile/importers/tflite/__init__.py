"""TensorFlow Lite files: read without TensorFlow, decomposed into ONNX operators.

In: the bytes of a .tflite file.
Out: an ONNX model, quantized tensors among that.
First: `importer.py`, then `convert.py`.
"""
