"""Files of safetensors: a head in JSON that says where each tensor lies, and the tensors.

Invariant: no byte outside of the file is looked at, and no tensor is read before it is wanted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from .config import damaged, unsupported
from .weights import Weight

_LARGEST_HEAD = 100_000_000  # as safetensors has it
_TYPES: dict[str, tuple[type[np.generic], int]] = {
    "F64": (np.float64, 8),
    "F32": (np.float32, 4),
    "F16": (np.float16, 2),
    "BF16": (np.uint16, 2),
}


def tensors(path: Path) -> dict[str, Weight]:
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    size = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or size > min(_LARGEST_HEAD, len(data) - 8):
        raise damaged(f"{path.name} has {len(data)} bytes, and its head {size}")
    head = parsed(data[8 : 8 + size].tobytes(), path.name)
    return {name: _tensor(name, entry, data[8 + size :]) for name, entry in head.items() if name != "__metadata__"}


def parsed(data: bytes, name: str) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(f"{name} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise damaged(f"{name} has no object of JSON")
    return found


def _tensor(name: str, entry: Any, data: np.ndarray) -> Weight:
    if not isinstance(entry, dict):
        raise damaged(f"tensor {name[:80]!r} has no description")
    kind, shape, place = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not (isinstance(kind, str) and _counts(shape) and _counts(place)) or len(place or ()) != 2:
        raise damaged(f"tensor {name[:80]!r} has no type, shape or place")

    def read() -> np.ndarray:
        if kind not in _TYPES:
            raise unsupported(f"tensor {name} has elements {kind[:20]}; what is known: {', '.join(_TYPES)}")
        dtype, width = _TYPES[kind]
        begin, end = place
        if not begin <= end <= len(data) or prod(shape) * width != end - begin:
            raise damaged(f"tensor {name} of {shape} lies at {begin}..{end} of {len(data)} bytes")
        return widened(data[begin:end].view(dtype), kind == "BF16").reshape(shape)

    return Weight(name, tuple(shape), partial(read))


def widened(array: np.ndarray, is_bf16: bool = False) -> np.ndarray:
    """As floats of 32 bits, of which bfloat16 is the upper half."""
    if is_bf16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _counts(found: object) -> TypeGuard[list[int]]:
    return isinstance(found, list) and all(type(each) is int and each >= 0 for each in found)
