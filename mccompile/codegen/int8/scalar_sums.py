"""What conv and gemm of 8-bit integers share on cores without SIMD: the packed operands of mcc_scalar*.h, and the
types and names of functions that their templates call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...base.dtypes import i32
from ...kernels.api import Call
from .dot import pack_unsigned, rescaling_in, with_biases
from .two_parts import READ_UNSIGNED, in_two_parts


def packed_sums(
    call: Call,
    rows: np.ndarray,
    values: np.ndarray,
    parts: int,
    pack: Callable[[np.ndarray], np.ndarray] = pack_unsigned,
    read: tuple[int, int] = READ_UNSIGNED,
    lanes: int = 4,
) -> Mapping[int, np.ndarray]:
    """The weights of each channel (`rows`), and biases and factors (`values`): behind the weights where sums are stored
    as they are, else in the tables of the epilogue, where so many channels (`lanes`) are rescaled alike."""
    found = rescaling_in(call)
    if found is None:
        return {1: with_biases(pack(rows), values)}
    if parts:
        values = in_two_parts(values, rows, read, found, lanes)
    return {1: pack(rows), **dict.fromkeys(found.tables, np.ascontiguousarray(values.T))}


def sums_context(call: Call, parts: int) -> dict[str, Any]:
    found, dtype = rescaling_in(call), call.ins[0].buffer.dtype
    result = found.dtype if found else i32
    return {
        "type": dtype.name,
        "y_type": result.name,
        "y_c_type": result.storage_c,
        "shift": found.shift if found else 0,
        "totals": found is None,
        "dot": "parts2x4" if parts else "dot2x4",
    }
