"""conv of floats with constant weights, for cores whose FPU multiplies and adds one pair at a time: tiles of two
positions x up to eight channels, whose sums stay in registers along runs of x and of weights without gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mccompile.base.dtypes import f32, i8
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import PADDED_CONV, RELU_OF_SUM, conv_case, sized_conv, with_picture
from mccompile.codegen.fpu import FpuConvKernel, RunsConv, float_refusal
from mccompile.codegen.tiles import epilogue_alias, is_constant
from mccompile.kernels.api import Call, Case, Needs, No, SizedCase, Target, static_views, supports_types
from mccompile.kinds.conv import Conv


class Runs(FpuConvKernel):
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
            *(conv_case(f"to_{n}", plain, (1, 4, 3, 7), (n, 4, 3, 3)) for n in (1, 2, 3, 4, 5, 6, 7, 10, 13, 57)),
            conv_case("groups_of_11", replace(plain, group=3), (2, 6, 4, 5), (33, 2, 3, 3)),
            _planar(conv_case("planar", plain, (2, 3, 5, 9), (10, 3, 3, 3))),
            _planar(
                conv_case("planar_strided", Conv((2, 2), (1, 1), (2, 1, 0, 2), 1, f32), (1, 2, 9, 8), (8, 2, 5, 3))
            ),
            _planar(conv_case("planar_groups", replace(plain, group=2), (1, 4, 4, 5), (6, 2, 3, 3))),
            _planar(conv_case("planar_1d", Conv((1,), (1,), (2, 2), 1, f32), (1, 6, 25), (12, 6, 5))),
            _planar(conv_case("planar_long", plain, (1, 100, 3, 6), (5, 100, 3, 3))),
            _bytes(conv_case("bytes", plain, (1, 5, 4, 9), (13, 5, 3, 3))),
            _bytes(conv_case("bytes_1x1", pointwise, (1, 700, 1, 3), (8, 700, 1, 1))),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [conv]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, w = call.of(Conv), call.ins[1]
        reason = static_views(call) or supports_types(call) or float_refusal(call, kind.fixed, kind.accumulator)
        if reason:
            return No(reason)
        if not is_constant(w) or 0 in w.shape or 0 in call.outs[0].shape:
            return No("weights are computed, or the result is empty")
        printer = self.printer(replace(call, rows=None))
        if printer.lanes_are_groups:
            return No("each group has one result, from inputs of its own")
        if not printer.has_runs:
            return No("neither channels nor taps of x are contiguous")
        rows = frozenset({2}) if len(kind.strides) > 1 else frozenset()
        alias = epilogue_alias(call, kind.fixed)
        return Needs(
            constant=frozenset({1}),
            align={1: 4},
            alias=alias,
            numeric="ulp",
            rows=rows,
            blocks=self.blocks(call, target),
        )

    def printer(self, call: Call) -> RunsConv:
        return RunsConv(call, self.parameter_names(call)[1])


def conv(c_in: int, c_out: int, width: int) -> Case:
    return sized_conv(PADDED_CONV, (1, c_in, 2, width), (c_out, c_in, 3, 3))


def _planar(case: Case) -> Case:
    return replace(case, permute={})


def _bytes(case: Case) -> Case:
    return replace(case, ins=(case.ins[0], TensorType(i8, case.ins[1].shape)))
