"""mccompile: compiles trained ONNX networks, ahead of time, into plain C99."""

__version__ = "0.1.0"
