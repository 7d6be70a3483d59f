"""All families: importing this fills `spelling.FAMILIES`."""

from . import attention, canonical, detectors, early, graphs, loops, qonnx, quantized, quantized_operators

__all__ = [
    "attention", "canonical", "detectors", "early", "graphs", "loops", "qonnx", "quantized", "quantized_operators",
]  # fmt: skip
