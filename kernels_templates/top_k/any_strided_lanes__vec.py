"""top_k of a few along an axis in loops over lanes, which lie along another axis, side by side or apart: each has a
sorted list, into which elements go without branches.

From the place on that an element belongs to, each place of a list gives what it has to the next one. Elements that are
better in no lane are passed over, behind those that are so often that branches would be mispredicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, i64
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.lanes import LEAST, lanes_refusal
from mccompile.codegen.loops import index_c, nest
from mccompile.codegen.tiles import Range
from mccompile.expr.scalar_c import load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, View, static_views
from mccompile.kinds.top_k import TopK

FEW = 64  # places of a list
APART = 2.5  # cycles of an element whose neighbours lie elsewhere
GROUP = 16  # of these are in sight of one loop


class Lanes(Kernel):
    kind = TopK

    def cases(self) -> Sequence[Case]:
        lost = np.random.default_rng(0).normal(size=(60, 80)).astype(np.float32)
        lost[[3, 30, 31, 59], [5, 5, 5, 5]] = np.nan
        lost[:, 6] = np.nan
        return [
            _case("largest", f32, (2, 23, 64), 1, 5, True),
            _case("smallest", i8, (40, 100), 0, 16, False),
            _case("one", i64, (9, 50), 0, 1, True),
            _case("all", f32, (7, 33), 0, 7, True),
            _case("many", f32, (90, 33), 0, 37, True),
            _case("inner", f32, (2, 19, 3, 16), 1, 4, False),
            _case("apart", f32, (3, 17, 13), 2, 3, True),
            _case("apart_bytes", i8, (35, 5, 9), 2, 9, False),
            _case("with_nan", f32, lost.shape, 0, 4, True, values={0: lost}),
            _case("with_nan_smallest", f32, lost.shape, 0, 19, False, values={0: lost}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [best]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, x = call.of(TopK), call.ins[0]
        reason = lanes_refusal(target, (), [x.buffer.dtype]) or static_views(call)
        if reason:
            return No(reason)
        if not isinstance(kind.k, int) or not 0 < kind.k <= FEW:
            return No("lists would be long, or of unknown length")
        lane = _lane(call)
        if lane is None:
            return No("there are too few elements beside the axis")
        return Needs(blocks=(lane,))

    def cost(self, call: Call, target: Target) -> Cost:
        k, count = call.of(TopK).k, static(call.ins[0].type.count)
        assert isinstance(k, int)
        x, (lane,) = call.ins[0], call.blocks
        wide = (max(x.buffer.dtype.bits, 32) + 32) / 8 / max(target.vector_bytes, 1)
        n, row = static(x.shape[call.of(TopK).axis]), static(x.shape[lane])
        better = k * (1 + log(max(n / k, 1)))  # of a row of random numbers so many go into its list
        put = 4 * k * wide / target.machine.fmas * min(1, LEAST * better / n)
        lanes = count / row * -(-row // LEAST) * LEAST
        return Cost(lanes * (1 + put + APART * (x.strides[lane] != 1)), code=200 + 100 * min(k, GROUP))

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_lanes.h"})

    def units(self, call: Call) -> Sequence[int]:
        loops = _loops(call)[0]
        return (1,) * loops[0].extent if loops else ()

    def label(self, call: Call) -> str:
        return f"top_{call.of(TopK).k}"

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, dtype = call.of(TopK), call.ins[0].buffer.dtype
        (lane,), views = call.blocks, (*call.outs, *call.ins)
        loops, strides = _loops(call)
        if call.workers > 1 and loops:
            loops[0] = replace(loops[0], begin="begin", end="end")

        def at(which: int, position: str) -> str:
            steps = (*strides[which], views[which].strides[kind.axis], views[which].strides[lane])
            return index_c(steps, [*(loop.counter for loop in loops), position, "(from + lane)"])

        return {
            "loops": loops,
            "n": call.ins[0].shape[kind.axis],
            "k": kind.k,
            "group": min(static(kind.k), GROUP),
            "places": -(-static(kind.k) // GROUP) * GROUP if static(kind.k) > GROUP else kind.k,
            "often": min(static(call.ins[0].shape[kind.axis]), LEAST * static(kind.k)),
            "type": i32.compute_c if dtype.is_integer and dtype.bits < 32 else dtype.compute_c,  # as wide as places
            "width": call.ins[0].shape[lane],
            "lanes": LEAST,
            "value": load_c(dtype, "x", at(2, "next")),
            "stores": [
                store_c(dtype, "y0", at(0, "place"), f"({dtype.compute_c})best[place * {LEAST} + lane]"),
                store_c(i64, "y1", at(1, "place"), f"found[place * {LEAST} + lane]"),
            ],
            "ahead": self.ahead(kind, dtype),
        }

    @staticmethod
    def ahead(kind: TopK, dtype: DType) -> str:
        """C: is `value` better than `other`? NaN is larger than any number."""
        if not dtype.is_float:
            return f"value {'>' if kind.largest else '<'} other"
        return "!(value <= other) & (other == other)" if kind.largest else "!(value >= other) & (value == value)"


def _lane(call: Call) -> int | None:
    """The axis that lanes lie along: the one of the nearest neighbours."""
    x, axis = call.ins[0], call.of(TopK).axis
    lanes = (a for a in range(len(x.shape)) if a != axis and static(x.shape[a]) >= LEAST)
    return min(lanes, key=lambda a: sum(abs(static(view.strides[a])) for view in (*call.outs, x)), default=None)


def _loops(call: Call) -> tuple[list[Range], Sequence[Sequence[Any]]]:
    """Those around, and the strides of the results and the operand."""
    lines = [_first(_first(view, call.of(TopK).axis), call.blocks[0]) for view in (*call.outs, *call.ins)]
    loops = nest(lines[0].shape, lines)
    return [Range.over(loop.counter, loop.count) for loop in loops.loops], loops.strides


def _first(view: View, axis: int) -> View:
    return replace(view, shape=(*view.shape[:axis], 1, *view.shape[axis + 1 :]))


def best(first: int, second: int, last: int) -> Case:
    """Fewer elements beside each other are not served."""
    return _case(f"{first}_{second}_{last}", f32, (first, second + 2, last + LEAST - 1), 1, 3, True)


def _case(name: str, dtype: DType, shape: Shape, axis: int, k: int, largest: bool, **options: Any) -> Case:
    found = (*shape[:axis], k, *shape[axis + 1 :])
    outs = (TensorType(dtype, found), TensorType(i64, found))
    return Case(name, TopK(axis, k, largest), (TensorType(dtype, shape),), outs, **options)
