"""Depthwise conv of floats with constant weights, for cores whose FPU multiplies and adds one pair at a time: tiles of
two positions x eight channels, whose sums stay in registers over the taps of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.codegen.cases import PADDED_CONV, RELU_OF_SUM, conv_case, sized_conv, with_picture
from mccompile.codegen.direct_conv import DirectConv, DirectConvKernel
from mccompile.codegen.tiles import Range, Tile, epilogue_alias, is_constant
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views, supports_types
from mccompile.kinds.conv import Conv

LANES = 8
QUICKER = 0.6  # than the portable kernel


class Depthwise(DirectConvKernel):
    def cases(self) -> Sequence[Case]:
        plain = PADDED_CONV
        return [
            _case("3x3", plain, (2, 8, 4, 9), (3, 3)),
            _case("strided", replace(plain, strides=(2, 2)), (1, 16, 9, 8), (3, 3)),
            _case("dilated", Conv((1, 1), (2, 2), (2, 2, 2, 2), 1, f32), (1, 8, 9, 11), (3, 3)),
            _case("windows_outside", replace(plain, pads=(5, 5, 5, 5)), (1, 8, 3, 3), (3, 3)),
            _case("1x1", replace(plain, pads=(0, 0, 0, 0)), (1, 24, 3, 5), (1, 1)),
            _case("uneven", Conv((2, 1), (1, 2), (3, 0, 1, 2), 1, f32), (1, 8, 9, 10), (4, 3)),
            _case("tall", plain, (1, 8, 9, 2), (3, 3)),
            _case("one_column", plain, (1, 8, 9, 1), (3, 3)),
            _case("1d", Conv((1,), (1,), (1, 1), 1, f32), (2, 16, 13), (3,)),
            _case("long_sum", replace(plain, pads=(0, 0, 0, 0)), (1, 8, 1, 703), (1, 700)),
            with_picture(_case("epilogue", replace(plain, epilogue=RELU_OF_SUM), (1, 16, 4, 7), (3, 3))),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [depthwise]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w) = call.of(Conv), call.ins[:2]
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        if kind.accumulator is not f32 or kind.fixed != 2 or any(v.buffer.dtype is not f32 for v in (x, w)):
            return No("operands are not 32-bit floats")
        if not is_constant(w) or 0 in w.shape or 0 in call.outs[0].shape:
            return No("weights are computed, or there is nothing to compute")
        if w.shape[:2] != (kind.group, 1) or kind.group % LANES:
            return No("it is not depthwise, or channels do not come in eights")
        if x.strides[1] != 1:
            return No("channels of x do not lie side by side")
        rows = frozenset({2}) if len(kind.strides) > 1 else frozenset()
        alias = epilogue_alias(call, kind.fixed)
        return Needs(constant=frozenset({1}), align={1: 4}, alias=alias, numeric="ulp", rows=rows)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.macs) * target.machine.mac * QUICKER, code=500)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_fpu.h"})

    def printer(self, call: Call) -> _Printer:
        return _Printer(call, self.parameter_names(call)[1])


class _Printer(DirectConv):
    depthwise = True

    @property
    def run(self) -> int:
        """The axis along which weights lie side by side."""
        runs = (n for n, axis in enumerate(self.axes) if axis.w == LANES and axis.kernel > 1 and not self.in_ring(n))
        return next(runs, self.last)

    def best_tile(self, points: int, lanes: int) -> Tile:
        return Tile(min(max(points, 1), 2), LANES)

    def packed_row(self, channels: int) -> int:
        return LANES

    def context(self) -> dict[str, Any]:
        tile, run = self.axes[self.last], self.axes[self.run]
        step, tap = static(tile.x) * tile.stride, static(run.x) * run.dilation
        return {**super().context(), "step": str(step), "tap": str(tap)}

    def sum_loops(self, clamped: bool) -> list[Range]:
        """The run comes last."""
        loops, last = super().sum_loops(clamped), f"k{self.run}"
        run = next((loop for loop in loops if loop.counter == last), Range(last, 1))
        return [*(loop for loop in loops if loop.counter != last), run]


def depthwise(channels: int, height: int, width: int) -> Case:
    channels *= LANES
    return sized_conv(replace(PADDED_CONV, group=channels), (1, channels, height, width), (channels, 1, 3, 3))


def _case(name: str, kind: Conv, x: tuple[int, ...], window: tuple[int, ...]) -> Case:
    return conv_case(name, replace(kind, group=x[1]), x, (x[1], 1, *window))
