"""Constant tensors: typed, lazy, and memory-mapped where they come from a file.

Invariant: the array behind a `Constant` never changes; `digest` names its type and contents. Nothing is read before
`array` or `digest` is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np

from . import dtypes
from .tensor import TensorType


def encoded(array: np.ndarray) -> list[bytes]:
    """The strings of an array as UTF-8, in row-major order; bytes are taken as they are."""
    flat = array.reshape(-1).tolist()
    return [text if isinstance(text, bytes) else str(text).encode(errors="surrogateescape") for text in flat]


class Constant:
    def __init__(
        self, type: TensorType, load: Callable[[], np.ndarray], origin: tuple[Constant, Constant] | None = None
    ) -> None:
        self.type = type
        self.origin = origin  # integers and scales whose products these are; see `fold_dequantized`
        self._load = load

    @staticmethod
    def of(array: np.ndarray) -> Constant:
        value = np.asarray(array)
        value.setflags(write=False)
        return Constant(TensorType(dtypes.of_array(value), tuple(int(n) for n in value.shape)), lambda: value)

    @staticmethod
    def mapped(type: TensorType, path: Path, offset: int) -> Constant:
        """A tensor that lies in a file, unpacked and in this machine's byte order."""
        shape = type.static_shape

        def load() -> np.ndarray:
            if 0 in shape:
                return np.zeros(shape, type.dtype.numpy)
            return np.memmap(path, type.dtype.numpy, "r", offset, shape)

        return Constant(type, load)

    @cached_property
    def array(self) -> np.ndarray:
        return self._load()

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that stand for type and contents."""
        sha = hashlib.sha256(str(self.type).encode())
        sha.update(self.raw_bytes())
        return sha.hexdigest()[:16]

    def raw_bytes(self) -> bytes:
        """Contents in row-major order, elements little-endian and unpacked; strings as length and text."""
        if self.type.dtype.kind == "string":
            return b"".join(len(text).to_bytes(4, "little") + text for text in encoded(self.array))
        array = np.ascontiguousarray(self.array)
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
