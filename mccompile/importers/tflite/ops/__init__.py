"""One file per operator of TFLite, or family of them: each writes itself out as ONNX."""
