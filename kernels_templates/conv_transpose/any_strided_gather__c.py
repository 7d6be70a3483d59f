"""conv_transpose in portable C: each result gathers its products; a tile of positions x channels in registers.

Along an axis with stride s, positions o, o + s, o + 2s ... meet the same taps at neighbouring inputs: they are a
convolution of stride 1 with every so-manieth tap. Positions are taken phase by phase, the taps of a phase are found
once, and those inside the image once per row; the loop over products tests nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import Dim, static, upper
from mccompile.base.dtypes import bf16, f16, f32, f64, i8, i32, u8
from mccompile.base.records import dataclass
from mccompile.base.tensor import Shape, TensorType, dense_strides
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, magnitude, size_name
from mccompile.codegen.packed_lanes import pack_rows, packed_lane_c, packed_row
from mccompile.codegen.tiles import (
    Body,
    Product,
    Range,
    Tile,
    best_tile,
    cut_sum,
    epilogue_alias,
    is_constant,
    moved,
    term_c,
)
from mccompile.codegen.traffic import has_traffic
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.ir import cast, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    Target,
    View,
    static_views,
    supports_types,
    viewed,
)
from mccompile.kinds.conv_transpose import ConvTranspose


@dataclass(frozen=True)
class Axis:
    number: int
    size: Dim  # of x
    out: Dim
    kernel: int
    stride: int
    dilation: int
    pad: int
    x: Dim  # strides of the views, in elements
    y: Dim
    w: int
    extras: tuple[Dim, ...]

    @property
    def tap_step(self) -> int:
        """From one tap that meets a position to the next one that does."""
        return self.stride // math.gcd(self.stride, self.dilation)

    @property
    def x_step(self) -> int:
        """By how much the input moves back with each."""
        return self.dilation // math.gcd(self.stride, self.dilation)


UNFILLED = 3  # a product waits as long for others where there are vectors: its tiles are scalars
PLACES = 3  # over a result of a product: which taps meet inputs is worked out for each


class Gather(Kernel):
    kind = ConvTranspose

    def cases(self) -> Sequence[Case]:
        twice = ConvTranspose((2, 2), (1, 1), (0, 0), (), 1, f32)
        nhwc = {0: (0, 2, 3, 1)}
        cases = [
            _case("2x2", twice, (1, 3, 8, 9), (3, 8, 2, 2), (16, 18)),
            _case("3x3_channels_last", replace(twice, pads=(1, 1)), (2, 5, 6, 7), (5, 4, 3, 3), (12, 14), permute=nhwc),
            _case("stride_1", replace(twice, strides=(1, 1), pads=(1, 0)), (1, 2, 9, 5), (2, 3, 3, 3), (9, 7)),
            _case("stride_over_kernel", replace(twice, strides=(3, 4)), (1, 2, 4, 3), (2, 3, 2, 2), (12, 12)),
            _case("dilated", replace(twice, dilations=(2, 3), pads=(1, 2)), (1, 2, 5, 6), (2, 3, 3, 3), (12, 15)),
            _case(
                "stride_6_by_4", ConvTranspose((6, 3), (4, 2), (2, 1), (), 1, f32), (1, 2, 4, 5), (2, 2, 4, 3), (28, 16)
            ),
            _case("cut_off", replace(twice, pads=(4, 3)), (1, 2, 4, 5), (2, 3, 3, 3), (3, 4)),
            _case("groups", replace(twice, group=2), (1, 4, 5, 5), (4, 3, 3, 3), (11, 11)),
            _case("depthwise", replace(twice, group=4), (1, 4, 9, 9), (4, 1, 4, 4), (20, 20)),
            _case("1d", ConvTranspose((4,), (1,), (2,), (), 1, f32), (2, 3, 9), (3, 5, 8), (36,)),
            _case(
                "3d",
                ConvTranspose((2, 1, 2), (1, 2, 1), (1, 0, 0), (), 1, f32),
                (1, 2, 3, 4, 3),
                (2, 3, 3, 2, 2),
                (6, 6, 7),
            ),
            _case("long_sum", twice, (1, 700, 3, 4), (700, 2, 2, 2), (6, 8)),
            _case("packed", twice, (1, 3, 8, 9), (3, 16, 2, 2), (16, 18), constant=True),
            _case("packed_groups", replace(twice, group=2), (1, 4, 5, 5), (4, 6, 3, 2), (11, 11), constant=True),
            _case(
                "packed_dilated", replace(twice, dilations=(2, 3)), (1, 2, 5, 6), (2, 9, 3, 3), (13, 17), constant=True
            ),
            _case("epilogue", replace(twice, epilogue=RELU_OF_SUM), (1, 3, 4, 5), (3, 4, 2, 2), (8, 10), extras=1),
            _case("f64", replace(twice, accumulator=f64), (1, 3, 4, 5), (3, 4, 3, 3), (9, 11), dtype=f64),
        ]
        zero, spans = replace(twice, accumulator=i32, x_zero=True, pads=(1, 0)), {0: (0.0, 255.0), 1: (-128.0, 127.0)}
        for x, w in ((u8, i8), (i8, u8)):
            shaped = _case("", zero, (1, 3, 4, 5), (3, 4, 3, 3), (7, 11))
            ins = (replace(shaped.ins[0], dtype=x), replace(shaped.ins[1], dtype=w), TensorType(x, ()))
            out = (replace(shaped.outs[0], dtype=i32),)
            cases.append(replace(shaped, name=f"integers_{x}", ins=ins, outs=out, ranges={**spans, 2: (-100.0, 100.0)}))
        for dtype in (f16, bf16):
            kind = replace(twice, epilogue=cast(operand(0, f32), dtype))
            cases.append(_case(dtype.name, kind, (1, 3, 4, 5), (3, 4, 3, 3), (9, 11), dtype=dtype))
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call, call.ins[1]) or supports_types(call)
        if reason:
            return No(reason)
        rows = frozenset({2}) if len(call.of(ConvTranspose).strides) > 1 else frozenset()
        return Needs(alias=epilogue_alias(call, call.of(ConvTranspose).fixed), rows=rows, symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        machine, results, macs = target.machine, upper(call.outs[0].type.count), upper(call.macs)
        if has_traffic(target):
            return Cost(macs * UNFILLED * machine.mac + results * machine.element, code=800)
        return Cost(macs * machine.mac + results * PLACES * machine.result, code=800)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        if not is_constant(call.ins[1]):
            return {}
        w = viewed(call.ins[1], constants[1])
        steps = w.transpose(0, *range(2, w.ndim), 1).reshape(-1, w.shape[1])  # inputs, taps; channels
        return {1: pack_rows(steps, self.printer(call).row)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"inputs_taps_{self.printer(call).row}_channels"} if is_constant(call.ins[1]) else {}

    def printer(self, call: Call) -> _Printer:
        return _Printer(call, self.parameter_names(call)[1])

    def label(self, call: Call) -> str:
        x, w = call.ins[:2]
        strides = dict.fromkeys(call.of(ConvTranspose).strides)
        kernel = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, strides))
        space = "x".join(map(size_name, x.shape[2:]))
        return f"conv_transpose_{kernel}_{space}x{x.shape[1]}_{call.outs[0].shape[1]}"

    def context(self, call: Call) -> Mapping[str, Any]:
        return self.printer(call).context()


class _Printer:
    """Works out the loops and the text of every index for one call. Counters: n batch, g group, o channel within it,
    p0.. positions, for the last axis `phase` and `m`; c input channel, k0.. taps in steps of `tap_step`. tap0.. are the
    first taps, at0.. the inputs they meet."""

    def __init__(self, call: Call, names: list[str]) -> None:
        self.kind, self.names = call.of(ConvTranspose), names
        self.x, self.w, self.y = call.ins[0], call.ins[1], call.outs[0]
        self.extras = call.ins[self.kind.fixed :]
        self.by_rows = call.rows is not None  # then the first axis is never the one along which tiles lie
        self.group_in, self.group_out = static(self.w.shape[0]) // self.kind.group, static(self.w.shape[1])
        self.w_input, self.w_lane = static(self.w.strides[0]), static(self.w.strides[1])
        self.w_taps = [static(stride) for stride in self.w.strides[2:]]
        axes = [self.axis(number) for number in range(len(self.kind.strides))]
        along = axes[1:] if self.by_rows else axes
        wide = [a for a in along if upper(a.out) >= 4 * a.stride] or [max(along, key=lambda a: upper(a.out))]
        self.point_axis = wide[-1]  # the positions of a tile lie along this one
        self.axes = [a for a in axes if a is not self.point_axis] + [self.point_axis]
        axis = self.point_axis
        count = -(-upper(axis.out) // axis.stride)
        taps = -(-axis.kernel // axis.tap_step)
        self.tile = best_tile(max(0, min(count, upper(axis.size) - (taps - 1) * axis.x_step)), self.group_out)
        channel = index_c([self.w_lane], ["o"])
        if is_constant(self.w):
            kernel = self.w.type.static_shape[2:]
            steps = static(self.w.shape[0]) * math.prod(kernel)
            self.row = packed_row(self.group_out, self.tile)
            channel = packed_lane_c("o", self.group_out, self.row, steps)
            self.w_input, self.w_lane = math.prod(kernel) * self.row, 1
            self.w_taps = [static(stride) * self.row for stride in dense_strides(kernel)]
            self.axes = [replace(a, w=self.w_taps[a.number]) for a in self.axes]
            self.point_axis = self.axes[-1]
        self.w_at = index_c(
            [1, self.w_input * self.group_in, *(a.w for a in self.axes)],
            [channel, "g", *(f"tap{a.number}" for a in self.axes)],
        )

    def axis(self, number: int) -> Axis:
        kind, at = self.kind, number + 2
        return Axis(
            number,
            self.x.shape[at],
            self.y.shape[at],
            static(self.w.shape[at]),
            kind.strides[number],
            kind.dilations[number],
            kind.pads[number],
            self.x.strides[at],
            self.y.strides[at],
            self.w_taps[number],
            tuple(view.strides[at] for view in self.extras),
        )

    def context(self) -> dict[str, Any]:
        kind, axis = self.kind, self.point_axis
        tile = self.tile
        outer = [
            Range.over("n", self.x.shape[0]),
            Range("g", kind.group),
            Range("o", self.group_out, step=tile.lanes),
        ]
        batch_and_group = [self.x.strides[0], self.x.strides[1] * self.group_in]
        numbers = [a.number for a in self.axes]
        return {
            "outer": outer,
            "rows": [a for a in self.axes if a is not axis],
            "by_rows": self.by_rows,
            "rings": ring_rows("p0", [self.y, *self.extras]),
            "axis": axis,
            "wide": self.body(tile, clamped=False) if tile.points > 1 else None,
            "single": self.body(Tile(1, tile.lanes), clamped=True),
            "scope": self.scope(outer),
            "sum_type": kind.accumulator.compute_c,
            "zero": self.zero,
            "x_at": index_c(
                [*batch_and_group, *(0 if self.in_ring(a) else a.x for a in self.axes)],
                ["n", "g", *(f"at{i}" for i in numbers)],
            ),
            "w_at": self.w_at,
            "x_in": index_c(
                [1, self.x.strides[1], *(a.x if self.in_ring(a) else -a.x * a.x_step for a in self.axes)],
                ["x_at", self.channel_counter, *map(self.tap, self.axes)],
            ),
            "w_in": index_c(
                [1, self.w_input, *(a.w * a.tap_step for a in self.axes)],
                ["w_at", self.channel_counter, *(f"k{i}" for i in numbers)],
            ),
        }

    def scope(self, outer: Sequence[Range]) -> list[str]:
        """What a tile may read of what stands around it."""
        axes = [f"{name}{axis.number}" for axis in self.axes for name in ("p", "at", "tap", "taps", "first", "end")]
        zero = [f"{self.kind.accumulator.compute_c} zero"] if self.zero else []
        rings = sorted({view.lines for view in (self.y, *self.extras) if view.lines})
        lines = [ring_row("p0", count) for count in rings]
        return [*(loop.counter for loop in outer), *axes, *lines, "phase", "m", *zero]

    def in_ring(self, axis: Axis) -> bool:
        """Does x lie in a ring along this axis?"""
        return axis.number == 0 and self.x.lines > 0

    def tap(self, axis: Axis) -> str:
        """C for which tap it is; in a ring, for the line with the row of x that it meets."""
        if not self.in_ring(axis):
            return f"k{axis.number}"
        step = "" if axis.x_step == 1 else f" * {axis.x_step}"
        return f"((at{axis.number} - k{axis.number}{step}) % {self.x.lines})"

    @property
    def zero(self) -> str:
        """C for the zero point of x, if there is one."""
        return term_c(self.x.buffer.dtype, "x_zero", "0", self.kind.accumulator) if self.kind.x_zero else ""

    @property
    def channel_counter(self) -> str:
        return "c" if self.group_in != 1 else "0"

    def sum_loops(self, clamped: bool) -> list[Range]:
        """Loops over input channels and taps, those with the largest steps through x outermost."""
        found = [(magnitude(self.x.strides[1]), Range("c", self.group_in))] if self.group_in != 1 else []
        for axis in self.axes:
            taps = -(-axis.kernel // axis.tap_step)
            if axis is self.point_axis and not clamped:
                loop = Range(f"k{axis.number}", taps, end=f"taps{axis.number}")
            else:
                loop = Range(f"k{axis.number}", taps, f"first{axis.number}", f"end{axis.number}")
            found.append((magnitude(axis.x) * axis.x_step, loop))
        found.sort(key=lambda item: -item[0])
        return [loop for _, loop in found]

    def body(self, tile: Tile, clamped: bool) -> Body:
        total = self.kind.accumulator
        around, inside = cut_sum(self.sum_loops(clamped), total)
        x_dtype, w_dtype = self.x.buffer.dtype, self.w.buffer.dtype
        loads = [
            (f"x{point}", term_c(x_dtype, "x", moved("x_in", point * self.point_axis.x), total, self.zero and "zero"))
            for point in range(tile.points)
        ]
        loads += [
            (f"w{lane}", term_c(w_dtype, "w", moved("w_in", lane * self.w_lane), total)) for lane in range(tile.lanes)
        ]
        products = tuple(
            Product(tile.result(lane, point), f"x{point}", f"w{lane}")
            for lane in range(tile.lanes)
            for point in range(tile.points)
        )
        lines, store = self.epilogue(tile)
        return Body(tile, around, inside, tuple(loads), products, tuple(lines), store)

    def epilogue(self, tile: Tile) -> tuple[list[str], str]:
        """Statements for one result of a tile, at `lane` and `point`."""
        lane = "0" if tile.lanes == 1 else "lane"
        point = "0" if tile.points == 1 else "point"

        def at(view: View, steps: Sequence[Dim]) -> str:
            lines = [0 if axis.number else view.lines for axis in self.axes[:-1]]
            positions = [ring_row(f"p{axis.number}", size) for axis, size in zip(self.axes, lines, strict=False)]
            batch, channel = view.strides[:2]
            along = steps[-1] * self.point_axis.stride
            return index_c(
                [batch, channel * self.group_out, channel, channel, *steps[:-1], steps[-1], along, along],
                ["n", "g", "o", lane, *positions, "phase", "m", point],
            )

        loads = [
            load_c(view.buffer.dtype, name, at(view, [axis.extras[number] for axis in self.axes]))
            for number, (view, name) in enumerate(zip(self.extras, self.names[self.kind.fixed :], strict=True))
        ]
        expr = self.kind.epilogue or operand(0, self.kind.accumulator)
        lines, value = to_statements(expr, ["total", *loads], local="v")
        return lines, store_c(self.y.buffer.dtype, "y", at(self.y, [axis.y for axis in self.axes]), value)


def _case(name: str, kind: ConvTranspose, x: tuple[int, ...], w: tuple[int, ...], space: Shape, **more: Any) -> Case:
    out = (x[0], w[1] * kind.group, *space)
    return Case.of_one_type(name, replace(kind, space=space), (x, w), out, **more)
