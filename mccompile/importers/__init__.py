"""Files of other formats as ONNX models in memory. One folder per format; the frontend sees only ONNX.

In: a file or an object of another tool.
Out: an ONNX model in memory.
First: `api.py`, then `registry.py`.
"""
