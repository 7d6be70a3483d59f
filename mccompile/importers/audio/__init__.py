"""Audio front ends written as ONNX models: from samples to the features that networks are trained on."""
