"""unique in portable C: indices of rows are merged in order, in the room of the results; equal rows then meet. On
hosts, many rows of one number each are sorted byte by byte instead, by integers in their order, without branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import DType, f16, f32, f64, i16, i32, i64, string, u8, u32, u64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.codegen.traffic import has_traffic
from mccompile.expr.scalar_c import load_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.unique import Unique

COUNTS = 256  # of a byte
PER_BYTE = 3  # cycles of moving a row by one of its bytes
MANY_OF = (f16, f32, f64, u8, i16, i32, u64, i64)
MANY = 128  # rows from which this is faster


class UniqueMerges(Kernel):
    kind = Unique

    def cases(self) -> Sequence[Case]:
        # random rows all differ, so that all of the results is written; tests/ops/test_data_dependent.py has others
        draws = np.random.default_rng(0).permutation(21)

        def case(name: str, kind: Unique, dtype: DType, shape: tuple[int, int], **options: Any) -> Case:
            each = TensorType(i64, shape[:1])
            return Case(name, kind, (TensorType(dtype, shape),), (each, each, each, TensorType(i64, (1,))), **options)

        return [
            case("ascending", Unique(), f32, (9, 3)),
            case("as_they_come", Unique(False), f64, (5, 2), permute={0: (1, 0)}),
            case("two_columns", Unique(), i64, (21, 2), values={0: np.stack([draws % 3, draws], 1)}),
            case("one_column", Unique(), f32, (19, 1)),
            case("one", Unique(), f32, (1, 1)),
            *(case(f"many_{dtype}", Unique(), dtype, (150, 1), values={0: _apart(dtype)}) for dtype in MANY_OF),
            case("many_as_they_come", Unique(False), i64, (140, 1), values={0: _apart(i64)[:140]}),
            case("strings", Unique(), string, (4, 1), values={0: np.array([["b"], [""], ["ab"], ["a"]], object)}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        if reason:
            return No(reason)
        digits = _bytes(call) if has_traffic(target) else 0
        scratch = COUNTS * u32.nbytes(1) if digits else 0
        return Needs(dense_outs=frozenset(range(4)), scratch=scratch, blocks=(digits,) if digits else ())

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_lanes.h"}) if call.blocks and call.ins[0].buffer.dtype.is_float else frozenset()

    def cost(self, call: Call, target: Target) -> Cost:
        rows = upper(call.ins[0].shape[0])
        if call.blocks:
            return Cost(call.blocks[0] * (rows * PER_BYTE + 2 * COUNTS), code=500)
        return Cost(rows * (rows.bit_length() + 2) * target.machine.element, code=400)

    def context(self, call: Call) -> Mapping[str, Any]:
        x = call.ins[0]
        dtype = x.buffer.dtype
        rows, columns = x.shape

        def element(row: str, column: str) -> str:
            return load_c(dtype, "x", index_c(x.strides, [row, column]))

        return {
            "rows": rows,
            "columns": columns,
            "type": dtype.compute_c,
            "element": element,
            "is_string": dtype is string,
            "is_float": dtype.is_float,
            "ascending": call.of(Unique).ascending,
            "bytes": call.blocks[0] if call.blocks else 0,
            "key": _key(dtype),
        }


def _apart(dtype: DType) -> np.ndarray:
    """Numbers that differ, in no order, with infinities and NaN where there are some."""
    draws = (
        np.random.default_rng(0).permutation(150) - 70 if dtype.low < 0 else np.random.default_rng(0).permutation(150)
    )
    values = (draws * (1 if dtype.bits == 8 else 211)).astype(dtype.numpy)
    if dtype.is_float:
        values[:3] = np.inf, np.nan, -np.inf
    return values[:, None]


def _bytes(call: Call) -> int:
    """Of the keys that rows are sorted by; 0: they are merged."""
    (rows, columns), dtype = call.ins[0].shape, call.ins[0].buffer.dtype
    if columns != 1 or not isinstance(rows, int) or rows < MANY or dtype is string or dtype.is_packed:
        return 0
    return 4 if dtype.is_narrow_float else dtype.bits // 8


def _key(dtype: DType) -> str:
    """C of an integer without a sign in the order of `value`, with NaN at the end."""
    if dtype is f64:
        return "((uint64_t)mcc_lane_key_f64(value, INT64_MAX) ^ (UINT64_C(1) << 63))"
    if dtype.is_float:
        return "((uint32_t)mcc_lane_key_f32(value, INT32_MAX) ^ (UINT32_C(1) << 31))"
    return f"((uint64_t)value + UINT64_C({-int(dtype.low) if dtype.is_integer else 0}))"
