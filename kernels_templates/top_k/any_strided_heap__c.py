"""top_k in portable C: a heap of the k best so far in the results themselves, worst on top, sorted at the end; few are
a sorted list.

Where the compiler makes vectors of loops over lanes, blocks of x in which nothing is better are passed over at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.dims import bounds, upper
from mccompile.base.dtypes import DType, f16, f32, i8, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.lanes import lanes_refusal
from mccompile.codegen.loops import index_c, nest, size_name
from mccompile.expr.scalar_c import load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, supports_types
from mccompile.kinds.top_k import TopK

BLOCK = 32  # elements that are compared at once
SIFTED = 8  # elements of work of one step of a sift, whose branches are mispredicted half of the time
SKIPPED = 0.6  # cycles of an element that is passed over
BETTER = 15  # of one that is put into a list, whose branches are mispredicted
FEW = 16  # where shifting a list is quicker than a heap


class TopKHeap(Kernel):
    kind = TopK
    branches = "numbers are moved as they are larger or smaller"

    def cases(self) -> Sequence[Case]:
        def case(
            name: str, dtype: DType, shape: tuple[int, ...], axis: int, k: int, largest: bool, **options: Any
        ) -> Case:
            found = (*shape[:axis], k, *shape[axis + 1 :])
            outs = (TensorType(dtype, found), TensorType(i64, found))
            return Case(name, TopK(axis, k, largest), (TensorType(dtype, shape),), outs, **options)

        return [
            case("largest", f32, (3, 50), 1, 7, True),
            case("smallest", f32, (3, 50), 1, 7, False),
            case("all_with_ties", i8, (2, 33, 3), 1, 33, True),
            case("one", f32, (4, 9), 1, 1, True),
            case("first_axis", f16, (9, 4), 0, 4, False, permute={0: (1, 0)}),
            case("single", i64, (1,), 0, 1, True),
            case("many", f32, (2, 301), 1, 19, True),
            case("long", f32, (2, 301), 1, 5, True),
            case("long_smallest", f32, (2, 320), 1, 3, False),
            case("long_one", i8, (3, 160), 1, 1, True),
            case("long_with_nan", f32, (2, 200), 1, 4, True, values={0: _with_nan((2, 200))}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if not reason and 0 in call.outs[0].shape:
            reason = "the result is empty"
        if reason:
            return No(reason)
        return Needs(blocks=(BLOCK if _has_blocks(call, target) else 0,))

    def cost(self, call: Call, target: Target) -> Cost:
        k, count = upper(call.of(TopK).k), upper(call.ins[0].type.count)
        n = max(upper(call.ins[0].shape[call.of(TopK).axis]), 1)
        rows = count // n
        if any(call.blocks) and 0 < k <= FEW:  # of random numbers so many are better than those before them
            better = k * (1 + math.log(max(n / k, 1)))
            return Cost(rows * (n * SKIPPED + better * (BETTER + k)), code=400)
        sifts = rows * k * SIFTED * math.log2(k) if k > FEW else 0
        return Cost((count * 5 + sifts) * target.machine.element, code=400)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_lanes.h"} if any(call.blocks) else ())

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, dtype = call.of(TopK), call.ins[0], call.ins[0].buffer.dtype
        axis = kind.axis
        steps = [view.strides[axis] for view in (*call.outs, x)]
        lines = [_without(view, axis) for view in (*call.outs, x)]
        loops = nest(lines[0].shape, lines)
        names = ("y0", "y1", "x")

        def at(which: int, position: str) -> str:
            return index_c((*loops.strides[which], steps[which]), [*(loop.counter for loop in loops.loops), position])

        def get(which: int, position: str) -> str:
            return load_c(i64 if which == 1 else dtype, names[which], at(which, position))

        def put(which: int, position: str, value: str) -> str:
            return store_c(i64 if which == 1 else dtype, names[which], at(which, position), value)

        def no_better(a: str, b: str) -> str:
            """C that is false where value a is better than b, and where one of them is NaN."""
            return f"{a} {'<=' if kind.largest else '>='} {b}"

        return {
            "loops": loops.loops,
            "n": x.shape[axis],
            "k": kind.k,
            "maybe_none": bounds(kind.k)[0] <= 0,
            "type": dtype.compute_c,
            "get": get,
            "put": put,
            "ahead": _ahead(call),
            "no_better": no_better,
            "few": isinstance(kind.k, int) and 0 < kind.k <= FEW,
            "skips": call.blocks[0],
        }

    def label(self, call: Call) -> str:
        return f"top_{size_name(call.of(TopK).k)}"


def _ahead(call: Call) -> Callable[[str, str], str]:
    """C of two values: is the first one better?"""
    of_floats, largest = call.ins[0].buffer.dtype.is_float, call.of(TopK).largest

    def ahead(a: str, b: str) -> str:
        better, (whole, lost) = f"{a} {'>' if largest else '<'} {b}", (b, a) if largest else (a, b)
        return f"({better}) || (({lost} != {lost}) && ({whole} == {whole}))" if of_floats else better

    return ahead


def _has_blocks(call: Call, target: Target) -> bool:
    """Are there blocks of elements side by side, for vectors that the compiler makes?"""
    x, axis = call.ins[0], call.of(TopK).axis
    long = bounds(x.shape[axis] - call.of(TopK).k)[0] >= 2 * BLOCK
    return long and not lanes_refusal(target, (), [x.buffer.dtype]) and x.strides[axis] == 1


def _with_nan(shape: tuple[int, int]) -> np.ndarray:
    """Single ones in the second row, far from its beginning."""
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    array[1, [90, 91, 199]] = np.nan
    return array


def _without(view: View, axis: int) -> View:
    """The first element along an axis."""
    return replace(view, shape=(*view.shape[:axis], 1, *view.shape[axis + 1 :]))
