"""conv of 8-bit integers, 3x3, each channel for itself, for cores with DSP instructions: four channels at a time are
laid out as pairs of rows, band by band, and every channel of a band is computed in one go.

Operands and result lie channels-last. Beside and above the image lie blanks, so borders are like the inside. The result
may take the place of x where both have one shape: a band is read before its results are written, and what the next one
needs of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i8, i32, u8
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    Target,
    elementwise_alias,
    static_views,
    viewed,
)
from mccompile.kernels.dot import numbers, rescaling
from mccompile.kernels.patch_conv import conv_of, rescaled_case, rescaling_of
from mccompile.kernels.tiles import is_constant
from mccompile.kinds.conv import Conv

BAND_BYTES = 4096  # of scratch, if a band of one row does not need more


class Depthwise(Kernel):
    kind = Conv
    isa = "dsp"

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 8, i32, x_zero=True)
        strided = replace(plain, strides=(2, 2))
        return [
            rescaled_case("even", plain, (1, 8, 6, 6), (8, 1, 3, 3)),
            rescaled_case("odd", plain, (1, 8, 7, 5), (8, 1, 3, 3)),
            rescaled_case("one_row", plain, (1, 8, 1, 4), (8, 1, 3, 3)),
            rescaled_case("u8", plain, (1, 8, 5, 4), (8, 1, 3, 3), u8),
            rescaled_case("bands", plain, (1, 8, 25, 31), (8, 1, 3, 3)),
            rescaled_case("bands_two_pictures", plain, (2, 8, 24, 41), (8, 1, 3, 3)),
            rescaled_case("not_padded", replace(plain, pads=(0,) * 4, x_zero=False), (1, 8, 6, 7), (8, 1, 3, 3)),
            rescaled_case("strided", replace(strided, pads=(0, 0, 1, 1)), (1, 8, 8, 8), (8, 1, 3, 3)),
            rescaled_case("strided_odd", strided, (1, 8, 9, 7), (8, 1, 3, 3)),
            rescaled_case("strided_bands", replace(strided, pads=(1, 0, 0, 1)), (1, 8, 48, 96), (8, 1, 3, 3)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        reason = static_views(call)
        if reason:
            return No(reason)
        found = rescaling(call, kind.fixed, kind.epilogue)
        if found is None or found.rest is not None or not found.form:
            return No("sums are not just rescaled to 8 bits with short numbers")
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype is not i8 or kind.w_zero:
            return No("operands are not of 8 bits, or weights have zero points")
        channels = static(x.shape[1])
        if w.shape != (channels, 1, 3, 3) or kind.group != channels or channels % 4:
            return No("this is not 3x3 for each of four channels, and four more")
        if kind.strides not in ((1, 1), (2, 2)) or kind.dilations != (1, 1) or max(kind.pads) > 2:
            return No("strides are neither 1 nor 2, or there are dilations")
        if 0 in y.shape or static(y.shape[3]) < 2 or not all(map(is_constant, (w, *call.ins[2 : kind.fixed]))):
            return No("there is but one column, or weights are computed")
        if x.strides[1] != 1 or y.strides[1] != 1:
            return No("x and the result do not lie channels-last")
        band = _band(call)
        alias = {(0, 0): 0} if kind.strides == (1, 1) and elementwise_alias(call, 0) else {}
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            alias=alias,
            scratch=_plane(call, band) * 4 * 4,
            scratch_align=4,
            blocks=(band,),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        macs = static(call.kind.macs([v.type for v in call.ins], [v.type for v in call.outs]))
        return Cost(macs * 2e-10, code=500)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = rescaling_of(call), static(call.ins[1].shape[0])
        w = viewed(call.ins[1], constants[1])[:, 0]  # channel, row, column
        words = np.ascontiguousarray(w[:, [0, 1, 1, 2]].transpose(0, 2, 1))
        table = np.ascontiguousarray(numbers(call, constants, found, channels).T)
        return {1: words, **dict.fromkeys(found.tables, table)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: "dsp_columns_0112", **dict.fromkeys(rescaling_of(call).tables, "table_channels")}

    def label(self, call: Call) -> str:
        height, width = call.ins[0].shape[2:]
        return f"depthwise_3x3s{conv_of(call).strides[0]}_{height}x{width}x{call.ins[0].shape[1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp_depthwise.h"})

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        return ["y"], ["x", "w", *["x_zero"] * conv_of(call).x_zero, "table", "same0", "same1"]

    def family(self, call: Call) -> str:
        return f"depthwise_3x3s{conv_of(call).strides[0]}"

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, found = conv_of(call), call.ins[0], rescaling_of(call)
        return {
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "y_type": found.dtype.name,
            "form": found.form,
            "table_rows": len(found.tables),
            "zero": kind.x_zero,
            "stride": kind.strides[0],
            "several": x.shape[0] != 1,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, x, y, band = conv_of(call), call.ins[0], call.outs[0], call.blocks[0]
        height, width = y.type.static_shape[2:]
        several = {"batch": static(x.shape[0]), "x_batch": static(x.strides[0]), "y_batch": static(y.strides[0])}
        return {
            **(several if x.shape[0] != 1 else {}),
            "channels": static(x.shape[1]),
            **({"height": height} if kind.strides == (1, 1) else {}),
            "rows": _rows(call),
            "width": width,
            "x_height": static(x.shape[2]),
            "columns": min(static(x.shape[3]), _cells(call) - kind.pads[1]),
            "x_row": static(x.strides[2]),
            "x_pixel": static(x.strides[3]),
            "y_row": static(y.strides[2]),
            "y_pixel": static(y.strides[3]),
            "pad_y": kind.pads[0],
            "pad_x": kind.pads[1],
            "cells": _cells(call),
            "band_rows": band,
        }


def _cells(call: Call) -> int:
    """In a row: the columns that results need, beside the image too."""
    return (static(call.outs[0].shape[3]) - 1) * conv_of(call).strides[1] + 3


def _rows(call: Call) -> int:
    """Of cells: two rows of results each for stride 1, one for stride 2."""
    height = static(call.outs[0].shape[2])
    return (height + 1) // 2 if conv_of(call).strides[0] == 1 else height


def _band(call: Call) -> int:
    """Rows of cells in a band."""
    return max(1, min(_rows(call), BAND_BYTES // (_plane(call, 1) * 4 * 4)))


def _plane(call: Call, band: int) -> int:
    """Words of a channel in a band."""
    return band * _cells(call) * 2
