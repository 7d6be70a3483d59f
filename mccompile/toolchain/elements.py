"""Elements of tensors as they lie in C memory, and back into numpy."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from mccompile.base.dtypes import DType

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def to_bytes(array: np.ndarray, dtype: DType) -> bytes:
    """The elements as they lie in C memory: dense, row-major, packed if narrower than a byte."""
    dense = np.ascontiguousarray(array).reshape(-1)
    if not dtype.is_packed:
        return bytes(dense.view(np.uint8))
    per_byte = 8 // dtype.bits
    codes = np.zeros(dtype.nbytes(dense.size) * per_byte, np.uint8)
    codes[: dense.size] = dense.view(np.uint8) & ((1 << dtype.bits) - 1)
    shifted = codes.reshape(-1, per_byte) << (np.arange(per_byte, dtype=np.uint8) * dtype.bits)
    packed: Bytes = np.bitwise_or.reduce(shifted, axis=1).astype(np.uint8)
    return packed.tobytes()


def from_bytes(content: bytes, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """The opposite of `to_bytes`."""
    if not dtype.is_packed:
        return np.frombuffer(content, dtype.numpy).reshape(shape).copy()
    per_byte = 8 // dtype.bits
    packed = np.frombuffer(content, np.uint8).reshape(-1, 1)
    codes = (packed >> (np.arange(per_byte, dtype=np.uint8) * dtype.bits)) & ((1 << dtype.bits) - 1)
    codes = codes.reshape(-1)[: prod(shape)].reshape(shape)
    if dtype.kind == "float":
        return codes.astype(np.uint8).view(dtype.numpy)
    sign = (1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return ((codes ^ sign).astype(np.int8) - np.int8(sign)).astype(dtype.numpy)


_DESCRIPTOR = struct.Struct("<QI4x")  # mcc_string where pointers have 64 bits


def descriptors(texts: Sequence[bytes], place: int) -> tuple[bytes, int]:
    """Strings as they lie in C memory, for texts that lie one after the other from address `place` on; and where the
    next text goes."""
    rows = []
    for text in texts:
        rows.append(_DESCRIPTOR.pack(place, len(text)))
        place += len(text)
    return b"".join(rows), place


def read_strings(content: bytes, text: Callable[[int, int], bytes]) -> np.ndarray:
    """The opposite: a vector of str. `text` reads bytes at an address."""
    found = [text(*_DESCRIPTOR.unpack_from(content, start)) for start in range(0, len(content), _DESCRIPTOR.size)]
    strings = np.empty(len(found), dtype=object)
    strings[:] = [each.decode(errors="surrogateescape") for each in found]
    return strings
