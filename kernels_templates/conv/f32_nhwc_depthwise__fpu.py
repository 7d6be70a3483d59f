"""Depthwise conv of floats with constant weights, for cores whose FPU multiplies and adds one pair at a time: tiles of
two positions x up to eight channels, whose sums stay in registers over the taps of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mccompile.base.dtypes import f32
from mccompile.codegen.cases import PADDED_CONV, RELU_OF_SUM, conv_case, sized_conv, with_picture
from mccompile.codegen.fpu import EachConv, FpuConvKernel
from mccompile.codegen.tiles import epilogue_alias, is_constant
from mccompile.kernels.api import Call, Case, Needs, No, SizedCase, Target, static_views, supports_types
from mccompile.kinds.conv import Conv


class Depthwise(FpuConvKernel):
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
            *(_case(f"of_{n}", plain, (1, n, 4, 5), (3, 3)) for n in (2, 3, 5, 10, 11, 13, 20, 30)),
            with_picture(_case("epilogue_of_11", replace(plain, epilogue=RELU_OF_SUM), (1, 11, 4, 7), (3, 3))),
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
            return No("weights are computed, or the result is empty")
        if w.shape[:2] != (kind.group, 1):
            return No("it is not depthwise")
        if x.strides[1] != 1:
            return No("channels of x are not contiguous")
        rows = frozenset({2}) if len(kind.strides) > 1 else frozenset()
        alias = epilogue_alias(call, kind.fixed)
        beyond = -kind.group % self.printer(replace(call, rows=None)).row  # unused lanes of the last tile
        slack = {0: f32.nbytes(beyond)} if beyond else {}
        return Needs(constant=frozenset({1}), align={1: 4}, slack=slack, alias=alias, numeric="ulp", rows=rows)

    def printer(self, call: Call) -> EachConv:
        return EachConv(call, self.parameter_names(call)[1])


def depthwise(channels: int, height: int, width: int) -> Case:
    return sized_conv(replace(PADDED_CONV, group=channels), (1, channels, height, width), (channels, 1, 3, 3))


def _case(name: str, kind: Conv, x: tuple[int, ...], window: tuple[int, ...]) -> Case:
    return conv_case(name, replace(kind, group=x[1]), x, (x[1], 1, *window))
