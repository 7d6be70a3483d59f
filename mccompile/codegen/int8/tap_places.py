"""Depthwise convolutions of 8-bit integers with windows of any form, and those with small groups: a table says where
each tap of a position lies, or in a row of zero points outside of the image, and the products of some neighbouring
channels are added up along it.

x lies channels-last. What is made of totals of 32 bits may be anything; where they are rescaled to 8 bits, the bias is
folded into what sums begin with, as zero points are. A channel may have several results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import i8, i32, u8
from ...base.marked import named
from ...expr.ir import operand
from ...expr.scalar_c import load_c, store_c, to_statements
from ...kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    Prefer,
    Target,
    View,
    static_views,
    supports_types,
    viewed,
)
from ...kinds.conv import Conv
from ..loops import index_c
from ..tiles import is_constant
from ..windows import windows_name
from .dot import IN_TABLE, TABLE, Rescaling, numbers, rescaling_in
from .patch_conv import conv_of, rescaled_case, residual_case, totals_case
from .rates import INSTRUCTION

AT_ONCE = 4  # channels
MOST_TAPS = 16_000  # whose sums fit 32 bits
PLACING, WINDOW = 3.0, 35.0  # instructions for the place of a tap, and around those of a window


class TapPlaces(Kernel):
    kind = Conv
    branches = ""
    inputs: ClassVar[int] = 1  # channels of a group
    step: ClassVar[int] = 1  # products of a result that are added up at once
    product: ClassVar[float]  # instructions
    result: ClassVar[float] = 0.0  # and those of a result
    saturated: ClassVar[str]  # C of a number of 32 bits shifted to the right, within 8 bits
    raised_square: ClassVar[bool] = True  # do other kernels take windows of 3x3 whose sums are raised first?
    code: ClassVar[int] = 500

    def cases(self) -> Sequence[Case]:
        plain, n = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True), self.inputs
        flat, wide = replace(plain, pads=(0, 2, 0, 2)), replace(plain, pads=(2, 2, 2, 2))
        dilated = replace(plain, pads=(0, 4, 0, 4), dilations=(1, 2))
        outside = replace(plain, pads=(5, 7, 5, 7), dilations=(2, 3))

        def case(name: str, kind: Conv, x: tuple[int, ...], window: tuple[int, ...], **more: Any) -> Case:
            return depthwise_case(name, kind, x, window, inputs=n, **more)

        return [
            case("row", flat, (1, 8, 1, 11), (1, 5)),
            case("column", replace(plain, pads=(1, 0, 2, 0)), (1, 12, 9, 3), (4, 1)),
            case("5x5", wide, (1, 8, 6, 7), (5, 5)),
            case("u8", wide, (1, 8, 6, 7), (5, 5), dtype=u8),
            case("strided", replace(wide, strides=(2, 3)), (1, 4, 9, 11), (5, 4)),
            case("dilated", dilated, (2, 6, 2, 13), (1, 5)),
            case("windows_outside", outside, (1, 5, 3, 4), (3, 3)),
            case("not_padded", replace(plain, pads=(0,) * 4, x_zero=False), (1, 7, 6, 5), (2, 3)),
            case("no_zero_point", replace(plain, x_zero=False), (1, 3, 6, 5), (3, 2)),
            case("1x1", replace(plain, pads=(0,) * 4), (1, 9, 3, 4), (1, 1)),
            case("short", wide, (1, 6, 5, 4), (5, 3), shift=2, short=True),
            case("short_raised", wide, (1, 8, 5, 4), (3, 5), shift=12, short=True),
            case("two_results", wide, (1, 6, 5, 6), (5, 3), results=2),
            case("two_results_of_four", wide, (1, 4, 5, 6), (5, 3), results=2),
            case("three_results_raised", flat, (2, 5, 2, 6), (1, 4), results=3, shift=12),
            residual_case("residual", replace(flat, group=10), (1, 10 * n, 3, 7), (10 * n, n, 1, 5)),
            totals_case("totals", replace(wide, group=6), (1, 6 * n, 5, 4), (12 * n, n, 3, 3)),
        ]

    def refusal(self, call: Call) -> str:
        """Why this call is not for it, or nothing."""
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        reason = static_views(call) or supports_types(call)
        if reason:
            return reason
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype is not i8 or kind.w_zero or kind.accumulator is not i32:
            return "operands are not 8-bit integers, or weights have zero points"
        if len(kind.strides) != 2 or 0 in y.shape or not all(map(is_constant, call.ins[1 : kind.fixed])):
            return "it is not 2-D, the result is empty, or weights or zero points are computed"
        if w.shape[1] != self.inputs or not _has_groups_of(call, self.inputs) or self.inputs * _taps(call) > MOST_TAPS:
            return "groups have other numbers of channels or of results, or windows are large"
        if x.strides[1] != 1:
            return "channels of x are not contiguous"
        found = rescaling_if_any(call)
        if found is not None and found.rest is None and self.is_small_square(call, found):
            return "3x3 windows with nothing but requantization have their own kernels"
        return ""

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call)
        if reason:
            return No(reason)
        count = channels(call)
        beyond = -count % AT_ONCE  # lanes of the last channels that are none
        return Needs(
            rows=frozenset({2}),
            constant=self.constants(call),
            align=self.aligned(call),
            slack={0: beyond} if beyond else {},
            scratch=self.places(call) * target.pointer_bytes + (count + beyond) * self.is_padded(call),
            scratch_align=target.pointer_bytes,
            blocks=(int(not beyond and target.prefer != Prefer.FLASH),),
        )

    def constants(self, call: Call) -> frozenset[int]:
        found = rescaling_if_any(call)
        return frozenset({*range(1, conv_of(call).fixed), *(found.tables if found else ())})

    def aligned(self, call: Call) -> dict[int, int]:
        found = rescaling_if_any(call)
        return {1: 4, **({found.bias: 4} if found else {})}

    def is_small_square(self, call: Call, found: Rescaling) -> bool:
        """Is it what all kernels for windows of 3x3 take?"""
        kind, w, y = conv_of(call), call.ins[1], call.outs[0]
        plain = w.shape == (kind.group, 1, 3, 3) and kind.dilations == (1, 1) and kind.strides in ((1, 1), (2, 2))
        square = plain and kind.group >= AT_ONCE and max(kind.pads) <= 1 and static(y.shape[3]) > 1
        return square and (self.raised_square or not (found.is_raised or found.packed))

    def cost(self, call: Call, target: Target) -> Cost:
        outs, count = static(call.ins[1].shape[0]), static(call.outs[0].type.count)
        lanes = outs + -outs % AT_ONCE
        each = lanes * (self.result + self.product * self.places(call) * self.inputs) + PLACING * _taps(call) + WINDOW
        return Cost(count // outs * each * INSTRUCTION * target.machine.short_mac, code=self.code)

    def places(self, call: Call) -> int:
        """Taps of a window, and those that fill its last step."""
        return _taps(call) + -_taps(call) % (self.step // self.inputs)

    def order(self, blocks: np.ndarray) -> np.ndarray:
        """Weights [block of results, step, product, result] as they are read."""
        return blocks

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        kind, found = conv_of(call), rescaling_if_any(call)
        outs = static(call.ins[1].shape[0])
        w = np.moveaxis(viewed(call.ins[1], constants[1]), 1, -1).reshape(outs, -1)  # inputs of taps
        zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0]) if kind.x_zero else 0
        bias, *values = numbers(call, constants, found, outs) if found else [np.zeros(outs, np.int32)]
        begins = (bias - zero * w.astype(np.int64).sum(1)).astype("<i4")
        packed = {1: self.laid_out(call, w, begins)}
        if found is None:
            return packed
        each = np.concatenate([values[-1][:1], values[0]]) if found.is_short else np.stack(values, 1)
        return {**packed, **dict.fromkeys(found.tables, each)}

    def laid_out(self, call: Call, weights: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """Weights [result, product] behind what sums begin with, as they are read."""
        count = channels(call)
        more, window = -count % AT_ONCE, self.inputs * self.places(call)
        rows = np.pad(_by_result(weights, count), [(0, 0), (0, more), (0, window - weights.shape[1])])
        blocks = rows.reshape(-1, AT_ONCE, window).swapaxes(1, 2)
        ordered = self.order(blocks.reshape(len(blocks), -1, self.step, AT_ONCE)).reshape(len(blocks), -1)
        first = np.ascontiguousarray(np.pad(_by_result(begins, count), [(0, 0), (0, more)]).reshape(-1, AT_ONCE))
        return np.concatenate([first.view(np.int8), ordered], 1)

    def form(self, call: Call) -> str:
        """What the packing of weights is called."""
        return f"taps_{self.step}x{AT_ONCE}" if self.inputs == 1 else f"groups_{self.step}x{AT_ONCE}"

    def packing(self, call: Call) -> Mapping[int, str]:
        found, folded = rescaling_if_any(call), "_less_zero" if conv_of(call).x_zero else ""
        if found is None:
            return {1: f"{self.form(call)}{folded}"}
        tables = dict.fromkeys(found.tables, found.named("table_without_bias"))
        return {1: f"{self.form(call)}_plus_bias{folded}", **tables}

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        outs, names = super().parameter_names(call)
        found = rescaling_if_any(call)
        for index, name in zip(found.tables if found else (), (TABLE, *IN_TABLE), strict=False):
            names[index] = name
        return outs, names

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(IN_TABLE) if self.is_padded(call) else frozenset({"x_zero", *IN_TABLE})

    def is_padded(self, call: Call) -> bool:
        """Are there places outside of the image?"""
        return any(conv_of(call).pads)

    def label(self, call: Call) -> str:
        kind, (x, w) = conv_of(call), call.ins[:2]
        return f"{self.family(call)}_{windows_name(w.shape[2:], kind.strides, x)}_{w.shape[0]}"

    def family(self, call: Call) -> str:
        return "depthwise" if self.inputs == 1 else f"groups_of_{self.inputs}"

    def context(self, call: Call) -> Mapping[str, Any]:
        x, results = call.ins[0], static(call.ins[1].shape[0]) // channels(call)
        return {
            **self.results(call, results),
            "c_type": x.buffer.dtype.storage_c,
            "type": x.buffer.dtype.name,
            "x_line": "row % x_lines" if x.lines else "row",
            "by_rows": call.rows is not None,
            "several": x.shape[0] != 1,
            "results": results,
            "zero": "x_zero[0]" if conv_of(call).x_zero else "0",
            "padded": self.is_padded(call),
            "most": self.places(call),
            "filled": self.places(call) - _taps(call),
            "moves": call.outs[0].shape[3] != 1,
            "rest": channels(call) % AT_ONCE != 0,
            "unrolled": call.blocks == (1,),  # has every channel of four a statement of its own?
        }

    def results(self, call: Call, results: int) -> dict[str, Any]:
        """What is made of the total of channel `o`."""
        kind, y = conv_of(call), call.outs[0]
        channel = f"({named('c')} + lane)" + (f" * {results} + result" if results > 1 else "")
        extras = zip(self.parameter_names(call)[1][kind.fixed :], call.ins[kind.fixed :], strict=True)
        loads = [load_c(view.buffer.dtype, name, self.place(call, view)) for name, view in extras]
        found = rescaling_if_any(call)
        expr = kind.epilogue or operand(0, i32)
        if found is not None:
            expr = found.rest or operand(0, found.dtype)
        lines, value = to_statements(expr, ["value", *loads], local="v")
        lines = [*(self.rescaled(found) if found else ["const int32_t value = total;"]), *lines]
        return {"channel": channel, "lines": lines, "store": store_c(y.buffer.dtype, "y", self.place(call, y), value)}

    def place(self, call: Call, view: View, at: str = "column") -> str:
        """Where channel `o` of a position lies."""
        batch, channels, row, column = (static(stride) for stride in view.strides)
        line = f"({named('row_out')} % {view.lines})" if view.lines else "row_out"
        counters = ["n" if call.outs[0].shape[0] != 1 else "0", line, at, "o"]
        return index_c([batch, row, column, channels], counters)

    def factors(self, found: Rescaling) -> tuple[str, str, str, str]:
        """C of where the numbers of channel `o` lie, and of those: what raises its sum, if anything does, multiplier
        and addend."""
        rows = len(found.tables) - 1
        at, factor, addend = f"table + o * {rows}", f"numbers[{rows - 2}]", f"numbers[{rows - 1}]"
        if found.is_short:
            at, factor, addend = "table + 1 + o", "numbers[0]", "table[0]"
        raised = f"mcc_shl_i32(1, {factor} & 31)" if found.packed else "numbers[0]" * found.is_raised
        return at, raised, factor, addend

    def rescaled(self, found: Rescaling) -> list[str]:
        """C of the 8 bits that a total becomes."""
        at, by, factor, addend = self.factors(found)
        raised = "total"
        if found.packed:
            raised = f"mcc_shl_i32(total, {factor} & 31)"
        elif found.is_raised:
            raised = f"mcc_mul_i32(total, {by})"
        scaled = f"mcc_high_sum({addend}, {raised}, {factor})"
        value = self.saturated.format(type=found.dtype, value=scaled, shift=found.shift)
        c_type = found.dtype.storage_c
        return [f"const int32_t *const numbers = {at};", f"const {c_type} value = ({c_type}){value};"]

    def sizes(self, call: Call) -> Mapping[str, int]:
        kind, (x, w), y = conv_of(call), call.ins[:2], call.outs[0]
        columns, dilation = static(w.shape[3]), kind.dilations[1]
        padded = {"x_height": static(x.shape[2])} if self.is_padded(call) else {}
        moves = y.shape[3] != 1
        return {
            **({"batch": static(x.shape[0]), "x_batch": static(x.strides[0])} if x.shape[0] != 1 else {}),
            **({"x_lines": x.lines} if x.lines else {}),
            **({} if call.rows is not None else {"height": static(y.shape[2])}),
            **padded,
            **({"x_width": static(x.shape[3])} if padded or moves else {}),
            **({"span": (columns - 1) * dilation + 1} if padded or moves else {}),
            **({"span_y": (static(w.shape[2]) - 1) * kind.dilations[0] + 1} if moves and padded else {}),
            "width": static(y.shape[3]),
            "channels": channels(call),
            "x_row": static(x.strides[2]),
            "x_pixel": static(x.strides[3]),
            "rows": static(w.shape[2]),
            "columns": columns,
            "places": self.places(call),
            "stride_y": kind.strides[0],
            "stride_x": kind.strides[1],
            "pad_y": kind.pads[0],
            "pad_x": kind.pads[1],
            "dilation_y": kind.dilations[0],
            "dilation_x": dilation,
        }


def rescaling_if_any(call: Call) -> Rescaling | None:
    return rescaling_in(call, raised=True)


def _by_result(rows: np.ndarray, channels: int) -> np.ndarray:
    """Of [channels x results, ...] the first result of every channel, then the second ..."""
    return rows.reshape(channels, -1, *rows.shape[1:]).swapaxes(0, 1)


def channels(call: Call) -> int:
    return static(call.ins[0].shape[1])


def _has_groups_of(call: Call, inputs: int) -> bool:
    """Are there several groups of so many channels, each with as many results or a multiple?"""
    group, count = conv_of(call).group, channels(call)
    return group > 1 and count == group * inputs and static(call.ins[1].shape[0]) % count == 0


def _taps(call: Call) -> int:
    return prod(call.ins[1].type.static_shape[2:])


def depthwise_case(
    name: str,
    kind: Conv,
    x: tuple[int, ...],
    window: tuple[int, ...],
    results: int = 1,
    inputs: int = 1,
    **more: Any,
) -> Case:
    """One with so many groups, of so many channels each."""
    count = x[1] * inputs
    shape = (x[0], count, *x[2:])
    return rescaled_case(name, replace(kind, group=x[1]), shape, (count * results, inputs, *window), **more)
