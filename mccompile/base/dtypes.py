"""Element types: one table with everything the compiler knows about each.

Invariant: a `DType` is one of the objects in `DTYPES`, so `is` and `==` agree.

A stored element and a computed one may differ: float16 lies in memory as `uint16_t` and is computed as `float`, rounded
after every operation; 4-bit integers are packed in pairs. `load` and `store` name the runtime functions that convert.
A string is a pointer and a length, 16 bytes on every machine; where its bytes lie is not its affair.
"""

from __future__ import annotations

import numpy as np

from .errors import InternalError
from .records import dataclass


@dataclass(frozen=True)
class DType:
    name: str
    kind: str  # "float", "int", "uint", "bool", "string", "complex"
    bits: int  # of a stored element
    numpy_name: str
    storage_c: str  # C type of the memory an element lies in
    compute_c: str  # C type of a value in an expression
    onnx: int  # TensorProto.DataType

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return np.dtype(self.numpy_name)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_narrow_float(self) -> bool:
        """Stored narrower than any C99 float: computed in f32 and rounded after each operation."""
        return self.kind == "float" and self.bits < 32

    @property
    def is_packed(self) -> bool:
        """Several elements share a byte."""
        return self.bits < 8 and self.kind != "bool"

    @property
    def is_plain(self) -> bool:
        """Memory and expression use the same C type: `p[i]` reads and writes an element."""
        return self.storage_c == self.compute_c and not self.is_packed

    def nbytes(self, count: int) -> int:
        return (count * self.bits + 7) // 8

    @property
    def whole(self) -> int:
        """Every whole number up to this one is an element, and so is its negative."""
        if self.kind in ("int", "uint", "bool"):
            return int(self.high)
        return _WHOLE.get(self.name, 0)

    @property
    def low(self) -> int | float:
        """Smallest value: what a maximum starts from."""
        if self.kind == "float":
            return float("-inf")
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def high(self) -> int | float:
        if self.kind == "float":
            return float("inf")
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - (self.kind == "int"))) - 1


_WHOLE = {"f64": 1 << 53, "f32": 1 << 24, "f16": 1 << 11, "bf16": 1 << 8}  # the bits of a significand


def _table() -> dict[str, DType]:
    rows = [
        ("f32", "float", 32, "float32", "float", "float", 1),
        ("u8", "uint", 8, "uint8", "uint8_t", "uint8_t", 2),
        ("i8", "int", 8, "int8", "int8_t", "int8_t", 3),
        ("u16", "uint", 16, "uint16", "uint16_t", "uint16_t", 4),
        ("i16", "int", 16, "int16", "int16_t", "int16_t", 5),
        ("i32", "int", 32, "int32", "int32_t", "int32_t", 6),
        ("i64", "int", 64, "int64", "int64_t", "int64_t", 7),
        ("string", "string", 128, "object", "mcc_string", "mcc_string", 8),
        ("bool", "bool", 8, "bool", "uint8_t", "uint8_t", 9),
        ("f16", "float", 16, "float16", "uint16_t", "float", 10),
        ("f64", "float", 64, "float64", "double", "double", 11),
        ("u32", "uint", 32, "uint32", "uint32_t", "uint32_t", 12),
        ("u64", "uint", 64, "uint64", "uint64_t", "uint64_t", 13),
        ("c64", "complex", 64, "complex64", "float", "float", 14),
        ("c128", "complex", 128, "complex128", "double", "double", 15),
        ("bf16", "float", 16, "bfloat16", "uint16_t", "float", 16),
        ("f8e4m3fn", "float", 8, "float8_e4m3fn", "uint8_t", "float", 17),
        ("f8e4m3fnuz", "float", 8, "float8_e4m3fnuz", "uint8_t", "float", 18),
        ("f8e5m2", "float", 8, "float8_e5m2", "uint8_t", "float", 19),
        ("f8e5m2fnuz", "float", 8, "float8_e5m2fnuz", "uint8_t", "float", 20),
        ("u4", "uint", 4, "uint4", "uint8_t", "uint8_t", 21),
        ("i4", "int", 4, "int4", "uint8_t", "int8_t", 22),
        ("f4e2m1", "float", 4, "float4_e2m1fn", "uint8_t", "float", 23),
        ("f8e8m0", "float", 8, "float8_e8m0fnu", "uint8_t", "float", 24),
        ("u2", "uint", 2, "uint2", "uint8_t", "uint8_t", 25),
        ("i2", "int", 2, "int2", "uint8_t", "int8_t", 26),
    ]
    return {row[0]: DType(*row) for row in rows}


DTYPES = _table()
_BY_NUMPY = {dtype.numpy_name: dtype for dtype in DTYPES.values()}
_BY_ONNX = {dtype.onnx: dtype for dtype in DTYPES.values()}

f16, bf16, f32, f64 = DTYPES["f16"], DTYPES["bf16"], DTYPES["f32"], DTYPES["f64"]
string = DTYPES["string"]
i4, i8, i16, i32, i64 = DTYPES["i4"], DTYPES["i8"], DTYPES["i16"], DTYPES["i32"], DTYPES["i64"]
u8, u16, u32, u64 = DTYPES["u8"], DTYPES["u16"], DTYPES["u32"], DTYPES["u64"]
bool_ = DTYPES["bool"]
SHORT = (i8, u8, i16, u16)  # what products are summed of as integers


def of_array(array: np.ndarray) -> DType:
    """The element type of a numpy array (also of ml_dtypes arrays, which announce themselves by name)."""
    name = array.dtype.name
    if name.startswith("str") or name in ("object", "bytes"):
        return DTYPES["string"]
    found = _BY_NUMPY.get(name)
    if found is None:
        raise InternalError(f"no element type for numpy dtype {name}")
    return found


def of_onnx(number: int) -> DType | None:
    return _BY_ONNX.get(number)
