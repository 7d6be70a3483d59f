"""int8 3x3 depthwise conv for cores with DSP instructions: four channels at a time are laid out as pairs of rows,
band by band, and every channel of a band is computed in one go. Otherwise the last group of four overlaps the one
before.

Operands and result are channels-last (NHWC). Padding is read as a halo, so borders are like the inside. The result
may take the place of x where both have one shape, of multiples of four channels: a band is read before its results are
written, and what the next one needs of it is kept. Row by row a band is one row of cells, so that calls need little
scratch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i4, i8
from mccompile.codegen.int8.depthwise import Depthwise3x3, depthwise_case
from mccompile.codegen.int8.dot import DSP_SHIFTS, dsp_table, indices_of, moved_by_eight, numbers, rescaling_of
from mccompile.codegen.int8.dsp_im2col import is_indexed
from mccompile.codegen.int8.patch_conv import conv_of, in_nibbles, in_palette
from mccompile.kernels.api import Call, Case, Cost, Needs, No, Target, elementwise_alias, viewed

BAND_BYTES = 4096  # of scratch, if a band of one row does not need more


class Depthwise(Depthwise3x3):
    least = 4
    stored = (i8, i4)
    shifts = DSP_SHIFTS
    raises = True
    packs = True

    def cases(self) -> Sequence[Case]:
        found = [
            *super().cases(),
            depthwise_case("not_shifted", (1, 8, 5, 4), shift=0),
            depthwise_case("strided_not_shifted", (1, 4, 7, 6), shift=0, strides=(2, 2)),
            depthwise_case("raised", (1, 8, 7, 5), shift=12),
            depthwise_case("raised_even", (1, 4, 4, 4), shift=16),
            depthwise_case("strided_raised", (1, 8, 9, 7), shift=14, strides=(2, 2)),
            depthwise_case("short", (1, 8, 7, 5), shift=2, short=True),
            depthwise_case("short_raised", (1, 8, 7, 5), shift=12, short=True),
        ]
        names = ("odd", "u8", "bands", "strided_odd", "not_shifted", "raised", "strided_raised", "short_raised")
        some = [case for case in found if case.name in names]
        return [*found, *in_nibbles(some), *in_palette(some)]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call)
        if reason:
            return No(reason)
        if static(call.outs[0].shape[3]) < 2:
            return No("there is one column")
        if _again(call) and self.indexed(call) is not None:
            return No("palettized weights need a multiple of four channels")
        found, kind = rescaling_of(call), conv_of(call)
        band = _band(call)
        kept = call.rows is None and kind.strides == (1, 1) and not _again(call)
        alias = {(0, 0): 0} if kept and elementwise_alias(call, 0) else {}
        return Needs(
            rows=frozenset({2}),
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            alias=alias,
            scratch=_plane(call, band) * 4 * 4 + (0 if self.indexed(call) is None else 4 * 12),
            scratch_align=4,
            blocks=(band,),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        by_rows = 1 if call.rows is None else 1.9  # rows are laid out once for every result that needs them
        return Cost(static(call.macs) * by_rows * 2 * target.machine.short_mac, code=500)

    def units(self, call: Call) -> Sequence[int]:
        """Groups of four channels; the last one has those that fill no group."""
        if call.rows is not None:
            return super().units(call)
        groups = static(call.ins[0].shape[1]) // 4
        return (*(1,) * (groups - 1), 1 + _again(call))

    def indexed(self, call: Call) -> frozenset[int] | None:
        return frozenset() if is_indexed(call) else None

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, channels = rescaling_of(call), static(call.ins[1].shape[0])
        w = viewed(call.ins[1], constants[1])[:, 0]  # channel, row, column
        words = np.ascontiguousarray(w[:, [0, 1, 1, 2]].transpose(0, 2, 1))
        if call.ins[1].buffer.dtype is i4:
            words = moved_by_eight(words.astype(np.int8)).astype(i4.numpy)
        elif self.indexed(call) is not None:
            words = indices_of(w.transpose(0, 2, 1))
        table = dsp_table(found, numbers(call, constants, found, channels), 1)
        return {1: words, **dict.fromkeys(found.tables, table)}

    def packing(self, call: Call) -> Mapping[int, str]:
        bits, found = "_nibbles" if call.ins[1].buffer.dtype is i4 else "", rescaling_of(call)
        bits = bits if self.indexed(call) is None else "_of_indices"
        return {1: f"dsp_columns_0112{bits}", **dict.fromkeys(found.tables, found.named("table_channels"))}

    def headers(self, call: Call) -> frozenset[str]:
        palette = () if self.indexed(call) is None else ("mcc_dsp_palette.h",)
        return frozenset({"mcc_dsp_depthwise.h", *palette})

    def context(self, call: Call) -> Mapping[str, Any]:
        by_rows, stride, found = call.rows is not None, conv_of(call).strides[0], rescaling_of(call)
        row = "2 * i" if stride == 1 else "i"
        x_ring, y_ring = call.ins[0].lines > 0, call.outs[0].lines > 0
        return {
            **super().context(call),
            "form": found.depthwise_form,
            "short": found.is_short,
            "packed": found.packed,
            "wise": "nibblewise" if call.ins[1].buffer.dtype is i4 else "depthwise",
            "bytes": 6 if call.ins[1].buffer.dtype is i4 else 12,  # of the weights of a channel
            "indexed": self.indexed(call) is not None,
            "stride": stride,
            "again": _again(call),
            "by_rows": by_rows,
            "shared": call.workers > 1 and not by_rows,
            "x_line": "(row % x_lines)" if x_ring else "row",
            "x_next": "((row + 1) % x_lines)" if x_ring else "(row + 1)",
            "row_out": row,
            "y_line": "(row_out % y_lines)" if y_ring else "row_out" if by_rows else row,
            "y_ring": y_ring,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, x, y, band = conv_of(call), call.ins[0], call.outs[0], call.blocks[0]
        height, width = y.type.static_shape[2:]
        whole = {} if call.rows is not None else {"rows": _rows(call)}
        return {
            **self.batches(call),
            **({"x_lines": x.lines} if x.lines else {}),
            **({"y_lines": y.lines} if y.lines else {}),
            "channels": static(x.shape[1]),
            **({"height": height} if whole and kind.strides == (1, 1) else {}),
            **whole,
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


def _again(call: Call) -> bool:
    """Are some channels computed twice, as the last four meet others?"""
    return static(call.ins[0].shape[1]) % 4 != 0


def _cells(call: Call) -> int:
    """In a row: the columns that results need, beside the image too."""
    return (static(call.outs[0].shape[3]) - 1) * conv_of(call).strides[1] + 3


def _rows(call: Call) -> int:
    """Of cells: two rows of results each for stride 1, one for stride 2."""
    height = static(call.outs[0].shape[2])
    return (height + 1) // 2 if conv_of(call).strides[0] == 1 else height


def _band(call: Call) -> int:
    """Rows of cells in a band."""
    if call.rows is not None:
        return 1
    return max(1, min(_rows(call), BAND_BYTES // (_plane(call, 1) * 4 * 4)))


def _plane(call: Call, band: int) -> int:
    """Words of a channel in a band."""
    return band * _cells(call) * 2
