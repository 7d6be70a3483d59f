"""int8 depthwise conv with any window for cores with Helium: the rows of a window lie side by side, channel by channel,
so that one instruction sums up 16 taps of it (mcc_helium_cells.h).

Beside the image lie zero points. Columns that a dilation leaves between those of a window lie apart from them, behind
each other, so that windows have no gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import i8, i32
from mccompile.codegen.int8.dot import FARTHEST
from mccompile.codegen.int8.patch_conv import conv_of
from mccompile.codegen.int8.tap_places import TapPlaces, depthwise_case, rescaling_if_any
from mccompile.expr.ir import Expr, apply, cast, literal, operands_used
from mccompile.expr.scalar_c import load_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Needs, No, Target
from mccompile.kinds.conv import Conv

BLOCK = 16  # taps of an instruction
AT_ONCE = 16  # channels


class Cells(TapPlaces):
    raised_square = False
    saturated = "mcc_saturate_{type}(mcc_shr_i32({value}, {shift}))"

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (4, 4, 4, 4), 1, i32, x_zero=True)
        apart = replace(plain, strides=(1, 2), pads=(0, 4, 0, 8), dilations=(1, 6))
        return [
            *(case for case in super().cases() if case.ins[0].dtype is i8),
            depthwise_case("many_channels", replace(plain, pads=(2, 3, 2, 3)), (1, 35, 4, 6), (5, 7)),
            _bounded(depthwise_case("bounded", plain, (1, 6, 3, 7), (3, 5))),
            depthwise_case("many_taps", plain, (1, 17, 3, 5), (9, 9), shift=8),
            depthwise_case("strided_and_dilated", apart, (1, 24, 1, 19), (1, 3)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call)
        if reason:
            return No(reason)
        if call.ins[0].buffer.dtype is not i8:
            return No("x is not signed")
        if 7 * _plane(call) > FARTHEST:
            return No("rows are too long")
        beyond = -conv_of(call).group % 8
        return Needs(
            rows=frozenset({2}),
            constant=self.constants(call),
            align=self.aligned(call),
            slack={0: beyond} if beyond else {},
            scratch=4 * _sums(call) + _planes(call) * _plane(call) + BLOCK,
            scratch_align=4,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        """Of a result: to put its columns into cells, its products, and the rest; and what begins with each row."""
        kind, y, rows = conv_of(call), call.outs[0], static(call.ins[1].shape[2])
        width = static(y.shape[3])
        each = 6 + 2 * _blocks(call) + 0.45 * rows * kind.strides[1] + (30 + rows) / width
        return Cost(static(y.type.count) * each * 0.9 * target.machine.short_mac, code=700)

    def laid_out(self, call: Call, weights: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """Of each result what its sums begin with, and its weights, column by column."""
        outs, rows = len(weights), static(call.ins[1].shape[2])
        cells = weights.reshape(outs, rows, -1).swapaxes(1, 2).reshape(outs, -1)
        cells = np.pad(cells, [(0, 0), (0, -cells.shape[1] % BLOCK)])
        return np.concatenate([begins.reshape(outs, 1).view(np.int8), cells], 1)

    def form(self, call: Call) -> str:
        return "helium_cells"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_helium_cells.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, found = conv_of(call), rescaling_if_any(call)
        vectors: dict[str, Any] = {"vectors": ""}
        if found is not None and found.bounds is not None and _are_shared(call, found.bounds):
            at, raised, multiplier, addend = self.factors(found)
            extras = zip(call.ins[kind.fixed :], self.parameter_names(call)[1][kind.fixed :], strict=True)
            loads = ["0", *(load_c(view.buffer.dtype, name, "0") for view, name in extras)]
            low, least = to_statements(found.bounds[0], loads, local="low")
            high, most = to_statements(found.bounds[1], loads, local="high")
            by = f"{raised or 1}, {multiplier}, {addend}, {found.shift}, {least}, {most}"
            to, is_raised = f"y + {self.place(call, call.outs[0], '0')}", int(bool(raised))
            scaling = f"const mcc_helium_scaling scaling = {{{by}}};"
            vectors = {
                "numbers": [f"const int32_t *const numbers = {at};", *low, *high, scaling],
                "vectors": f"mcc_helium_rescale_{found.dtype}({to}, y_pixel, sums, width, &scaling, {is_raised});",
            }
        return {
            **super().context(call),
            **vectors,
            "blocks": _blocks(call),
            "weights": 4 + BLOCK * _blocks(call),  # bytes of a result
            "dilated": kind.dilations[1] > 1,
            "beside": kind.pads[1] > 0 or _columns(call) - kind.pads[1] > static(call.ins[0].shape[3]),
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, y = conv_of(call), call.outs[0]
        sizes = super().sizes(call)
        unused = {"x_width", "span", "span_y", "columns", "places"}
        dilation = kind.dilations[1]
        return {
            **{name: size for name, size in sizes.items() if name not in unused},
            "filled": max(0, min(static(call.ins[0].shape[3]), _columns(call) - kind.pads[1])),
            "plane": _plane(call),
            "planes": _planes(call),
            "sums_of_row": _sums(call),
            "apart": -(-_columns(call) // dilation),
            "every": dilation // gcd(dilation, kind.strides[1]),
            "y_pixel": static(y.strides[3]),
        }


def _bounded(case: Case) -> Case:
    """Results lie within tighter bounds than those of their type."""
    assert isinstance(case.kind, Conv) and case.kind.epilogue is not None
    least = apply("max", cast(case.kind.epilogue, i32), literal(-40, i32))
    bounded = cast(apply("min", least, literal(30, i32)), i8)
    return replace(case, kind=replace(case.kind, epilogue=bounded))


def _are_shared(call: Call, bounds: Sequence[Expr]) -> bool:
    """Is what the bounds read one number for all results?"""
    used = [call.ins[conv_of(call).fixed + number - 1] for bound in bounds for number in operands_used(bound)]
    return all(not stride or size == 1 for view in used for size, stride in zip(view.shape, view.strides, strict=True))


def _columns(call: Call) -> int:
    """That the windows of a row read, beside the image too."""
    kind = conv_of(call)
    span = (static(call.ins[1].shape[3]) - 1) * kind.dilations[1] + 1
    return (static(call.outs[0].shape[3]) - 1) * kind.strides[1] + span


def _plane(call: Call) -> int:
    """Bytes of a channel."""
    dilation = conv_of(call).dilations[1]
    return -(-_columns(call) // dilation) * dilation * static(call.ins[1].shape[2])


def _planes(call: Call) -> int:
    return min(-(-conv_of(call).group // 8) * 8, AT_ONCE)


def _blocks(call: Call) -> int:
    return -(-(static(call.ins[1].shape[2]) * static(call.ins[1].shape[3])) // BLOCK)


def _sums(call: Call) -> int:
    """They are read by fours."""
    width = static(call.outs[0].shape[3])
    return width + -width % 4
