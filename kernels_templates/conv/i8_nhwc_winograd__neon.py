"""int8 conv 3x3 with stride 1 by Winograd's F(2x2, 3x3) in vectors of 16-bit integers, exactly: 16 products instead of
36, four in an instruction, where machines have none for products of bytes.

Tiles of 4x4 inputs are transformed in blocks, multiplied with all channels, element by element, and transformed back.
The blob grows by 2.6 times the weights, so it is only for those who ask for time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i8, i32, u8
from mccompile.base.marked import read
from mccompile.codegen.int8.dot_tiles import NUMBER, DotEpilogue, Place, dot_refusal
from mccompile.codegen.int8.integer_winograd import ELEMENTS, MOST_CHANNELS, transformed_integers
from mccompile.codegen.int8.patch_conv import conv_of, rescaled_case, residual_case, saturated, totals_case
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import epilogue_alias, is_constant
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import TileSize
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Prefer, Target, View, static_views, viewed
from mccompile.kinds.conv import Conv

LANES, TOGETHER = 4, 8  # sums in a vector; inputs that are read at once
BLOCK = 8  # tiles whose transforms wait in the workspace
PER_PRODUCT, PER_INPUT, PER_RESULT, PER_TILE = 0.29, 14, 24, 150  # instructions


class Winograd(Kernel):
    kind = Conv

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        inside = replace(plain, pads=(0,) * 4, x_zero=False)
        return [
            rescaled_case("3x3", plain, (1, 8, 6, 8), (8, 8, 3, 3)),
            rescaled_case("3x3_u8", plain, (1, 8, 5, 7), (12, 8, 3, 3), u8, shift=1),
            rescaled_case("inside", inside, (1, 16, 8, 5), (20, 16, 3, 3), shift=2),
            rescaled_case("one_position", inside, (1, 8, 3, 3), (4, 8, 3, 3), shift=8),
            rescaled_case("two_pictures", plain, (2, 24, 4, 3), (36, 24, 3, 3), shift=5),
            rescaled_case("uneven_pads", replace(plain, pads=(2, 0, 1, 2)), (1, 8, 4, 6), (16, 8, 3, 3), shift=3),
            rescaled_case("many_channels", plain, (1, 72, 9, 11), (4, 72, 3, 3), shift=6),
            saturated(residual_case("residual", plain, (1, 8, 4, 4), (8, 8, 3, 3))),
            saturated(residual_case("residual_odd", plain, (2, 8, 5, 3), (8, 8, 3, 3))),
            totals_case("floats", plain, (1, 16, 5, 6), (8, 16, 3, 3)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        if target.prefer != Prefer.TIME or target.option("winograd", 2) < 2:
            return No("it is for speed, at the price of a larger blob")
        reason = dot_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype is not i8 or kind.w_zero or not is_constant(w):
            return No("operands are not 8-bit integers, or weights have zero points or are computed")
        if w.shape[2:] != (3, 3) or set((*kind.strides, *kind.dilations, kind.group)) != {1} or min(kind.pads) < 0:
            return No("it is for 3x3 windows with stride 1 and one group")
        outs, inputs = static(w.shape[0]), static(w.shape[1])
        if inputs % TOGETHER or outs % LANES or inputs > MOST_CHANNELS or 0 in (*x.shape, *y.shape):
            return No("channels are not multiples of 8 and 4, or their sums do not fit 32 bits")
        epilogue = _epilogue(call)
        if not epilogue.in_vectors or x.strides[1] != 1:
            return No(epilogue.refusal or "channels of x are not contiguous")
        block = _block(call, target)
        return Needs(
            constant=frozenset({1}) | epilogue.constants,
            align={1: 4},
            alias=epilogue_alias(call, kind.fixed),
            scratch=ELEMENTS * block * (2 * inputs + NUMBER * outs) + inputs,
            scratch_align=16,
            blocks=(block, _points(target), 4),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        outs, inputs = (static(size) for size in call.ins[1].shape[:2])
        tiles = static(call.outs[0].shape[0]) * -(-_tiles(call.outs[0]) // _points(target)) * _points(target)
        each = ELEMENTS * inputs * outs * PER_PRODUCT + inputs * PER_INPUT + outs * PER_RESULT + PER_TILE
        each /= target.option("dot_instructions", 1)  # tiles of dot products count each as one
        return Cost(tiles * each, code=3000, blob=(2 * ELEMENTS - 9) * inputs * outs)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        epilogue, groups = _epilogue(call), _groups(call)
        turned = transformed_integers(viewed(call.ins[1], constants[1])).transpose(2, 0, 1)  # [element, out, input]
        tiles = [
            turned[element, first : first + vectors * LANES].T.reshape(-1)
            for element in range(ELEMENTS)
            for begin, end, vectors, _ in groups.parts()
            for first in range(begin, end, vectors * LANES)
        ]
        begins = epilogue.begins(constants).astype(np.int32).view(np.int8)
        weights = np.concatenate(tiles).astype("<i2").view(np.int8)
        return {1: np.concatenate([begins, weights]), **epilogue.pack(constants, ONE)}

    def packing(self, call: Call) -> Mapping[int, str]:
        epilogue = _epilogue(call)
        bias = "_bias" * (epilogue.bias is not None)
        return {1: f"neon_winograd_{call.blocks[2]}{bias}", **epilogue.packing(ONE)}

    def label(self, call: Call) -> str:
        x, w = call.ins[:2]
        return f"winograd2_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}_{w.shape[0]}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_neon_winograd.h"})

    def units(self, call: Call) -> Sequence[int]:
        """Blocks of tiles."""
        blocks = -(-_tiles(call.outs[0]) // call.blocks[0])
        return (1,) * blocks if call.outs[0].shape[0] == 1 else ()

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, w, y = conv_of(call), call.ins[0], call.ins[1], call.outs[0]
        names, epilogue, groups = self.parameter_names(call)[1], _epilogue(call), _groups(call)
        batch = "n" if x.shape[0] != 1 else "0"
        height, width = y.type.static_shape[2:]

        def place(view: View, name: str, at: tuple[int, int]) -> Place:
            counters = [f"(p{axis} + {more})" if more else f"p{axis}" for axis, more in enumerate(at)]
            sizes = zip(view.shape, view.strides, strict=True)
            first, channel, *others = (0 if size == 1 else static(stride) for size, stride in sizes)
            index = index_c([first, *others, channel], [batch, *counters, "o"])
            return Place(name, view, index, 0, static(view.strides[1]))

        results: list[dict[str, Any]] = []
        hoisted: tuple[str, ...] = ()
        for down in range(2):
            for across in range(2):
                places = [
                    place(view, name, (down, across))
                    for view, name in zip(call.ins[kind.fixed :], names[kind.fixed :], strict=True)
                ]
                hoisted, (lines,) = epilogue.statements(ONE, 1, 1, LANES, place(y, "y", (down, across)), places)
                there = [f"p0 + 1 < {height}"] * (down and height % 2) + [f"p1 + 1 < {width}"] * (across and width % 2)
                results.append({"header": f"if ({' && '.join(there)}) {{" if there else "{", "lines": lines})
        text = " ".join((*hoisted, *(line for result in results for line in result["lines"])))
        block, points, _ = call.blocks
        return {
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "zero": "x_zero[0]" if kind.x_zero else "0",
            "batch": static(x.shape[0]) if x.shape[0] != 1 else 0,
            "picture": index_c([1, static(x.strides[0])], ["x", batch]),
            "x_height": static(x.shape[2]),
            "x_width": static(x.shape[3]),
            "x_row": static(x.strides[2]),
            "x_pixel": static(x.strides[3]),
            "pads": kind.pads[:2],
            "tiles": _tiles(y),
            "across": -(-width // 2),
            "block": block,
            "first": f"begin * {block}" if call.workers > 1 else "0",
            "end": f" && block < end * {block}" if call.workers > 1 else "",
            "points": points,
            "inputs": static(w.shape[1]),
            "outs": static(w.shape[0]),
            "groups": [
                (header, vectors, _of_steps(points, vectors))
                for header, (_, _, vectors, _) in zip(groups.headers("o"), groups.parts(), strict=True)
            ],
            "hoisted": hoisted,
            "results": results,
            "unread": [n for n in names if n not in {"x", "w", "x_zero"} and n not in read(text).names],
        }


ONE = TileSize(LANES, 1, 1)


def _of_steps(points: int, vectors: int) -> list[str]:
    """Declarations of what four steps of a sum read and write."""
    numbers = [f"int16x8_t x{point}" for point in range(points)]
    return ["const int16_t *wp", *numbers, *(f"int32x4_t &s{p}_{v}" for p in range(points) for v in range(vectors))]


def _epilogue(call: Call) -> DotEpilogue:
    kind = conv_of(call)
    return DotEpilogue(call, kind.fixed, 1, kind.epilogue)


def _groups(call: Call) -> Groups:
    return Groups(TileSize(LANES, 1, call.blocks[2]), static(call.ins[1].shape[0]))


def _points(target: Target) -> int:
    """Tiles that are multiplied with the same weights: their sums for 16 channels lie in registers."""
    return 4 if target.option("vector_registers", 16) > 16 else 2


def _block(call: Call, target: Target) -> int:
    points = _points(target)
    return min(BLOCK, -(-_tiles(call.outs[0]) // points) * points)


def _tiles(y: View) -> int:
    """Of a picture."""
    height, width = y.type.static_shape[2:]
    return -(-height // 2) * -(-width // 2)
