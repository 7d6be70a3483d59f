"""int8 3x3 depthwise conv for cores with Helium: the rows of a window lie side by side,
channel by channel, so that one instruction sums up a window.

Operands and result lie channels-last. Beside and above the image lie zero points, so borders are like the inside. In
tall images columns are taken as rows: long rows are quicker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i8
from mccompile.codegen.int8.depthwise import Depthwise3x3, depthwise_case
from mccompile.codegen.int8.dot import FARTHEST, numbers, rescaling_of, without_half
from mccompile.codegen.int8.patch_conv import conv_of
from mccompile.kernels.api import Call, Case, Cost, Needs, No, Target, viewed


class Cells(Depthwise3x3):
    types = (i8,)
    most_pad = 1

    def cases(self) -> Sequence[Case]:
        return [
            *super().cases(),
            depthwise_case("few_columns", (1, 8, 3, 3)),
            depthwise_case("few_columns_strided", (1, 24, 6, 5), strides=(2, 2)),
            depthwise_case("many_channels", (1, 40, 5, 6)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call)
        if reason:
            return No(reason)
        y, found = call.outs[0], rescaling_of(call)
        rows = max(y.lines - 1, 1)  # apart, where a ring begins again
        if 7 * (rows * static(y.strides[2]) + static(y.strides[3])) > FARTHEST:
            return No("the stride of the result is too large")
        return Needs(
            rows=frozenset({2}),
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: 15},
            scratch=_plane(call) * min(-(-static(call.ins[0].shape[1]) // 4) * 4, 16) + _over(call),
            scratch_align=4,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.macs) * 0.5 * target.machine.short_mac, code=500)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = rescaling_of(call), static(call.ins[1].shape[0])
        w = viewed(call.ins[1], constants[1])[:, 0]
        w = w if _is_high(call) else w.transpose(0, 2, 1)  # channel, column, row
        cells = np.zeros((channels, 2, 4, 4), np.int8)
        cells[:, 0, :3, :3] = w
        cells[:, 1, :3, 1:] = w
        values = numbers(call, constants, found, channels)
        if conv_of(call).x_zero:
            zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0])
            values[0] -= (zero * w.astype(np.int64).sum((1, 2))).astype(np.int32)
        return {1: cells, **dict.fromkeys(found.tables, np.ascontiguousarray(without_half(values, found.shift).T))}

    def packing(self, call: Call) -> Mapping[int, str]:
        folded = "_less_zero" if conv_of(call).x_zero else ""
        form = "helium_columns" if _is_high(call) else "helium_rows"
        return {1: form, **dict.fromkeys(rescaling_of(call).tables, f"table_channels_less_half{folded}")}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_helium_depthwise.h", "string.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        return {
            **super().context(call),
            "stride": conv_of(call).strides[0],
            "by_rows": call.rows is not None,
            "pairs": _in_pairs(call),
            "single": not _in_pairs(call) or _ends_alone(call),
            "x_line": "(row % x_lines)" if call.ins[0].lines else "row",
            "y_ring": call.outs[0].lines > 0,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, x, y = conv_of(call), call.ins[0], call.outs[0]
        row, column = (3, 2) if _is_high(call) else (2, 3)
        return {
            **self.batches(call),
            **({"x_lines": x.lines} if x.lines else {}),
            **({"y_lines": y.lines} if y.lines else {}),
            "channels": static(x.shape[1]),
            **({"height": static(y.shape[row])} if call.rows is None else {}),
            "width": static(y.shape[column]),
            "x_height": static(x.shape[row]),
            "columns": min(static(x.shape[column]), _cells(call) - 1 - kind.pads[column - 2]),
            "x_row": static(x.strides[row]),
            "x_pixel": static(x.strides[column]),
            "y_row": static(y.strides[row]),
            "y_pixel": static(y.strides[column]),
            "pad_y": kind.pads[row - 2],
            "pad_x": kind.pads[column - 2],
            "cells": _cells(call),
        }


def _in_pairs(call: Call) -> bool:
    """Are two rows computed at once?"""
    return conv_of(call).strides[0] == 1 and (call.rows is not None or min(call.outs[0].type.static_shape[2:]) > 1)


def _ends_alone(call: Call) -> bool:
    """May a last row be without a second one?"""
    rows = min(call.outs[0].type.static_shape[2:]) if call.rows is None else 1
    return conv_of(call).strides[0] == 1 and rows % 2 == 1


def _over(call: Call) -> int:
    """Bytes that a row alone reads behind the cells of the last channel: it goes by eight results."""
    blocks_of_fours = -(-_columns(call) // 4)
    return 4 * 4 * (blocks_of_fours % 2) if _ends_alone(call) else 0


def _is_high(call: Call) -> bool:
    height, width = call.outs[0].type.static_shape[2:]
    return call.rows is None and height > width


def _cells(call: Call) -> int:
    """In a row: the columns that blocks of results need, beside the image too, and one more."""
    columns, stride = _columns(call), conv_of(call).strides[1]
    return (columns + -columns % (4 * stride) - 1) * stride + 4


def _columns(call: Call) -> int:
    """Results in a row."""
    return call.outs[0].type.static_shape[2 if _is_high(call) else 3]


def _plane(call: Call) -> int:
    """Bytes of a channel."""
    return _cells(call) * 4
