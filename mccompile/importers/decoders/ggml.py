"""Weights as GGML lays them out: blocks of 32 or 256 elements along a row, as levels, scales and offsets.

Invariant: levels are those of the file, and each product of scales that a file keeps apart is exact in float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.records import dataclass
from . import ggml_grids
from .ggml_grids import Parts
from .safetensors import widened
from .weights import Blocks

_K = 256  # elements of the larger blocks
_NONLINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
_FLOATS_4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)  # twice e2m1


@dataclass(frozen=True)
class Form:
    """How a type of GGML is stored."""

    name: str
    elements: int  # of a block
    width: int  # bytes of a block
    unpack: Callable[[np.ndarray], Parts] | None = None  # of [blocks, width] bytes; None: floats


def stored(form: Form, data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | Blocks:
    """The bytes of a tensor, which have been checked to be as many as they must."""
    if form.unpack is None:
        kind = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "F64": np.float64}[form.name]
        return widened(data.view(kind), form.name == "BF16").reshape(shape)
    levels, bits, scales, offsets = form.unpack(data.reshape(-1, form.width))
    rows = int(np.prod(shape[:-1]))
    columns = shape[-1]
    cut = None if offsets is None else offsets.reshape(rows, -1)
    return Blocks(levels.reshape(rows, columns), bits, scales.reshape(rows, -1), cut)


def _half(data: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(data).view(np.float16).astype(np.float32)


def _nibbles(data: np.ndarray) -> np.ndarray:
    """Lower halves, then upper ones."""
    return np.concatenate([data & 15, data >> 4], -1)


def _q4_0(b: np.ndarray) -> Parts:
    return _nibbles(b[:, 2:]).astype(np.int8) - np.int8(8), 4, _half(b[:, :2]), None


def _q4_1(b: np.ndarray) -> Parts:
    return _nibbles(b[:, 4:]), 4, _half(b[:, :2]), _half(b[:, 2:4])


def _fifth(data: np.ndarray) -> np.ndarray:
    """The highest bit of 32 levels."""
    return np.unpackbits(np.ascontiguousarray(data), axis=-1, bitorder="little") << 4


def _q5_0(b: np.ndarray) -> Parts:
    levels = _nibbles(b[:, 6:]) | _fifth(b[:, 2:6])
    return levels.astype(np.int8) - np.int8(16), 8, _half(b[:, :2]), None


def _q5_1(b: np.ndarray) -> Parts:
    levels = _nibbles(b[:, 8:]) | _fifth(b[:, 4:8])
    return levels, 8, _half(b[:, :2]), _half(b[:, 2:4])


def _q8_0(b: np.ndarray) -> Parts:
    return np.ascontiguousarray(b[:, 2:]).view(np.int8), 8, _half(b[:, :2]), None


def _six_bits(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eight scales and eight minima of 6 bits in 12 bytes."""
    low, middle, high = b[:, :4], b[:, 4:8], b[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], -1)
    minima = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], -1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _with_minima(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales, minima = _six_bits(b[:, 4:16])
    return _half(b[:, :2]) * scales, -_half(b[:, 2:4]) * minima


def _q4_k(b: np.ndarray) -> Parts:
    levels = _nibbles(b[:, 16:].reshape(-1, 4, 32))
    return levels, 4, *_with_minima(b)


def _q5_k(b: np.ndarray) -> Parts:
    fifths = b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    levels = _nibbles(b[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32) | fifths << 4
    return levels, 8, *_with_minima(b)


def _q6_k(b: np.ndarray) -> Parts:
    low = _nibbles(b[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = b[:, 128:192].reshape(-1, 2, 1, 32) >> shifts & 3
    levels = (low | high << 4).astype(np.int8) - np.int8(32)
    return levels, 8, _half(b[:, 208:]) * _signed(b[:, 192:208]), None


def _signed(data: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(data).view(np.int8).astype(np.float32)


def _pairs_of_bits(data: np.ndarray) -> np.ndarray:
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    return (data.reshape(-1, 2, 1, 32) >> shifts & 3).reshape(-1, 8, 32)


def _q2_k(b: np.ndarray) -> Parts:
    scales = _half(b[:, 80:82]) * (b[:, :16] & 15).astype(np.float32)
    return _pairs_of_bits(b[:, 16:80]), 4, scales, -_half(b[:, 82:84]) * (b[:, :16] >> 4).astype(np.float32)


def _q3_k(b: np.ndarray) -> Parts:
    high = b[:, None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    levels = (_pairs_of_bits(b[:, 32:96]) | high << 2).astype(np.int8) - np.int8(4)
    low, upper = b[:, 96:104], b[:, 104:108]
    low = np.concatenate([low & 15, low >> 4], -1)
    parts = np.concatenate([upper >> shift & 3 for shift in (0, 2, 4, 6)], -1)
    scales = (low | parts << 4).astype(np.float32) - 32
    return levels, 4, _half(b[:, 108:]) * scales, None


def _iq4_nl(b: np.ndarray) -> Parts:
    return _NONLINEAR[_nibbles(b[:, 2:])], 8, _half(b[:, :2]), None


def _iq4_xs(b: np.ndarray) -> Parts:
    high = np.ascontiguousarray(b[:, 2:4]).view(np.uint16) >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], -1).reshape(-1, 8)
    scales = (low | high << 4).astype(np.float32) - 32
    return _NONLINEAR[_nibbles(b[:, 8:].reshape(-1, 8, 16))], 8, _half(b[:, :2]) * scales, None


def _thirds(data: np.ndarray, count: int) -> np.ndarray:
    """Digits of base 3: `count` of each byte, those of all bytes of a row one behind the other."""
    powers = np.array([3**n for n in range(count)], np.uint8)[:, None]
    digits = data[..., None, :] * powers  # the rest of a division by 256 remains
    return (digits.astype(np.uint16) * 3 >> 8).astype(np.int8).reshape(len(data), -1) - np.int8(1)


def _tq1_0(b: np.ndarray) -> Parts:
    cuts = _thirds(b[:, :32], 5), _thirds(b[:, 32:48], 5), _thirds(b[:, 48:52], 4)
    return np.concatenate(cuts, -1), 4, _half(b[:, 52:]), None


def _tq2_0(b: np.ndarray) -> Parts:
    return _pairs_of_bits(b[:, :64]).astype(np.int8) - np.int8(1), 4, _half(b[:, 64:]), None


def _mxfp4(b: np.ndarray) -> Parts:
    """Floats of 4 bits, and the exponent of each block."""
    return _FLOATS_4[_nibbles(b[:, 1:])], 8, np.ldexp(np.float32(1), b[:, :1].astype(np.int32) - 128), None


def _nvfp4(b: np.ndarray) -> Parts:
    """Floats of 4 bits, and a float of 8 bits for each 16 of them."""
    exponents, fractions = b[:, :4].astype(np.int32) >> 3 & 15, (b[:, :4] & 7).astype(np.float32)
    scales = np.ldexp(fractions / 8 + (exponents > 0), np.maximum(exponents, 1) - 8).astype(np.float32)
    scales[b[:, :4] == 127] = 0
    return _FLOATS_4[_nibbles(b[:, 4:].reshape(-1, 4, 8))], 8, scales, None


FORMS = {  # by their numbers in GGUF
    0: Form("F32", 1, 4),
    1: Form("F16", 1, 2),
    28: Form("F64", 1, 8),
    30: Form("BF16", 1, 2),
    2: Form("Q4_0", 32, 18, _q4_0),
    3: Form("Q4_1", 32, 20, _q4_1),
    6: Form("Q5_0", 32, 22, _q5_0),
    7: Form("Q5_1", 32, 24, _q5_1),
    8: Form("Q8_0", 32, 34, _q8_0),
    10: Form("Q2_K", _K, 84, _q2_k),
    11: Form("Q3_K", _K, 110, _q3_k),
    12: Form("Q4_K", _K, 144, _q4_k),
    13: Form("Q5_K", _K, 176, _q5_k),
    14: Form("Q6_K", _K, 210, _q6_k),
    16: Form("IQ2_XXS", _K, 66, ggml_grids.iq2_xxs),
    17: Form("IQ2_XS", _K, 74, ggml_grids.iq2_xs),
    18: Form("IQ3_XXS", _K, 98, ggml_grids.iq3_xxs),
    19: Form("IQ1_S", _K, 50, ggml_grids.iq1_s),
    20: Form("IQ4_NL", 32, 18, _iq4_nl),
    21: Form("IQ3_S", _K, 110, ggml_grids.iq3_s),
    22: Form("IQ2_S", _K, 82, ggml_grids.iq2_s),
    23: Form("IQ4_XS", _K, 136, _iq4_xs),
    29: Form("IQ1_M", _K, 56, ggml_grids.iq1_m),
    34: Form("TQ1_0", _K, 54, _tq1_0),
    35: Form("TQ2_0", _K, 66, _tq2_0),
    39: Form("MXFP4", 32, 17, _mxfp4),
    40: Form("NVFP4", 64, 36, _nvfp4),
}
OTHERS = {  # that are not read
    9: "Q8_1",
    15: "Q8_K",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    41: "Q1_0",
}
