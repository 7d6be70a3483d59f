"""argmax_pool in vectors along channels, for operands that lie channels-last; the results may lie in any way.

Places within an image are counted in 32 bits, in lanes beside the largest elements; channels are added behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import f32, i64
from mccompile.base.tensor import Shape, TensorType, dense_strides
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import Chunk, channels_last_refusal
from mccompile.codegen.vector.vector_tiles import TileSize, best_lanes, vector_headers, vector_refusal
from mccompile.codegen.windows import Axis, any_axes, known
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.argmax_pool import ArgmaxPool

LARGEST = ArgmaxPool((3, 3), (2, 2), (1, 1), (1, 1, 1, 1), ())
STEP = 5  # operations of a step: two comparisons, what they say together, and two choices


class ChannelsLast(Kernel):
    kind = ArgmaxPool

    def cases(self) -> Sequence[Case]:
        three = ArgmaxPool((2, 3, 2), (1, 2, 2), (1, 2, 1), (1,) * 6, (), column_major=True)
        dilated = replace(LARGEST, dilations=(2, 3), strides=(1, 1))
        return [
            *(_case(f"channels_{c}", LARGEST, (2, c, 7, 8), (4, 4)) for c in (1, 3, 15, 16, 17, 33, 100)),
            _case("columns", replace(LARGEST, column_major=True), (2, 5, 9, 16), (5, 8)),
            _case("dilated", dilated, (1, 20, 9, 12), (7, 8)),
            _case("1d", ArgmaxPool((4,), (3,), (1,), (0, 1), ()), (2, 12, 25), (8,)),
            _case("3d", three, (1, 6, 4, 7, 6), (5, 3, 4)),
            replace(_case("to_planar", LARGEST, (2, 19, 7, 8), (4, 4)), permute_outs={}),
            replace(_case("nan_and_ties", LARGEST, (1, 19, 7, 8), (4, 4)), values={0: _nan_and_ties((1, 19, 7, 8))}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [pool]

    def match(self, call: Call, target: Target) -> No | Needs:
        x = call.ins[0]
        reason = vector_refusal(target) or static_views(call) or channels_last_refusal(call, (), result=False)
        if reason:
            return No(reason)
        if x.buffer.dtype is not f32:
            return No("only for 32-bit floats")
        if x.strides[1] != 1 and x.shape[1] != 1:
            return No("the operand is not channels-last")
        return Needs(blocks=(best_lanes(static(x.shape[1]), target),))

    def cost(self, call: Call, target: Target) -> Cost:
        (lanes,), machine = call.blocks, target.machine
        count, channels = static(call.outs[0].type.count), static(call.ins[0].shape[1])
        vectors = count // max(channels, 1) * -(-channels // lanes)
        steps = vectors * (1 + prod(call.of(ArgmaxPool).kernel)) * STEP * lanes * 4 / target.vector_bytes
        return Cost(steps / machine.issue + 2 * count * machine.element, code=500)

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        return ["y", "place"], ["x"]

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, (lanes,) = call.of(ArgmaxPool), call.ins[0], call.blocks
        y, place = call.outs
        axes = known(any_axes(y, x, (), [place], kind.kernel, kind.strides, kind.dilations, kind.pads, join=False))
        batch, channels = static(x.shape[0]), static(x.shape[1])
        space = x.shape[2:]
        counts = dense_strides(space[::-1])[::-1] if kind.column_major else dense_strides(space)
        numbers = range(len(axes))
        inside, positions = [f"i{n}" for n in numbers], ["n", "c", *(f"p{n}" for n in numbers)]
        groups = Groups(TileSize(lanes, 1, 1), channels)
        index = index_c([static(x.strides[0]), 1, *(axis.x for axis in axes)], ["n", "c", *inside])
        parts = []
        for header, (*_, last) in zip(groups.headers("c"), groups.parts(), strict=True):
            chunk = Chunk("", last)
            stored = chunk.store(lanes, "y", index_c(y.strides, positions), "best", static(y.strides[1]))
            parts.append({"header": header, "lanes": last, "load": chunk.load(lanes, "x", index, 1), "store": stored})
        return {
            "outer": [Range("n", batch)],
            "rows": [_row(number, axis) for number, axis in enumerate(axes)],
            "taps": [_taps(number, axis) for number, axis in enumerate(axes)],
            "parts": parts,
            "of": f"f32x{lanes}",
            "integers": f"i32x{lanes}",
            "at": index_c(counts, inside),
            "image": index_c(dense_strides(x.shape)[:2], ["n", "(c + lane)"]),
            "place_at": index_c([*place.strides, place.strides[1]], [*positions, "lane"]),
        }


def _row(number: int, axis: Axis) -> dict[str, str]:
    at = f"at{number}"
    return {
        "loop": Range(f"p{number}", axis.out).header,
        "at": f"const mcc_index {at} = {axis.origin(f'p{number}')};",
        "first": "" if axis.always_inside else f"const mcc_index first{number} = {axis.first_tap(at)};",
        "end": "" if axis.always_inside else f"const mcc_index end{number} = {axis.end_tap(at)};",
    }


def _taps(number: int, axis: Axis) -> dict[str, str]:
    ends = () if axis.always_inside else (f"first{number}", f"end{number}")
    place = index_c([1, axis.dilation], [f"at{number}", f"k{number}"])
    return {
        "header": Range(f"k{number}", axis.kernel, *ends).header,
        "position": f"const mcc_index i{number} = {place};",
    }


def _nan_and_ties(shape: tuple[int, ...]) -> np.ndarray:
    numbers = (np.arange(prod(shape)) * 7 % 11 % 3).astype(np.float32)
    numbers[::13], numbers[::17] = np.nan, -np.inf
    return numbers.reshape(shape)


def pool(channels: int, height: int, width: int) -> Case:
    return _case(
        f"{channels}_{height}_{width}", LARGEST, (1, channels, height, width), (-(-height // 2), -(-width // 2))
    )


def _case(name: str, kind: ArgmaxPool, x: Shape, space: Shape) -> Case:
    last = (0, *range(2, len(x)), 1)
    outs = tuple(TensorType(dtype, (*x[:2], *space)) for dtype in (f32, i64))
    permute_outs = dict.fromkeys(range(2), last)
    kind = replace(kind, space=space)
    return Case(name, kind, (TensorType(f32, x),), outs, permute={0: last}, permute_outs=permute_outs)
