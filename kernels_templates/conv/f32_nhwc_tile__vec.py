"""conv in vectors along output channels: tiles of positions x vectors.

Operands and result may lie channels-last or planar; results are stored fastest channels-last. Positions at the left and
right edge of the image get tiles of their own in which the impossible products do not occur; above and below, the taps
inside the image are worked out once per row.

Weights are packed by the compiler where they are constant; else at run time, in the workspace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import bf16, f16, f32, i8
from mccompile.base.summation_error import SHORT, in_runs
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import PADDED_CONV, RELU_OF_SUM, conv_case, sized_conv, with_picture
from mccompile.codegen.tiles import epilogue_alias
from mccompile.codegen.vector.packed_weights import needs_of_weights, packing
from mccompile.codegen.vector.vector_conv import VectorConv, best_layout, merged_weights
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import channels_last_refusal
from mccompile.codegen.vector.vector_taps import conv_of
from mccompile.codegen.vector.vector_tiles import (
    HALF_RELU,
    WITH_BYTES,
    TileSize,
    computed_in,
    convolution_refusal,
    in_halves,
    vector_headers,
)
from mccompile.expr.ir import apply, literal, operand
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, viewed
from mccompile.kinds.conv import Conv

MOST_EDGE_TAPS = 64  # taps of tiles at the edges that are unrolled
FROM_SECOND = 32  # bytes of lines per cycle that come from the second-level cache


class ChannelsLastTile(Kernel):
    kind = Conv
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = PADDED_CONV
        pointwise = replace(plain, pads=(0, 0, 0, 0))
        sizes = [(1, 1, 1), (2, 3, 2), (3, 7, 3), (7, 2, 7), (15, 16, 15), (16, 31, 16), (17, 5, 17), (31, 8, 31)]
        cases = [
            _case(f"1x1_{pixels}x{c_in}_{c_out}", pointwise, (1, c_in, 1, pixels), (c_out, c_in, 1, 1))
            for pixels, c_in, c_out in [*sizes, (33, 17, 33), (29, 6, 24), (13, 4, 72), (5, 3, 100)]
        ]
        sizes = [(1, 3, 5), (2, 4, 8), (3, 1, 16), (15, 5, 17), (16, 3, 33), (33, 2, 7), (40, 3, 12)]
        cases += [
            _case(f"3x3_{size}x{c_in}_{c_out}", plain, (1, c_in, 4, size), (c_out, c_in, 3, 3))
            for size, c_in, c_out in sizes
        ]
        wide = Conv((2, 2), (1, 1), (3, 3, 3, 3), 1, f32)
        cases += [
            _case("strided", Conv((2, 2), (1, 1), (1, 1, 1, 1), 1, f32), (2, 5, 9, 31), (17, 5, 3, 3)),
            _case("first_layer", wide, (1, 3, 16, 37), (24, 3, 7, 7), planar=True),
            _case("planar_1x1", pointwise, (1, 5, 4, 7), (9, 5, 1, 1), planar=True),
            _case("odd", Conv((2, 3), (2, 1), (0, 2, 1, 0), 1, f32), (2, 3, 11, 37), (5, 3, 3, 2)),
            _case("dilated", Conv((1, 1), (2, 2), (2, 2, 2, 2), 1, f32), (1, 4, 9, 19), (8, 4, 3, 3)),
            _case("windows_outside", Conv((1, 1), (1, 1), (5, 5, 5, 5), 1, f32), (1, 2, 3, 3), (3, 2, 3, 3)),
            _case("1x1_padded", replace(pointwise, pads=(1, 0, 0, 2)), (1, 3, 4, 4), (4, 3, 1, 1)),
            _case("1x1_strided", Conv((2, 2), (1, 1), (0, 0, 0, 0), 1, f32), (1, 8, 6, 5), (4, 8, 1, 1)),
            _case("one_column", Conv((2, 1), (1, 1), (2, 0, 2, 0), 1, f32), (1, 6, 37, 1), (20, 6, 5, 1)),
            _case("1d", Conv((2,), (3,), (4, 1), 1, f32), (2, 3, 65), (20, 3, 4)),
            _case("3d", Conv((1, 2, 1), (1, 1, 2), (1, 0, 2, 0, 1, 2), 1, f32), (1, 2, 4, 5, 6), (3, 2, 2, 3, 2)),
            _case("long_sum", pointwise, (1, 1100, 3, 7), (18, 1100, 1, 1)),
            _case("empty_batch", plain, (0, 3, 6, 6), (4, 3, 3, 3)),
        ]
        cases += [
            replace(_case("planar_result", plain, (1, 5, 6, 17), (19, 5, 3, 3)), permute_outs={}),
            replace(_case("planar_pixel", pointwise, (1, 5, 1, 1), (19, 5, 1, 1)), permute_outs={}),
            replace(_case("planar_tail", pointwise, (2, 5, 1, 61), (35, 5, 1, 1)), permute_outs={}),
            replace(_case("planar_columns", plain, (1, 3, 5, 29), (9, 3, 3, 3)), permute_outs={}),
        ]
        for dtype in (f16, bf16, i8):
            case = _case(f"weights_{dtype}", plain, (1, 5, 6, 17), (21, 5, 3, 3))
            cases.append(replace(case, ins=(case.ins[0], TensorType(dtype, (21, 5, 3, 3)))))
        for name, repeated in [
            ("bias", (0, 2, 3)),
            ("scalar", (0, 1, 2, 3)),
            ("per_position", (1,)),
            ("residual", ()),
        ]:
            kind = replace(plain, epilogue=RELU_OF_SUM)
            case = _case(f"epilogue_{name}", kind, (1, 3, 6, 17), (19, 3, 3, 3))
            cases.append(with_picture(case, repeated))
        for group, c_in, c_out in [(2, 3, 16), (3, 7, 5), (4, 4, 4), (5, 1, 2), (6, 2, 3), (7, 1, 1), (3, 16, 33)]:
            image, window = (2, group * c_in, 5, 19), (group * c_out, c_in, 3, 3)
            cases.append(_case(f"groups_{group}x{c_in}_{c_out}", replace(plain, group=group), image, window))
        grouped = replace(plain, group=4)
        bias = _case("groups_bias", replace(grouped, epilogue=RELU_OF_SUM), (1, 12, 6, 17), (20, 3, 3, 3))
        wide = replace(grouped, strides=(2, 2), group=2)
        cases += [
            with_picture(bias, (0, 2, 3)),
            with_picture(replace(bias, name="groups_residual")),
            _case("groups_planar", grouped, (1, 8, 4, 9), (16, 2, 3, 3), planar=True),
            replace(_case("groups_planar_result", grouped, (1, 8, 4, 9), (16, 2, 3, 3)), permute_outs={}),
            _case("groups_strided", wide, (1, 40, 7, 9), (48, 20, 3, 3)),
            _case("groups_1d", Conv((1,), (1,), (1, 1), 3, f32), (1, 12, 21), (15, 4, 3)),
            _case("wide_window", Conv((1, 1), (1, 1), (1, 19, 1, 19), 1, f32), (1, 5, 3, 53), (8, 5, 3, 39)),
            _case("wide_dilated", Conv((1, 2), (1, 2), (0, 19, 0, 17), 2, f32), (1, 4, 2, 61), (12, 2, 1, 27)),
            _case("groups_far", wide, (1, 128, 3, 9), (160, 64, 3, 3)),
        ]
        x, one = operand(0, f32), literal(1, f32)
        silu = apply("div", x, apply("add", one, apply("exp", apply("neg", x))))
        half = replace(plain, epilogue=HALF_RELU)
        cases.append(
            replace(_case("planar_silu", replace(plain, epilogue=silu), (2, 3, 5, 27), (35, 3, 3, 3)), permute_outs={})
        )
        cases.append(
            replace(
                with_picture(
                    _case("planar_bias", replace(plain, epilogue=RELU_OF_SUM), (1, 3, 6, 37), (19, 3, 3, 3)), (0, 2, 3)
                ),
                permute_outs={},
            )
        )
        cases += [
            in_halves(_case("half_pieces", half, (1, 48, 4, 9), (9, 48, 3, 3))),
            in_halves(_case("half_pieces_1x1", replace(half, pads=(0, 0, 0, 0)), (1, 128, 1, 11), (17, 128, 1, 1))),
            in_halves(_case("half_rest", replace(half, pads=(0, 0, 0, 0)), (1, 108, 1, 3), (9, 108, 1, 1))),
            in_halves(_case("half_wide", half, (1, 19, 3, 12), (10, 19, 2, 7))),
            in_halves(_case("half_first", replace(half, pads=(2, 2, 2, 2)), (1, 3, 7, 12), (10, 3, 5, 5), planar=True)),
            in_halves(_case("half_1x1", replace(half, pads=(0, 0, 0, 0)), (1, 19, 1, 13), (21, 19, 1, 1))),
            in_halves(_case("half_3x3", half, (1, 8, 4, 17), (35, 8, 3, 3))),
            in_halves(_case("half_groups", replace(half, group=3), (1, 12, 4, 9), (15, 4, 3, 3))),
            in_halves(_case("half_strided", replace(half, strides=(2, 2)), (2, 3, 7, 9), (4, 3, 3, 3), planar=True)),
        ]
        cases += [
            _at_run_time(case)
            for case in (
                _case("3x3", plain, (2, 5, 6, 17), (35, 5, 3, 3)),
                _case("strided", Conv((2, 2), (1, 1), (1, 1, 1, 1), 1, f32), (1, 5, 9, 31), (17, 5, 3, 3)),
                _case("1x1", pointwise, (1, 17, 1, 33), (33, 17, 1, 1)),
                _case("many_inputs", plain, (1, 19, 4, 9), (35, 19, 3, 3)),
                _turned(_case("by_inputs", plain, (2, 19, 4, 9), (70, 19, 3, 3))),
                _case("few_points", pointwise, (1, 24, 7, 7), (80, 24, 1, 1)),
                _case("by_weights", Conv((1, 1), (2, 2), (1, 1, 1, 1), 1, f32), (6, 3, 15, 17), (20, 3, 7, 8)),
                _case("planar", replace(plain, epilogue=None), (1, 3, 5, 9), (4, 3, 3, 3), planar=True),
                with_picture(
                    _case("bias", replace(plain, epilogue=RELU_OF_SUM), (1, 3, 6, 17), (19, 3, 3, 3)), (0, 2, 3)
                ),
            )
        ]
        cases.append(_case("few_points", pointwise, (1, 24, 7, 7), (80, 24, 1, 1)))  # workers share tiles
        cases.append(_case("epilogue_silu", replace(plain, epilogue=silu), (2, 3, 5, 17), (35, 3, 3, 3)))
        short = replace(plain, rounding=SHORT)
        grouped, wide = replace(short, group=2, epilogue=RELU_OF_SUM), replace(short, strides=(2, 2), pads=(3, 3, 3, 3))
        biased = _case("runs_groups_bias", grouped, (1, 22, 3, 17), (20, 11, 3, 3))
        return [
            *cases,
            _case("runs_of_rows", short, (1, 2, 4, 9), (7, 2, 3, 3)),
            _case("runs_of_taps", replace(short, strides=(2, 1)), (1, 7, 5, 19), (20, 7, 3, 3)),
            with_picture(biased, (0, 2, 3)),  # runs of single taps
            _case("runs_first_layer", wide, (1, 3, 8, 37), (24, 3, 7, 7), planar=True),
            _case("runs_long", replace(short, pads=(0, 0, 0, 0)), (1, 67, 3, 29), (100, 67, 1, 1)),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [conv, pointwise, grouped]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = conv_of(call)
        packs = _packs(call)
        reason = convolution_refusal(call, target, WITH_BYTES, packs)
        reason = reason or channels_last_refusal(call, call.ins[2:], result=False)
        if reason:
            return No(reason)
        layout, size, cut = best_layout(call, target)
        if layout.edge_taps(size) > MOST_EDGE_TAPS:
            return No("the window is too wide to unroll at the edges")
        if not VectorConv(call, layout.merged).reaches:
            return No("no window reaches the input")
        one_tile = packs and not layout.points_outside(size, cut)
        layout = VectorConv(call, layout.merged, one_tile, layout.by_point)
        blocks = (size.lanes, size.points, size.vectors, size.together, cut, layout.merged, one_tile, layout.by_point)
        rows = frozenset({2}) if len(kind.strides) > 1 and not packs else frozenset()
        alias, needs = epilogue_alias(call, kind.fixed), needs_of_weights(packs, layout.weights(size))
        return Needs(alias=alias, numeric="ulp", blocks=blocks, rows=rows, **needs)

    def cost(self, call: Call, target: Target) -> Cost:
        layout, size, _ = best_layout(call, target)
        cycles = layout.cycles(size, target)
        code = layout.code_bytes(size)
        zeros = layout.weights(size) - static(call.ins[1].type.count)
        if call.outs[0].strides[1] != 1 and not layout.planar:
            cycles += static(call.outs[0].type.count)  # stored one by one
        if _packs(call):
            cycles += _scattered(call, layout, size, target)
            return Cost(cycles + layout.weights(size) * 1.2, code=code)
        return Cost(cycles, code=code, blob=zeros * 4)

    def rounding(self, call: Call) -> float:
        *size, _, merged, _, by_point = call.blocks
        layout = VectorConv(call, merged, by_point=bool(by_point))
        return in_runs(layout.depth, layout.terms_of_run(TileSize(*size).together))

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        *size, _, merged, _, by_point = call.blocks
        if 1 not in constants:
            return {}
        layout = VectorConv(call, merged, by_point=bool(by_point))
        groups = Groups(TileSize(*size), layout.channels)
        w = merged_weights(viewed(call.ins[1], constants[1]), conv_of(call).group, merged)
        padded = np.zeros((w.shape[0], groups.padded, *w.shape[2:]), w.dtype)
        padded[:, : layout.channels] = w
        order = (0, *range(3, w.ndim), 2, 1)
        tiles = [
            padded[:, first : first + vectors * groups.size.lanes].transpose(order).reshape(w.shape[0], -1)
            for begin, end, vectors, _ in groups.parts()
            for first in range(begin, end, vectors * groups.size.lanes)
        ]
        return {1: np.concatenate(tiles, axis=1).reshape(-1)}

    def packing(self, call: Call) -> Mapping[int, str]:
        lanes, _, vectors, *_, merged, _, _ = call.blocks
        return {1: f"conv channels in {vectors}x{lanes}" + (f" of {merged} groups" if conv_of(call).group > 1 else "")}

    def label(self, call: Call) -> str:
        kind, (x, w) = conv_of(call), call.ins[:2]
        window = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        groups = f"g{kind.group}" if kind.group > 1 else ""
        return f"conv_{window}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}_{w.shape[0]}{groups}"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call, computed_in(call))

    def units(self, call: Call) -> Sequence[int]:
        if call.rows is not None:
            return super().units(call)
        *size, cut, merged, _, by_point = call.blocks
        return VectorConv(call, merged, by_point=bool(by_point)).units(TileSize(*size), cut).sizes

    def varies(self, call: Call, target: Target) -> Sequence[str]:
        merged = call.blocks[-3]
        again = ["results that are not finite are computed again, group by group"] if merged > 1 else []
        return [*again, *super().varies(call, target)]

    def context(self, call: Call) -> Mapping[str, Any]:
        *size, cut, merged, one_tile, by_point = call.blocks
        layout, names = VectorConv(call, merged, bool(one_tile), bool(by_point)), self.parameter_names(call)[1]
        packed = packing(call.ins[1], TileSize(*size), layout.one_tile) if _packs(call) else ()
        return {**layout.context(TileSize(*size), cut, names), "packing": packed, "one_tile": one_tile}


def _packs(call: Call) -> bool:
    return conv_of(call).group == 1 and computed_in(call) is f32 and call.ins[1].buffer.constant is None


def _scattered(call: Call, layout: VectorConv, size: TileSize, target: Target) -> float:
    """Cycles in which lines arrive from the second-level cache of which a step of a sum reads one number: neighbours in
    memory are images of the batch, as where a gradient is summed up, and the first-level cache does not hold them."""
    machine, along = target.machine, abs(layout.points.x * layout.points.dilation) * 4
    held = machine.sets * machine.ways * machine.line
    if layout.run > 1 or along < machine.line or static(call.ins[0].type.count) * 4 <= held:
        return 0.0
    tiles = sum(count for _, _, count, _ in layout.cover(size)) * -(-layout.channels // size.channels)
    steps = tiles * layout.batch * math.prod(axis.out for axis in layout.rows) * layout.depth
    return steps * machine.line / FROM_SECOND


def conv(c_in: int, c_out: int, width: int) -> Case:
    return sized_conv(PADDED_CONV, (1, c_in, 2, width), (c_out, c_in, 3, 3))


def pointwise(c_in: int, c_out: int, width: int) -> Case:
    return sized_conv(replace(PADDED_CONV, pads=(0, 0, 0, 0)), (1, c_in, 1, width), (c_out, c_in, 1, 1))


def grouped(c_in: int, c_out: int, width: int) -> Case:
    return sized_conv(replace(PADDED_CONV, group=3), (1, 3 * c_in, 2, width), (3 * c_out, c_in, 3, 3))


def _at_run_time(case: Case) -> Case:
    return replace(case, name=f"run_time_{case.name}", constant=frozenset())


def _turned(case: Case) -> Case:
    """Weights lie as where a gradient goes back to the inputs."""
    return replace(case, permute={**case.permute, 1: (1, 0, 2, 3)})


def _case(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...], planar: bool = False) -> Case:
    case = conv_case(name, kind, x, w)
    return replace(case, permute={}) if planar else case
