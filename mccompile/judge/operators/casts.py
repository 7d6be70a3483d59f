"""From one element type to another."""

from __future__ import annotations

import numpy as np

from ..narrow import NARROW, rounded_to
from ..rules import Array, NodeSite, NoWitness, judges
from ..whole import LIMITS, stored, within

TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "str", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4_e2m1fn", 25: "uint2", 26: "int2",
}  # fmt: skip
_FLOATS = ("float16", "float32", "float64", "bfloat16")


def _cast(at: NodeSite, to: str) -> Array:
    x, source, saturate = at[0], at.type(0), bool(at.attr("saturate", 1))
    if to == "str" or x.dtype.kind == "O":
        return _text(x, source, to)
    if to in _FLOATS or to in NARROW:
        return rounded_to(x.astype(np.float64), to, saturate)
    if to == "bool":
        return x.astype(bool)
    if to.startswith("complex"):
        return x.astype(to)
    if x.dtype.kind == "f":
        return within(at, np.trunc(x), to, "a float outside of an integer type becomes one: undefined behaviour")
    if to in LIMITS:
        bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}[to]
        low_bits = x.astype(np.int64) & ((1 << bits) - 1)
        signed = np.where(low_bits > LIMITS[to][1], low_bits - (1 << bits), low_bits)
        return signed.astype(stored(to))
    return x.astype(stored(to))


def _text(x: Array, source: str, to: str) -> Array:
    if to == "str":
        if x.dtype.kind == "f":
            raise NoWitness("ONNX does not say how many digits floats have as text")
        return np.array([str(each) for each in x.reshape(-1)], object).reshape(x.shape)
    if to in _FLOATS:
        return np.array([float(each) for each in x.reshape(-1)], np.float64).reshape(x.shape)
    return np.array([int(each) for each in x.reshape(-1)], to).reshape(x.shape)


@judges("Cast")
def cast_to(at: NodeSite) -> Array:
    to = at.attr("to")
    name = TYPES[int(to)] if not isinstance(to, str) else to.lower().replace("float", "float32", 1)
    return _cast(at, name)


@judges("CastLike")
def cast_like(at: NodeSite) -> Array:
    return _cast(at, at.type(1) or "float32")


@judges("BitCast")
def bit_cast(at: NodeSite) -> Array:
    source, to = at.type(0), TYPES[int(at.attr("to"))]
    if source not in np.sctypeDict or to not in np.sctypeDict:
        raise NoWitness(f"bits of {source} as {to}")
    return np.ascontiguousarray(at[0].astype(source)).view(to)
