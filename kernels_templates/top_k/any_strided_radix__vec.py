"""top_k of many: elements along the axis are sorted byte by byte, by integers in their order, without branches that
depend on them.

A heap of k elements is sifted k times, and what each sift meets is mispredicted half of the time: where k is more
than a few dozens, to sort all elements takes half as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f16, f32, i8, i16, i32, i64, u8, u16
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.loops import index_c, nest
from mccompile.codegen.traffic import has_traffic
from mccompile.expr.scalar_c import load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.top_k import TopK

KEYS = (f32, f16, i32, i16, u16, i8, u8)  # what integers of 32 bits have the order of
COUNTS = 256  # of a byte
PER_BYTE = 4  # cycles of moving a word by one of its bytes


class Radix(Kernel):
    kind = TopK

    def cases(self) -> Sequence[Case]:
        lost = np.random.default_rng(0).normal(size=(3, 90)).astype(np.float32)
        lost[1, [3, 30, 31, 59]] = np.nan
        lost[2, 10:60] = np.where(np.arange(50) % 3, 0.0, -0.0)
        ends = np.array([[-np.inf, np.inf, 1e-40, -1e-40, 3e38, -3e38, 0.0] * 12], np.float32)
        return [
            _case("largest", f32, (2, 300), 1, 140, True),
            _case("smallest", f32, (2, 300), 1, 300, False),
            _case("first_axis", f32, (97, 3), 0, 60, True),
            _case("inner", f16, (2, 119, 3), 1, 90, False),
            _case("with_ties", i8, (2, 133), 1, 133, True),
            _case("bytes", u8, (2, 133), 1, 100, False),
            _case("words", i32, (1, 200), 1, 150, True),
            _case("half_words", i16, (1, 200), 1, 150, False),
            _case("lost", f32, lost.shape, 1, 80, True, lost),
            _case("lost_smallest", f32, lost.shape, 1, 90, False, lost),
            _case("ends", f32, ends.shape, 1, 84, True, ends),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [best]

    def match(self, call: Call, target: Target) -> No | Needs:
        if not has_traffic(target):
            return No("it needs memory for two whole rows")
        if call.ins[0].buffer.dtype not in KEYS:
            return No("elements are wider than 32 bits, or strings")
        reason = static_views(call)
        if reason:
            return No(reason)
        if static(call.of(TopK).k) < 1:
            return No("the result is empty")
        n, dtype = _length(call), call.ins[0].buffer.dtype
        return Needs(scratch=16 * n + 4 * COUNTS * _bytes(dtype), scratch_align=8)

    def cost(self, call: Call, target: Target) -> Cost:
        n, count, digits = _length(call), static(call.ins[0].type.count), _bytes(call.ins[0].buffer.dtype)
        each = 2 * target.machine.element + PER_BYTE * digits
        return Cost(count * each + count // n * 2 * COUNTS * digits, code=500)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_radix.h", "mcc_lanes.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, dtype, axis = call.of(TopK), call.ins[0].buffer.dtype, call.of(TopK).axis
        views = (*call.outs, call.ins[0])
        lines = [view.sliced(axis, 0, 1) for view in views]
        loops = nest(lines[0].shape, lines)

        def at(which: int, position: str) -> str:
            steps = (*loops.strides[which], views[which].strides[axis])
            return index_c(steps, [*(loop.counter for loop in loops.loops), position])

        return {
            "loops": loops.loops,
            "n": _length(call),
            "k": kind.k,
            "type": dtype.compute_c,
            "bytes": _bytes(dtype),
            "value": load_c(dtype, "x", at(2, "j")),
            "key": _key(dtype, kind.largest),
            "stores": [
                store_c(dtype, "y0", at(0, "j"), load_c(dtype, "x", at(2, "place"))),
                store_c(i64, "y1", at(1, "j"), "place"),
            ],
        }

    def label(self, call: Call) -> str:
        return f"top_{call.of(TopK).k}"


def _length(call: Call) -> int:
    return static(call.ins[0].shape[call.of(TopK).axis])


def _bytes(dtype: DType) -> int:
    return 4 if dtype.is_float else dtype.bits // 8


def _key(dtype: DType, largest: bool) -> str:
    """C of what the best has least of, an integer without a sign."""
    if dtype.is_float:
        key = "((uint32_t)mcc_lane_key_f32(value, INT32_MAX) ^ 0x80000000u)"
    else:
        key = f"((uint32_t)value + {-int(dtype.low)}u)"
    return f"(uint32_t)~{key}" if largest else key


def best(first: int, length: int, last: int) -> Case:
    return _case(f"{first}_{length}_{last}", f32, (first, length + 1, last), 1, max(1, length // 2), True)


def _case(
    name: str, dtype: DType, shape: Shape, axis: int, k: int, largest: bool, values: np.ndarray | None = None
) -> Case:
    found = (*shape[:axis], k, *shape[axis + 1 :])
    outs = (TensorType(dtype, found), TensorType(i64, found))
    more: dict[str, Any] = {} if values is None else {"values": {0: values}}
    return Case(name, TopK(axis, k, largest), (TensorType(dtype, shape),), outs, **more)
