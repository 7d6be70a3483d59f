"""arg_reduce in vectors: lanes are neighbouring results, such as the pixels of a segmentation whose class is asked for.

Each lane remembers its best element so far and where that was. Lanes are compared as the portable kernel compares
elements, so results are the same for NaN and for equal elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import f32, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import Nest, beside, index_c
from mccompile.codegen.tiles import Range
from mccompile.codegen.vector.vector_loops import SHORTEST, chunks
from mccompile.codegen.vector.vector_tiles import best_lanes, lanes_of, vector_refusal
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.arg_reduce import ArgReduce

MOST = 1 << 31  # places along the axis that 32-bit integers tell apart


class StridedLanes(Kernel):
    kind = ArgReduce

    def cases(self) -> Sequence[Case]:
        cases = [_case(f"classes_{n}", (2, 5, n), 1) for n in (4, 7, 16, 19, 33, 64)]
        equal = np.arange(180, dtype=np.float32).reshape(9, 20) * 7 % 4
        equal[3:5, 2:5] = np.nan  # some of them begin with one, some have one, some two
        equal[0, 4:7] = np.nan
        ties: dict[str, Any] = {"values": {0: equal}}
        return [
            *cases,
            _case("smallest", (6, 37), 0, largest=False),
            _case("first_of_equal", (9, 20), 0, **ties),
            _case("first_smallest", (9, 20), 0, largest=False, **ties),
            _case("last_of_equal", (9, 20), 0, last=True, **ties),
            _case("last_smallest", (9, 20), 0, largest=False, last=True, **ties),
            _case("channels_first", (2, 3, 5, 6), 3, permute={0: (0, 3, 1, 2)}),
            _case("result_apart", (2, 3, 5, 6), 1, permute_outs={0: (0, 3, 2, 1)}),
            _case("one_place", (1, 8), 0),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [places]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = vector_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        if call.ins[0].buffer.dtype is not f32:
            return No("only for 32-bit floats")
        if not 0 < static(call.ins[0].shape[call.of(ArgReduce).axis]) < MOST or 0 in call.outs[0].shape:
            return No("there are no elements to compare, or too many for 32-bit indices")
        chosen = _nest(call).side_by_side(1, SHORTEST)  # the loop that lanes lie along
        if chosen is None:
            return No("elements of the results are not contiguous, or are too few")
        return Needs(blocks=(best_lanes(_nest(call).loops[chosen].extent, target), chosen))

    def cost(self, call: Call, target: Target) -> Cost:
        results, elements = static(call.outs[0].type.count), static(call.ins[0].type.count)
        each = 2 * target.machine.element / min(lanes_of(target), 8)
        return Cost(results * 2 * target.machine.element + elements * each, code=300, stack=64)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_vec.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, (lanes, chosen) = call.of(ArgReduce), call.blocks
        loops, of = _nest(call), f"f32x{lanes}"
        (y,), (x,) = self.parameter_names(call)
        counters = [loop.counter for loop in loops.loops]
        row, step = loops.loops[chosen], static(loops.strides[0][chosen])
        along = [*loops.strides[1], static(call.ins[0].strides[kind.axis])]
        parts = [
            {
                "header": chunk.header,
                "lanes": chunk.lanes,
                "first": chunk.load(lanes, x, index_c(along[:-1], counters), 1),
                "load": chunk.load(lanes, x, index_c(along, [*counters, "r"]), 1),
            }
            for chunk in chunks(row.counter, row.extent, lanes)
        ]
        return {
            "around": [Range(loop.counter, loop.extent) for loop in loops.loops if loop is not row],
            "parts": parts,
            "of": of,
            "width": lanes,
            "extent": static(call.ins[0].shape[kind.axis]),
            "comparison": ("greater" if kind.largest else "less") + "_equal" * kind.last,
            "last": kind.last,
            "result": f"{y}[{index_c([*loops.strides[0], step], [*counters, 'lane'])}]",
        }

    def label(self, call: Call) -> str:
        return "arg_max" if call.of(ArgReduce).largest else "arg_min"


def _nest(call: Call) -> Nest:
    return beside(call.of(ArgReduce).axis, call.outs[0], call.ins[0])


def places(first: int, second: int, last: int) -> Case:
    """Of the largest elements along the middle axis."""
    return _case(f"{first}_{second}_{last}", (first, second, last), 1)


def _case(
    name: str, shape: tuple[int, ...], axis: int, *, largest: bool = True, last: bool = False, **options: Any
) -> Case:
    out = TensorType(i64, (*shape[:axis], 1, *shape[axis + 1 :]))
    return Case(name, ArgReduce(axis, largest, last), (TensorType(f32, shape),), (out,), **options)
