"""conv of 8-bit integers, 3x3, each channel for itself, for cores that multiply 32 bits, once at a time: every element
of three rows is multiplied with the three weights of its row, which gives the sums around all columns.

Operands and result lie channels-last. A row outside of the image has weights of zero; columns outside are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i8, i32, u8
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, viewed
from mccompile.kernels.dot import numbers, rescaling
from mccompile.kernels.patch_conv import conv_of, rescaled_case, rescaling_of
from mccompile.kernels.tiles import is_constant
from mccompile.kinds.conv import Conv


class Depthwise(Kernel):
    kind = Conv
    isa = "scalar"

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 8, i32, x_zero=True)
        return [
            rescaled_case("even", plain, (1, 8, 6, 6), (8, 1, 3, 3)),
            rescaled_case("odd_channels", replace(plain, group=5), (1, 5, 7, 5), (5, 1, 3, 3)),
            rescaled_case("one_row", plain, (1, 8, 1, 4), (8, 1, 3, 3)),
            rescaled_case("one_column", plain, (1, 8, 4, 1), (8, 1, 3, 3)),
            rescaled_case("u8", plain, (1, 8, 5, 4), (8, 1, 3, 3), u8),
            rescaled_case("two_pictures", plain, (2, 8, 4, 9), (8, 1, 3, 3)),
            rescaled_case("not_padded", replace(plain, pads=(0,) * 4, x_zero=False), (1, 8, 6, 7), (8, 1, 3, 3)),
            rescaled_case("wide_pads", replace(plain, pads=(2, 2, 2, 2)), (1, 8, 4, 3), (8, 1, 3, 3)),
            rescaled_case("strided", replace(plain, strides=(2, 2), pads=(0, 0, 1, 1)), (1, 8, 8, 8), (8, 1, 3, 3)),
            rescaled_case("strided_odd", replace(plain, strides=(2, 2)), (1, 8, 9, 7), (8, 1, 3, 3)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        reason = static_views(call)
        if reason:
            return No(reason)
        found = rescaling(call, kind.fixed, kind.epilogue)
        if found is None or found.rest is not None or found.shift > 31:
            return No("sums are not just rescaled to 8 bits with short numbers")
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype is not i8 or kind.w_zero:
            return No("operands are not of 8 bits, or weights have zero points")
        channels = static(x.shape[1])
        if w.shape != (channels, 1, 3, 3) or kind.group != channels or kind.dilations != (1, 1):
            return No("this is not 3x3 for each channel, or there are dilations")
        if 0 in (*x.shape, *y.shape) or not all(map(is_constant, (w, *call.ins[2 : kind.fixed]))):
            return No("there is nothing to compute, or weights are computed")
        if any(view.strides[1] != 1 and view.shape[1] != 1 for view in (x, y)):
            return No("x and the result do not lie channels-last")
        if x.shape[3] != 1 and static(x.strides[3]) < 1:
            return No("columns do not follow each other")
        last = (static(y.shape[3]) - 1) * kind.strides[1] + 1 - kind.pads[1]
        if max(kind.pads) > 2 or last > static(x.shape[3]):
            return No("windows lie outside of the image")
        return Needs(
            rows=frozenset({2}),
            constant=frozenset({1, *found.tables}),
            align={found.bias: 4},
            scratch=(static(x.shape[3]) + 2) * 4,
            scratch_align=4,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        macs = static(call.kind.macs([v.type for v in call.ins], [v.type for v in call.outs]))
        return Cost(macs * 2e-10, code=400)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = rescaling_of(call), static(call.ins[1].shape[0])
        table = np.ascontiguousarray(numbers(call, constants, found, channels).T)
        w = np.ascontiguousarray(viewed(call.ins[1], constants[1]))
        return {1: w, **dict.fromkeys(found.tables, table)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: "channels_rows_columns", **dict.fromkeys(rescaling_of(call).tables, "table_channels")}

    def label(self, call: Call) -> str:
        height, width = call.ins[0].shape[2:]
        stride = "x".join(map(str, dict.fromkeys(conv_of(call).strides)))
        return f"depthwise_3x3s{stride}_{height}x{width}x{call.ins[0].shape[1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_scalar.h"})

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        return ["y"], ["x", "w", *["x_zero"] * conv_of(call).x_zero, "table", "same0", "same1"]

    def family(self, call: Call) -> str:
        return "depthwise_3x3"

    def context(self, call: Call) -> Mapping[str, Any]:
        x, y, found = call.ins[0], call.outs[0], rescaling_of(call)
        return {
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "y_type": found.dtype.name,
            "shift": found.shift,
            "zero": conv_of(call).x_zero,
            "several": x.shape[0] != 1,
            "by_rows": call.rows is not None,
            "x_ring": x.lines > 0,
            "y_ring": y.lines > 0,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, x, y = conv_of(call), call.ins[0], call.outs[0]
        several = {"batch": static(x.shape[0]), "x_batch": static(x.strides[0]), "y_batch": static(y.strides[0])}
        return {
            **(several if x.shape[0] != 1 else {}),
            **({"x_lines": x.lines} if x.lines else {}),
            **({"y_lines": y.lines} if y.lines else {}),
            **({"height": static(y.shape[2])} if call.rows is None else {}),
            "channels": static(x.shape[1]),
            "width": static(y.shape[3]),
            "x_height": static(x.shape[2]),
            "x_width": static(x.shape[3]),
            "x_row": static(x.strides[2]),
            "x_pixel": static(x.strides[3]) if x.shape[3] != 1 else 1,
            "y_row": static(y.strides[2]),
            "y_pixel": static(y.strides[3]),
            "stride_y": kind.strides[0],
            "stride_x": kind.strides[1],
            "pad_y": kind.pads[0],
            "pad_x": kind.pads[1],
        }
