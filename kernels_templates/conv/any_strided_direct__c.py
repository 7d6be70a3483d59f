"""conv in portable C: a tile of positions x channels in registers, any strides, any number of dimensions.

Padding is never read: along all axes but one the taps inside the image are worked out once per row; along that one,
positions whose windows lie inside are taken several at a time, those at the edges one at a time with their own taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dtypes import bf16, f16, f32, f64, i8, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.direct_conv import DirectConvKernel
from mccompile.expr.ir import cast, operand
from mccompile.kernels.api import Case
from mccompile.kinds.conv import Conv


class Direct(DirectConvKernel):
    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32)
        nhwc = {0: (0, 2, 3, 1)}
        cases = [
            _case("3x3", plain, (1, 3, 8, 9), (8, 3, 3, 3)),
            _case("3x3_channels_last", plain, (2, 5, 8, 9), (6, 5, 3, 3), permute=nhwc),
            _case("odd", Conv((2, 3), (2, 1), (0, 2, 1, 0), 1, f32), (2, 3, 11, 7), (5, 3, 3, 2)),
            _case("windows_outside", Conv((1, 1), (1, 1), (5, 5, 5, 5), 1, f32), (1, 2, 3, 3), (3, 2, 3, 3)),
            _case("dilated_outside", Conv((1, 1), (4, 3), (4, 3, 4, 3), 1, f32), (1, 2, 3, 4), (3, 2, 3, 3)),
            _case("1x1", replace(plain, pads=(0,) * 4), (2, 7, 5, 3), (13, 7, 1, 1)),
            _case("1x1_padded", replace(plain, pads=(1, 0, 0, 2)), (1, 3, 4, 4), (4, 3, 1, 1)),
            _case("1x1_strided", Conv((2, 2), (1, 1), (0, 0, 0, 0), 1, f32), (1, 8, 6, 5), (4, 8, 1, 1)),
            _case("groups", replace(plain, group=3), (1, 6, 6, 6), (12, 2, 3, 3)),
            _case("depthwise", replace(plain, group=6), (1, 6, 12, 13), (6, 1, 3, 3)),
            _case("depthwise_channels_last", replace(plain, group=7), (1, 7, 6, 5), (7, 1, 3, 3), permute=nhwc),
            _case("depthwise_multiplier", replace(plain, group=4), (1, 4, 6, 5), (8, 1, 3, 3), permute=nhwc),
            _case("1d", Conv((2,), (3,), (4, 1), 1, f32), (2, 3, 25), (5, 3, 4)),
            _case("3d", Conv((1, 2, 1), (1, 1, 2), (1, 0, 2, 0, 1, 2), 1, f32), (1, 2, 4, 5, 6), (3, 2, 2, 3, 2)),
            _case("tall", Conv((1, 1), (1, 1), (1, 0, 1, 0), 1, f32), (1, 3, 12, 3), (4, 3, 3, 3)),
            _case("long_sum", replace(plain, pads=(0,) * 4), (1, 160, 5, 6), (3, 160, 3, 3)),
            _case("long_sum_channels_last", plain, (1, 150, 5, 6), (3, 150, 3, 3), permute=nhwc),
            _case("weights_transposed", plain, (1, 3, 6, 6), (4, 3, 3, 3), permute={1: (2, 3, 1, 0)}),
            _case("packed", plain, (1, 3, 8, 9), (12, 3, 3, 3), constant=True),
            _case("packed_channels_last", plain, (1, 16, 8, 9), (16, 16, 3, 3), permute=nhwc, constant=True),
            _case("packed_transposed", plain, (1, 3, 8, 9), (6, 3, 3, 3), permute={1: (2, 3, 1, 0)}, constant=True),
            _case("packed_groups", replace(plain, group=2), (1, 6, 6, 6), (8, 3, 3, 2), constant=True),
            _case("packed_1x1", replace(plain, pads=(0,) * 4), (2, 7, 5, 3), (13, 7, 1, 1), constant=True),
            _case("packed_depthwise", replace(plain, group=8), (1, 8, 6, 9), (8, 1, 3, 3), permute=nhwc, constant=True),
            _case(
                "packed_tall", Conv((1, 2), (1, 1), (1, 0, 1, 0), 1, f32), (1, 3, 12, 3), (4, 3, 3, 2), constant=True
            ),
            _case("epilogue", replace(plain, epilogue=RELU_OF_SUM), (1, 3, 6, 7), (4, 3, 3, 3), extras=1),
            _case("empty_batch", plain, (0, 3, 6, 6), (4, 3, 3, 3)),
            _case("f64", replace(plain, accumulator=f64), (1, 3, 6, 7), (4, 3, 3, 3), dtype=f64),
        ]
        for dtype in (f16, bf16):
            kind = replace(plain, epilogue=cast(operand(0, f32), dtype))
            cases.append(_case(dtype.name, kind, (1, 3, 6, 7), (4, 3, 3, 3), dtype=dtype))
        mixed = (TensorType(f32, (1, 3, 6, 7)), TensorType(i8, (4, 3, 3, 3)))
        for name, constants in (("bytes", frozenset[int]()), ("packed_bytes", frozenset({1}))):
            out = (TensorType(f32, (1, 4, 6, 7)),)
            cases.append(Case(name, plain, mixed, out, constant=constants, ranges={1: (-128.0, 127.0)}))
        integers = replace(plain, accumulator=i32, x_zero=True, w_zero=True, pads=(1, 0, 1, 2))
        x, w = TensorType(u8, (1, 3, 6, 7)), TensorType(i8, (4, 3, 3, 3))
        zeros = (TensorType(u8, ()), TensorType(i8, (4,)))
        out = (TensorType(i32, integers.out_shape(x.shape, w.shape)),)
        ranges = {0: (0, 255), 1: (-128, 127), 2: (0, 255), 3: (-9, 9)}
        cases.append(Case("integers", integers, (x, w, *zeros), out, ranges=ranges))
        return cases


def _case(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...], **more: Any) -> Case:
    return Case.of_one_type(name, kind, (x, w), kind.out_shape(x, w), **more)
