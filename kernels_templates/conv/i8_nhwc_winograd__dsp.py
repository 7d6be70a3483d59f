"""int8 conv 3x3 with stride 1 by Winograd's F(2x2, 3x3) for cores with DSP instructions, exactly: 16 products instead
of 36, of weights that take 16 bits each and 16 instead of 9 places. Four tiles share the weights that are read.

The blob grows by 3.6 times the weights, so it is only for those who ask for time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i32, u8
from mccompile.codegen.int8.dot import numbers, rescaling_of
from mccompile.codegen.int8.integer_winograd import ELEMENTS, MOST_CHANNELS, transformed_integers
from mccompile.codegen.int8.patch_conv import PatchConv, between, conv_of, rescaled_case, residual_case
from mccompile.codegen.int8.rates import INSTRUCTION
from mccompile.codegen.tiles import epilogue_alias
from mccompile.kernels.api import Call, Case, Cost, Needs, No, Prefer, Target, View, viewed
from mccompile.kinds.conv import Conv

FEW = 4  # groups of tiles that workers share by output channels
PER_PRODUCT, PER_INPUT, PER_RESULT = 0.64, 7.0, 33.0  # instructions


class Winograd(PatchConv):
    raises = True

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        inside = replace(plain, pads=(0,) * 4, x_zero=False)
        return [
            rescaled_case("3x3", plain, (1, 8, 6, 8), (6, 8, 3, 3)),
            rescaled_case("3x3_u8", plain, (1, 8, 5, 7), (6, 8, 3, 3), u8, shift=1),
            rescaled_case("inside", inside, (1, 4, 8, 5), (2, 4, 3, 3), shift=2),
            rescaled_case("one_position", inside, (1, 4, 3, 3), (4, 4, 3, 3), shift=8),
            rescaled_case("two_pictures", plain, (2, 12, 4, 3), (4, 12, 3, 3), shift=5),
            rescaled_case("uneven_pads", replace(plain, pads=(2, 0, 1, 2)), (1, 4, 4, 6), (4, 4, 3, 3), shift=3),
            rescaled_case("many_channels", plain, (1, 68, 3, 4), (2, 68, 3, 3), shift=6),
            residual_case("residual", plain, (1, 8, 4, 4), (6, 8, 3, 3)),
            residual_case("residual_odd", plain, (2, 8, 5, 3), (6, 8, 3, 3)),
            *(case for case in self.raised_cases(plain) if static(case.ins[1].shape[0]) % 2 == 0),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        if target.prefer != Prefer.TIME or target.option("winograd", 2) < 2:
            return No("it is for speed, at the price of a larger blob")
        reason = self.refusal(call, range(1, 9))
        if reason:
            return No(reason)
        kind, w, found = conv_of(call), call.ins[1], rescaling_of(call)
        if w.shape[2:] != (3, 3) or set((*kind.strides, *kind.dilations)) != {1} or max(kind.pads) > 2:
            return No("it is for 3x3 windows with stride 1")
        inputs, outs = static(w.shape[1]), static(w.shape[0])
        if inputs % 4 or outs % 2 or inputs > MOST_CHANNELS:
            return No("channels are not multiples of 4 and 2, or their sums do not fit 32 bits")
        results = ELEMENTS * outs if found.rest else 0
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            alias=epilogue_alias(call, kind.fixed),
            scratch=ELEMENTS * inputs * 8 + ELEMENTS * 32 + inputs + results,
            scratch_align=4,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        y, inputs, outs = call.outs[0], static(call.ins[1].shape[1]), static(call.ins[1].shape[0])
        tiles = static(y.shape[0]) * -(-_tiles(y) // 4) * 4
        each = ELEMENTS * inputs * outs * PER_PRODUCT + ELEMENTS * inputs * PER_INPUT + 4 * outs * PER_RESULT
        cycles = tiles * each * INSTRUCTION * target.machine.short_mac
        return Cost(cycles, code=1000, blob=(2 * ELEMENTS - 9) * inputs * outs)

    def units(self, call: Call) -> Sequence[int]:
        """Four tiles each, or two output channels of all tiles."""
        groups = _groups(call)
        return (1,) * (groups if groups >= FEW else static(call.ins[1].shape[0]) // 2)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, (outs, inputs) = rescaling_of(call), map(static, call.ins[1].shape[:2])
        turned = transformed_integers(viewed(call.ins[1], constants[1]))
        # channels in pairs (0, 2) and (1, 3) of each four, as they are widened
        parts = turned.reshape(outs // 2, 2, inputs // 4, 2, 2, ELEMENTS).transpose(0, 5, 2, 4, 1, 3)
        table = numbers(call, constants, found, outs).T
        packed = np.ascontiguousarray(parts.astype("<i2")).view(np.int8)
        return {1: packed, **dict.fromkeys(found.tables, np.ascontiguousarray(table))}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: "dsp_winograd", **dict.fromkeys(rescaling_of(call).tables, "rows")}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp_winograd.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y, found = conv_of(call), call.ins[0], call.outs[0], rescaling_of(call)
        height, width = y.type.static_shape[2:]
        return {
            **self.rest(call),
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "y_type": found.dtype.name,
            "y_c_type": found.dtype.storage_c,
            "shift": found.shift,
            "raised": found.is_raised,
            "table_rows": len(found.tables),
            "zero": kind.x_zero,
            "several": x.shape[0] != 1,
            "by_tiles": call.workers > 1 and _groups(call) >= FEW,
            "by_channels": call.workers > 1 and _groups(call) < FEW,
            "odd_height": height % 2 == 1,
            "odd_width": width % 2 == 1,
        }

    def family(self, call: Call) -> str:
        return "conv_winograd"

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, x, y = conv_of(call), call.ins[0], call.outs[0]
        rest = rescaling_of(call).rest is not None
        strides = {} if rest else {"y_row": static(y.strides[2]), "y_pixel": between(y)}
        several = {"batch": static(x.shape[0]), "x_batch": static(x.strides[0])}
        if not rest:
            several["y_batch"] = static(y.strides[0])
        height, width = y.type.static_shape[2:]
        return {
            **(several if x.shape[0] != 1 else {}),
            **strides,
            **({"height": height} if height % 2 or rest else {}),
            **({"width": width} if width % 2 or rest else {}),
            "tiles": _tiles(y),
            "across": -(-width // 2),
            "x_height": static(x.shape[2]),
            "x_width": static(x.shape[3]),
            "x_row": static(x.strides[2]),
            "x_pixel": static(x.strides[3]),
            "pad_y": kind.pads[0],
            "pad_x": kind.pads[1],
            "inputs": static(x.shape[1]),
            "outs": static(call.ins[1].shape[0]),
        }


def _groups(call: Call) -> int:
    """Of four tiles, as many as can be computed apart."""
    return -(-_tiles(call.outs[0]) // 4) if call.outs[0].shape[0] == 1 else 0


def _tiles(y: View) -> int:
    """Of a picture."""
    height, width = y.type.static_shape[2:]
    return -(-height // 2) * -(-width // 2)
