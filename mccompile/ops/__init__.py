"""Floor 5: one file per ONNX operator or tight family: versions, attributes, type rule, layout behaviour, lowering."""
