"""conv of 8-bit integers for cores with Helium: the rows under a few results of a row are copied into a line buffer,
column by column, of which windows are parts that share columns. Otherwise like HeliumIm2col."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...base.dims import static
from ...base.dtypes import i32
from ...kernels.api import Call, Case, Needs, No, Target
from ...kinds.conv import Conv
from .helium_im2col import HeliumIm2col
from .patch_conv import apart_cases, conv_of, rescaled_case, residual_case
from .rates import Rates


class HeliumLineBuffer(HeliumIm2col):
    at_once = 2
    order = (0, 3, 2, 1)

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        inside = replace(plain, pads=(0, 0, 0, 0), x_zero=False)
        strided = replace(plain, strides=(2, 2))
        return [
            rescaled_case("3x3", plain, (1, 16, 5, 6), (8, 16, 3, 3)),
            rescaled_case("odd_width", plain, (1, 16, 4, 7), (6, 16, 3, 3), shift=2),
            rescaled_case("not_padded", inside, (1, 32, 5, 6), (4, 32, 3, 3), shift=1),
            rescaled_case("strided", strided, (1, 16, 8, 8), (12, 16, 3, 3), shift=3),
            rescaled_case("padded_by_less", replace(strided, pads=(0, 0, 1, 1)), (1, 16, 8, 8), (4, 16, 3, 3)),
            rescaled_case("right_not_read", replace(inside, strides=(2, 2)), (1, 16, 7, 8), (4, 16, 3, 3), shift=5),
            rescaled_case("5x3", replace(plain, pads=(2, 1, 2, 1)), (1, 16, 6, 5), (3, 16, 5, 3), shift=6),
            rescaled_case("dilated_rows", replace(plain, dilations=(2, 1)), (1, 16, 7, 4), (4, 16, 3, 3)),
            rescaled_case("two_pictures", plain, (2, 16, 3, 3), (4, 16, 3, 3), shift=7),
            rescaled_case("raised", plain, (1, 16, 5, 5), (6, 16, 3, 3), shift=12),
            rescaled_case("three_channels", plain, (1, 3, 6, 6), (4, 3, 3, 3), shift=8),
            rescaled_case("seven_channels", strided, (1, 7, 6, 8), (5, 7, 3, 5)),
            rescaled_case("forty_channels", plain, (1, 40, 3, 4), (4, 40, 3, 3)),
            residual_case("residual", plain, (1, 16, 4, 4), (6, 16, 3, 3)),
            residual_case("residual_of_fours", plain, (1, 16, 5, 4), (12, 16, 3, 3)),
            residual_case("raised_residual", plain, (1, 16, 5, 3), (12, 16, 3, 3), shift=16),
            *(case for case in apart_cases() if case.ins[1].static_shape[3] > 1),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        found = super().match(call, target)
        if isinstance(found, No):
            return found
        kind, channels, columns = conv_of(call), static(call.ins[0].shape[1]), static(call.ins[1].shape[3])
        if kind.dilations[1] != 1 or call.outs[0].shape[3] == 1:
            return No("columns are dilated, or there is only one")
        step = kind.strides[1]
        if columns <= step or step * (4 + _vectors(channels)) >= 10 + _vectors(columns * channels):
            return No("copying windows is as fast as copying columns")
        return found

    def per_buffer(self, call: Call) -> int:
        """Positions."""
        raise NotImplementedError

    def rates(self, call: Call) -> Rates:
        """Windows share what is copied; each buffer begins anew."""
        return Rates(0.117, 0.0, 4.7, window=19.0 + 40.0 / self.per_buffer(call), run=1.0)

    def cells(self, call: Call) -> int:
        """Columns of a buffer."""
        return (self.per_buffer(call) - 1) * conv_of(call).strides[1] + static(call.ins[1].shape[3])

    def by_rows(self, call: Call) -> bool:
        return True

    def laid_out(self, call: Call, lanes: int) -> int:
        channels, rows, columns = call.ins[1].type.static_shape[1:]
        return self.cells(call) * rows * channels + self.depth(call) - columns * rows * channels

    def copied_over(self, call: Call) -> int:
        return 0

    def packing(self, call: Call) -> Mapping[int, str]:
        return {**super().packing(call), 1: "helium_4x16_columns"}

    def context(self, call: Call) -> Mapping[str, Any]:
        return {**super().context(call), "by_lines": True}

    def windows(self, call: Call) -> dict[str, int]:
        unused = {"columns", "dilation_x"}
        return {
            **{name: size for name, size in super().windows(call).items() if name not in unused},
            "x_width": static(call.ins[0].shape[3]),
            "cells": self.cells(call),
            "per_buffer": self.per_buffer(call),
        }


def _vectors(count: int) -> int:
    """Loads and stores for so many elements."""
    return (count + 15) // 16 * 2
