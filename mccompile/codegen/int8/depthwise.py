"""What int8 3x3 depthwise convolutions share on targets without SIMD dot products (mcc_dot.h): what they can do, their
names, and the sizes of the images.

Operands and result are channels-last (NHWC); the epilogue only requantizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ...base.dims import static
from ...base.dtypes import DType, i8, i32, u8
from ...kernels.api import Call, Case, Kernel, static_views
from ...kinds.conv import Conv
from ..tiles import is_constant
from .dot import IN_TABLE, SHORT_SHIFTS, TABLE, rescaling_in, rescaling_of
from .patch_conv import conv_of, rescaled_case


class Depthwise3x3(Kernel):
    kind = Conv
    branches = ""
    types: ClassVar[tuple[DType, ...]] = (i8, u8)  # of x
    least: ClassVar[int] = 1  # channels
    stored: ClassVar[tuple[DType, ...]] = (i8,)  # types of weights
    shifts: ClassVar[range] = SHORT_SHIFTS
    raises: ClassVar[bool] = False  # may sums be raised before they are rescaled?
    packs: ClassVar[bool] = False  # also by what their multipliers say?
    strides: ClassVar[tuple[tuple[int, int], ...]] = ((1, 1), (2, 2))  # none listed: any
    most_pad: ClassVar[int] = 2

    def cases(self) -> Sequence[Case]:
        return [
            depthwise_case("even", (1, 8, 6, 6), shift=1),
            depthwise_case("odd", (1, 8, 7, 5), shift=2),
            depthwise_case("one_row", (1, 8, 1, 4), shift=3),
            depthwise_case("ten_channels", (1, 10, 6, 5)),
            depthwise_case("strided_23_channels", (2, 23, 7, 5), shift=3, strides=(2, 2)),
            *[depthwise_case(dtype.name, (1, 8, 5, 4), dtype) for dtype in self.types if dtype is not i8],
            depthwise_case("two_pictures", (2, 8, 4, 9), shift=5),
            depthwise_case("bands", (1, 8, 25, 31)),
            depthwise_case("bands_two_pictures", (2, 8, 24, 41)),
            depthwise_case("not_padded", (1, 8, 6, 7), shift=6, pads=(0,) * 4, x_zero=False),
            depthwise_case("strided", (1, 8, 8, 8), shift=7, strides=(2, 2), pads=(0, 0, 1, 1)),
            depthwise_case("strided_odd", (1, 8, 9, 7), shift=8, strides=(2, 2)),
            depthwise_case("strided_bands", (1, 8, 48, 96), strides=(2, 2), pads=(1, 0, 0, 1)),
        ]

    def refusal(self, call: Call) -> str:
        """Why this call is not for it, or nothing."""
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        reason = static_views(call)
        if reason:
            return reason
        found = rescaling_in(call, self.raises)
        if found is None or found.rest is not None or not found.fits(self.shifts, self.packs):
            return "the epilogue does more than requantize to 8 bits, or its multiplier or shift is out of range"
        if x.buffer.dtype not in self.types or found.dtype not in self.types:
            return f"x or the result is not {' or '.join(dtype.name for dtype in self.types)}"
        constants = all(map(is_constant, (w, *call.ins[2 : kind.fixed])))
        if w.buffer.dtype not in self.stored or kind.w_zero or not constants:
            return "weights are not 8-bit integers, have zero points, or are computed"
        channels = static(x.shape[1])
        if w.shape != (channels, 1, 3, 3) or kind.group != channels or channels < self.least:
            return "it is not a 3x3 depthwise convolution, or has too few channels"
        if kind.dilations != (1, 1) or (self.strides and kind.strides not in self.strides):
            return "strides are neither 1 nor 2, or there are dilations"
        if 0 in (*x.shape, *y.shape) or max(kind.pads) > self.most_pad:
            return "the result is empty, or windows lie outside the input"
        if any(view.strides[1] != 1 and view.shape[1] != 1 for view in (x, y)):
            return "x and the result are not channels-last"
        return ""

    def label(self, call: Call) -> str:
        height, width = call.ins[0].shape[2:]
        stride = "x".join(map(str, dict.fromkeys(conv_of(call).strides)))
        return f"depthwise_3x3s{stride}_{height}x{width}x{call.ins[0].shape[1]}"

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        fixed = ["x", "w", *["x_zero"] * conv_of(call).x_zero]
        names = dict(zip(rescaling_of(call).tables, (TABLE, *IN_TABLE), strict=False))
        return ["y"], [*fixed, *(names[index] for index in range(len(fixed), len(call.ins)))]

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(IN_TABLE)

    def family(self, call: Call) -> str:
        return f"depthwise_3x3s{conv_of(call).strides[0]}" if self.strides else "depthwise_3x3"

    def context(self, call: Call) -> Mapping[str, Any]:
        x, found = call.ins[0], rescaling_of(call)
        return {
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "y_type": found.dtype.name,
            "form": found.form,
            "shift": found.shift,
            "table_rows": len(found.tables),
            "zero": conv_of(call).x_zero,
            "several": x.shape[0] != 1,
        }

    def batches(self, call: Call) -> dict[str, int]:
        """Sizes that only calls of several pictures have."""
        x, y = call.ins[0], call.outs[0]
        if x.shape[0] == 1:
            return {}
        return {"batch": static(x.shape[0]), "x_batch": static(x.strides[0]), "y_batch": static(y.strides[0])}


def depthwise_case(
    name: str, x: tuple[int, ...], dtype: DType = i8, shift: int = 4, short: bool = False, **parameters: Any
) -> Case:
    plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), x[1], i32, x_zero=True)
    return rescaled_case(name, replace(plain, **parameters), x, (x[1], 1, 3, 3), dtype, shift, short)
