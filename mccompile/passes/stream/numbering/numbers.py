"""Numbers of elements: hashes of 64 bits, in arrays of numpy whose first axis counts pushes (or is 1).

Sums are linear in 2^64 with odd factors, one for each place, so that they go along one axis after the other; `mixed`
stands between any two of them. Two different terms get one number about once in 2^64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mixed(x: Numbers) -> Numbers:
    """The finalizer of SplitMix64: a bijection that leaves nothing of sums."""
    made = x ^ (x >> np.uint64(30))
    made *= _FIRST
    made ^= made >> np.uint64(27)
    made *= _SECOND
    made ^= made >> np.uint64(31)
    return made


@lru_cache(maxsize=4096)
def named(text: str) -> Numbers:
    """The number of a name."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.frombuffer(digest, np.uint64).reshape(())


@lru_cache(maxsize=1024)
def factors(count: int, name: str) -> Numbers:
    """One odd factor for each place."""
    found = mixed(np.arange(count, dtype=np.uint64) + named(name).reshape(1)) | np.uint64(1)
    found.setflags(write=False)
    return found


def of_values(array: np.ndarray) -> Numbers:
    """Those of known elements: one for each value of a type."""
    if array.dtype.hasobject or array.dtype.itemsize not in (1, 2, 4, 8):
        texts = [f"{array.dtype}: {each!r}" for each in array.reshape(-1).tolist()]
        return np.array([named(text) for text in texts], np.uint64).reshape(array.shape)
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64).reshape(array.shape)
    return mixed(bits + named(str(array.dtype)).reshape((1,) * max(array.ndim, 1))).reshape(array.shape)


def summed(x: Numbers, axes: Sequence[int], name: str, keep: bool = False) -> Numbers:
    """What stands along `axes`, in order. Which axes they are says nothing: batches of matrices may be one tall one."""
    for place, axis in reversed(list(enumerate(sorted(axes)))):
        moved = np.moveaxis(x, axis, -1)
        x = np.einsum("...i,i->...", moved, factors(moved.shape[-1], f"{name} {place}"))
        if keep:
            x = np.expand_dims(x, axis)
    return x


def joined(name: str, *parts: Numbers) -> Numbers:
    """Of something called `name` that is computed element by element from parts, which broadcast."""
    total = named(name).reshape((1,) * max((part.ndim for part in parts), default=1))
    for factor, part in zip(factors(len(parts), "parts"), parts, strict=True):
        total = total + part * factor
    return mixed(total)


def places(shape: Sequence[int], axes: Sequence[int], name: str) -> Numbers:
    """A number for each place along `axes` of arrays of this shape, which broadcasts to it."""
    found = np.zeros((1,) * len(shape), np.uint64)
    for axis in axes:
        across = [-1 if each == axis else 1 for each in range(len(shape))]
        found = mixed(found + factors(shape[axis], f"{name} {axis}").reshape(across))
    return found
