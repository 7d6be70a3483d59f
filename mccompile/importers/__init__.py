"""Files of other formats as ONNX models in memory. One folder per format; the frontend sees only ONNX."""
