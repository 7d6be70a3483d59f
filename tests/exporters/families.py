"""All families: importing this fills `spelling.FAMILIES`."""

from . import attention, canonical, early, quantized

__all__ = ["attention", "canonical", "early", "quantized"]
