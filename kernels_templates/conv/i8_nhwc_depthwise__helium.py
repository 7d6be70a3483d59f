"""conv of 8-bit integers, 3x3, each channel for itself, for cores with Helium: the rows of a window lie side by side,
channel by channel, so that one instruction sums up a window.

Operands and result lie channels-last. Beside and above the image lie zero points, so borders are like the inside. Of
high pictures the columns are taken for rows: long rows are quicker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i8, i32
from mccompile.base.tensor import TensorType
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    Target,
    static_views,
    viewed,
)
from mccompile.kernels.dot import FARTHEST, Rescaling, epilogue_of, numbers, rescaling, without_half
from mccompile.kernels.tiles import is_constant
from mccompile.kinds.conv import Conv


class Cells(Kernel):
    kind = Conv
    isa = "helium"

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 8, i32, x_zero=True)
        return [
            _case("even", plain, (1, 8, 6, 6)),
            _case("odd", plain, (1, 8, 7, 5)),
            _case("one_row", plain, (1, 8, 1, 4)),
            _case("few_columns", plain, (1, 8, 3, 3)),
            _case("few_columns_strided", replace(plain, strides=(2, 2), group=24), (1, 24, 6, 5)),
            _case("many_channels", replace(plain, group=40), (1, 40, 5, 6)),
            _case("bands", plain, (1, 8, 25, 31)),
            _case("bands_two_pictures", plain, (2, 8, 24, 41)),
            _case("not_padded", replace(plain, pads=(0,) * 4, x_zero=False), (1, 8, 6, 7)),
            _case("strided", replace(plain, strides=(2, 2), pads=(0, 0, 1, 1)), (1, 8, 8, 8)),
            _case("strided_odd", replace(plain, strides=(2, 2)), (1, 8, 9, 7)),
            _case("strided_bands", replace(plain, strides=(2, 2), pads=(1, 0, 0, 1)), (1, 8, 48, 96)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = _kind(call), call.ins[:2], call.outs[0]
        reason = static_views(call)
        if reason:
            return No(reason)
        found = rescaling(call, kind.fixed, kind.epilogue)
        if found is None or found.rest is not None or not found.form:
            return No("sums are not just rescaled to 8 bits with short numbers")
        if x.buffer.dtype is not i8 or w.buffer.dtype is not i8 or kind.w_zero:
            return No("operands are not of 8 bits, or weights have zero points")
        channels = static(x.shape[1])
        if w.shape != (channels, 1, 3, 3) or kind.group != channels or channels % 8:
            return No("this is not 3x3 for each of eight channels, and eight more")
        if kind.strides not in ((1, 1), (2, 2)) or kind.dilations != (1, 1) or max(kind.pads) > 1:
            return No("strides are neither 1 nor 2, or there are dilations")
        if not all(map(is_constant, (w, *call.ins[2 : kind.fixed]))):
            return No("weights are computed")
        if 0 in y.shape or found.dtype is not i8:
            return No("there are no results, or they are unsigned")
        if x.strides[1] != 1 or y.strides[1] != 1:
            return No("x and the result do not lie channels-last")
        if 7 * (static(y.strides[2]) + static(y.strides[3])) > FARTHEST:
            return No("results lie far apart")
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: 15},
            scratch=_plane(call) * min(channels, 16),
            scratch_align=4,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        macs = static(call.kind.macs([v.type for v in call.ins], [v.type for v in call.outs]))
        return Cost(macs * 5e-11, code=500)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = _rescaling(call), static(call.ins[1].shape[0])
        w = viewed(call.ins[1], constants[1])[:, 0]
        w = w if _is_high(call) else w.transpose(0, 2, 1)  # channel, column, row
        cells = np.zeros((channels, 2, 4, 4), np.int8)
        cells[:, 0, :3, :3] = w
        cells[:, 1, :3, 1:] = w
        values = numbers(call, constants, found, channels)
        if _kind(call).x_zero:
            zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0])
            values[0] -= (zero * w.astype(np.int64).sum((1, 2))).astype(np.int32)
        return {1: cells, **dict.fromkeys(found.tables, np.ascontiguousarray(without_half(values, found.shift).T))}

    def packing(self, call: Call) -> Mapping[int, str]:
        folded = "_less_zero" if _kind(call).x_zero else ""
        form = "helium_columns" if _is_high(call) else "helium_rows"
        return {1: form, **dict.fromkeys(_rescaling(call).tables, f"table_channels_less_half{folded}")}

    def label(self, call: Call) -> str:
        height, width = call.ins[0].shape[2:]
        return f"depthwise_3x3s{_kind(call).strides[0]}_{height}x{width}x{call.ins[0].shape[1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_helium_depthwise.h"})

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        return ["y"], ["x", "w", *["x_zero"] * _kind(call).x_zero, "table", "same0", "same1"]

    def family(self, call: Call) -> str:
        return f"depthwise_3x3s{_kind(call).strides[0]}"

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, found = _kind(call), _rescaling(call)
        return {
            "form": found.form,
            "table_rows": len(found.tables),
            "zero": kind.x_zero,
            "stride": kind.strides[0],
            "several": call.ins[0].shape[0] != 1,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, x, y = _kind(call), call.ins[0], call.outs[0]
        row, column = (3, 2) if _is_high(call) else (2, 3)
        several = {"batch": static(x.shape[0]), "x_batch": static(x.strides[0]), "y_batch": static(y.strides[0])}
        return {
            **(several if x.shape[0] != 1 else {}),
            "channels": static(x.shape[1]),
            "height": static(y.shape[row]),
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


def _is_high(call: Call) -> bool:
    height, width = call.outs[0].type.static_shape[2:]
    return height > width


def _cells(call: Call) -> int:
    """In a row: the columns that blocks of results need, beside the image too, and one more."""
    columns, stride = max(call.outs[0].type.static_shape[2:]), _kind(call).strides[1]
    return (columns + -columns % (4 * stride) - 1) * stride + 4


def _plane(call: Call) -> int:
    """Bytes of a channel."""
    return _cells(call) * 4


def _kind(call: Call) -> Conv:
    assert isinstance(call.kind, Conv)
    return call.kind


def _rescaling(call: Call) -> Rescaling:
    found = rescaling(call, _kind(call).fixed, _kind(call).epilogue)
    assert found is not None  # `match` has seen it
    return found


def _case(name: str, kind: Conv, x: tuple[int, ...]) -> Case:
    w = (x[1], 1, 3, 3)
    out = kind.out_shape(x, w)
    kind = replace(kind, epilogue=epilogue_of(i8, 3, (1, 2, 3)))
    chance, full = np.random.default_rng(x[2]), [static(size) for size in out]
    per_channel = [
        np.broadcast_to(chance.integers(low, high, (1, x[1], 1, 1)).astype(np.int32), full)
        for low, high in ((-3000, 3000), (1 << 27, 1 << 29), (-400, 400))
    ]
    fixed = kind.fixed
    return Case(
        name,
        kind,
        (TensorType(i8, x), TensorType(i8, w), *(TensorType(i8, ()),) * kind.x_zero, *[TensorType(i32, out)] * 3),
        (TensorType(i8, out),),
        permute={0: (0, 2, 3, 1)},
        permute_outs={0: (0, 2, 3, 1)},
        constant=frozenset(range(1, fixed + 3)),
        ranges={0: (-128, 127), 1: (-128, 127), 2: (-128, 127)},
        values={fixed + i: array for i, array in enumerate(per_channel)},
        repeated=dict.fromkeys(range(fixed, fixed + 3), (0, 2, 3)),
    )
