"""Floor 9: float models into models with integers, as ONNX files that the rest of the compiler reads like any other."""
