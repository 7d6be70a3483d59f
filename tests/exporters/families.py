"""All families: importing this fills `spelling.FAMILIES`."""

from . import attention, early

__all__ = ["attention", "early"]
