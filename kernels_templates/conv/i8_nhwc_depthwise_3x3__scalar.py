"""conv of 8-bit integers, 3x3, each channel for itself, for cores without SIMD: every element
of three rows is multiplied with the three weights of its row, which gives the sums around all columns.

Operands and result lie channels-last. A row outside of the image has weights of zero; columns outside are left out.
Rows of results whose windows lie inside of the image are made one after the other for each channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.codegen.int8.depthwise import Depthwise3x3, depthwise_case
from mccompile.codegen.int8.dot import numbers, rescaling_of
from mccompile.codegen.int8.patch_conv import conv_of
from mccompile.codegen.int8.two_parts import in_two_parts, less_zero, saves
from mccompile.kernels.api import Call, Case, Cost, Needs, No, Target, viewed

PRODUCT, COLUMN = 1.7, 11.0  # of what a product takes where an instruction makes two; instructions around nine
ROW, ALONE = 60.0, 60.0  # instructions of a channel's row of results, and more where each row is a call of its own
TWO_PARTS = 17.0  # instructions of a result that is rescaled in two parts
RESULT = 0.75  # of what one takes in plain C, else


class Depthwise(Depthwise3x3):
    shifts = range(32)
    strides = ()

    def cases(self) -> Sequence[Case]:
        return [
            *super().cases(),
            depthwise_case("odd_channels", (1, 5, 7, 5)),
            depthwise_case("one_column", (1, 8, 4, 1)),
            depthwise_case("wide_pads", (1, 8, 4, 3), pads=(2, 2, 2, 2)),
            depthwise_case("two_rows_inside", (2, 3, 9, 4), strides=(3, 1), pads=(1, 0, 2, 1)),
            depthwise_case("rows_to_the_end", (1, 3, 7, 4), strides=(2, 1), pads=(0, 1, 0, 1)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call)
        if reason:
            return No(reason)
        kind, x, y, found = conv_of(call), call.ins[0], call.outs[0], rescaling_of(call)
        if x.shape[3] != 1 and static(x.strides[3]) < 1:
            return No("columns are not contiguous")
        last = (static(y.shape[3]) - 1) * kind.strides[1] + 1 - kind.pads[1]
        if last > static(x.shape[3]):
            return No("windows lie outside the input")
        return Needs(
            rows=frozenset({2}),
            constant=frozenset({1, *found.tables}),
            align={found.bias: 4},
            scratch=(static(x.shape[3]) + 2) * 4,
            scratch_align=4,
            blocks=(int(saves(target)),),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        x, y, machine = call.ins[0], call.outs[0], target.machine
        rows = static(y.shape[0]) * static(y.shape[1]) * static(y.shape[2])
        columns = rows * static(x.shape[3]) * (9 * PRODUCT * machine.short_mac + COLUMN)
        result = TWO_PARTS if saves(target) else RESULT * machine.result
        around = ROW + (ALONE if call.rows is not None or x.lines or y.lines else 0.0)
        return Cost(columns + rows * (around + static(y.shape[3]) * result), code=440)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = rescaling_of(call), static(call.ins[1].shape[0])
        values, w = numbers(call, constants, found, channels), np.ascontiguousarray(viewed(call.ins[1], constants[1]))
        if call.blocks[0]:
            values = in_two_parts(values, w.reshape(channels, -1), less_zero(call.ins[0].buffer.dtype), found, lanes=1)
        return {1: w, **dict.fromkeys(found.tables, np.ascontiguousarray(values.T))}

    def packing(self, call: Call) -> Mapping[int, str]:
        table = "table_channels" + "_parts" * call.blocks[0]
        return {1: "channels_rows_columns", **dict.fromkeys(rescaling_of(call).tables, table)}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_scalar_depthwise.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        return {
            **super().context(call),
            "by_rows": call.rows is not None,
            "round": "round" if call.blocks[0] else "long",
            "x_ring": call.ins[0].lines > 0,
            "y_ring": call.outs[0].lines > 0,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, x, y = conv_of(call), call.ins[0], call.outs[0]
        return {
            **self.batches(call),
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
