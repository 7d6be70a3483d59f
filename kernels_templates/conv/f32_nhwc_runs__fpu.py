"""conv of floats with constant weights, for cores whose FPU multiplies and adds one pair at a time: tiles of two
positions x eight channels, whose sums stay in registers along runs of x and of weights without gaps.

A run is made of the input channels of all taps along the axis of the tile where those lie side by side, else of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.marked import named, sized
from mccompile.codegen.cases import PADDED_CONV, RELU_OF_SUM, conv_case, sized_conv, with_picture
from mccompile.codegen.direct_conv import DirectConv, DirectConvKernel
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import LONG, Range, Tile, epilogue_alias, is_constant
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views, supports_types
from mccompile.kinds.conv import Conv

LANES = 8
QUICKER = 0.5  # than the portable kernel


class Runs(DirectConvKernel):
    def cases(self) -> Sequence[Case]:
        plain, pointwise = PADDED_CONV, replace(PADDED_CONV, pads=(0, 0, 0, 0))
        return [
            conv_case("3x3", plain, (2, 5, 4, 9), (8, 5, 3, 3)),
            conv_case("1x1", pointwise, (1, 7, 3, 5), (24, 7, 1, 1)),
            conv_case("strided", replace(plain, strides=(2, 2)), (1, 4, 9, 8), (16, 4, 3, 3)),
            conv_case("dilated", Conv((1, 1), (2, 2), (2, 2, 2, 2), 1, f32), (1, 4, 9, 11), (8, 4, 3, 3)),
            conv_case("windows_outside", replace(plain, pads=(5, 5, 5, 5)), (1, 2, 3, 3), (8, 2, 3, 3)),
            conv_case("one_input", Conv((2, 2), (1, 1), (4, 1, 5, 1), 1, f32), (1, 1, 21, 9), (8, 1, 10, 4)),
            conv_case("groups", replace(plain, group=2), (1, 6, 4, 5), (16, 3, 3, 3)),
            conv_case("tall", plain, (1, 6, 9, 2), (8, 6, 3, 3)),
            conv_case("one_column", plain, (1, 6, 9, 1), (8, 6, 3, 3)),
            conv_case("1d", Conv((2,), (1,), (4, 1), 1, f32), (2, 3, 25), (8, 3, 4)),
            conv_case("long_sum", plain, (1, 150, 3, 6), (8, 150, 3, 3)),
            conv_case("long_run", plain, (1, 190, 3, 5), (8, 190, 3, 3)),
            conv_case("long_1x1", pointwise, (1, 700, 1, 3), (8, 700, 1, 1)),
            with_picture(conv_case("epilogue", replace(plain, epilogue=RELU_OF_SUM), (1, 3, 4, 7), (8, 3, 3, 3))),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [conv]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w) = call.of(Conv), call.ins[:2]
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        if kind.accumulator is not f32 or kind.fixed != 2 or any(v.buffer.dtype is not f32 for v in (x, w)):
            return No("operands are not 32-bit floats")
        if not is_constant(w) or 0 in w.shape or 0 in call.outs[0].shape:
            return No("weights are computed, or there is nothing to compute")
        if static(w.shape[0]) // kind.group % LANES:
            return No("output channels do not come in eights")
        if not self.printer(replace(call, rows=None)).has_runs:
            return No("neither channels nor taps of x lie side by side")
        rows = frozenset({2}) if len(kind.strides) > 1 else frozenset()
        alias = epilogue_alias(call, kind.fixed)
        return Needs(constant=frozenset({1}), align={1: 4}, alias=alias, numeric="ulp", rows=rows)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.macs) * target.machine.mac * QUICKER, code=600)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_fpu.h"})

    def printer(self, call: Call) -> _Printer:
        return _Printer(call, self.parameter_names(call)[1])


class _Printer(DirectConv):
    def __init__(self, call: Call, names: list[str]) -> None:
        super().__init__(call, names)
        self.x_input = 1

    @property
    def has_runs(self) -> bool:
        return self.merges or (self.group_in > 1 and self.call.ins[0].strides[1] == 1)

    @property
    def merges(self) -> bool:
        """Do the taps along the axis of the tile continue each other, in x and in the weights?"""
        axis = self.axes[self.last]
        beside = self.group_in == 1 or self.x.strides[1] == 1
        short = 1 < axis.kernel * self.group_in <= LONG
        return beside and short and static(axis.x) * axis.dilation * LANES == axis.w == self.group_in * LANES

    def best_tile(self, points: int, lanes: int) -> Tile:
        return Tile(min(max(points, 1), 2), LANES)

    def packed_row(self, channels: int) -> int:
        return LANES

    def context(self) -> dict[str, Any]:
        axis = self.axes[self.last]
        return {**super().context(), "step": index_c([1], [str(static(axis.x) * axis.stride)])}

    def sum_loops(self, clamped: bool) -> list[Range]:
        """The run comes last."""
        loops, last = super().sum_loops(clamped), f"k{self.last}"
        run = Range("c", self.group_in)
        if self.merges:
            run = Range("c", self.axes[self.last].kernel * self.group_in)
            found = next((loop for loop in loops if loop.counter == last and loop.end), None)
            if found is not None:
                begin, end = (f"{named(text)} * {sized(self.group_in)}" for text in (found.begin, found.end))
                run = replace(run, begin=begin, end=end)
        return [*(loop for loop in loops if loop.counter != "c" and not (self.merges and loop.counter == last)), run]


def conv(c_in: int, c_out: int, width: int) -> Case:
    return sized_conv(PADDED_CONV, (1, c_in, 2, width), (c_out * LANES, c_in, 3, 3))
