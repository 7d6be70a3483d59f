"""int8 pooling, sums and largest elements, for cores with DSP instructions: four channels at a time, sums in 16 bits as
long as they hold them. Operand and result lie channels-last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, i8, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.codegen.windows import Axis, any_axes, known, ring_row, ring_rows, windows_name
from mccompile.expr.code import Code
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views, supports_types
from mccompile.kinds.pool import Pool

MOST = 128  # elements of 8 bits whose sum 16 bits hold
AT_ONCE = 4  # channels
UNROLLED = 4  # columns of a window
# Instructions of four channels for an element, a row of a window, a window, and what becomes of its sums
ELEMENT, ROW, WINDOW, RESULTS = 3, 5, 8, 40
INSTRUCTIONS = 12  # in the time of an element in plain C


class Windows(Kernel):
    kind = Pool
    branches = ""

    def cases(self) -> Sequence[Case]:
        last = Pool("max", (3, 2), (1, 2), (1, 1), (1, 0, 2, 1), (), i8)
        return [
            _case("whole", (1, 8, 5, 7), (5, 7), (1, 1)),
            _case("large", (1, 4, 25, 9), (25, 9), (1, 1)),
            _case("large_u8", (2, 4, 17, 16), (17, 16), (1, 1), u8),
            _case("windows", (1, 12, 6, 9), (3, 3), (2, 2)),
            _case("edges", (2, 6, 5, 7), (3, 3), (2, 1), pads=(1, 2, 2, 1)),
            _case("edges_large", (1, 5, 13, 12), (12, 13), (1, 1), u8, pads=(6, 6, 5, 7), dilations=(1, 1)),
            _case("dilated", (1, 4, 9, 8), (3, 2), (2, 1), pads=(2, 3, 2, 3), dilations=(2, 3)),
            _largest("largest", last, (1, 8, 5, 6)),
            _largest("largest_u8", last, (2, 8, 5, 6), u8),
            _largest("largest_odd", replace(last, pads=(0,) * 4), (1, 7, 5, 6)),
            _largest("largest_dilated", replace(last, dilations=(2, 2), pads=(2, 1, 2, 1)), (1, 3, 7, 6)),
            _largest("largest_epilogue", last, (1, 9, 5, 6), halved=True),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, x = call.of(Pool), call.ins[0]
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        if x.buffer.dtype not in (i8, u8) or (kind.algorithm, kind.accumulator) not in (
            ("sum", i32),
            ("max", x.buffer.dtype),
        ):
            return No("it is neither a sum nor a maximum of 8-bit integers")
        if len(kind.kernel) != 2 or 0 in call.outs[0].shape:
            return No("it is not 2-D, or the result is empty")
        if x.strides[1] != 1 or kind.kernel[1] > MOST or static(x.shape[1]) < AT_ONCE - 1:
            return No("x is not channels-last, has few channels, or windows are wide")
        beyond = -static(x.shape[1]) % AT_ONCE
        rows = frozenset({2} if call.outs[0].shape[2] != 1 else ())
        return Needs(rows=rows, slack={0: beyond} if beyond else {})

    def cost(self, call: Call, target: Target) -> Cost:
        kind, y = call.of(Pool), call.outs[0]
        channels = static(y.shape[1])
        blocks = static(y.type.count) // channels * -(-channels // AT_ONCE)
        each = WINDOW + kind.kernel[0] * (ROW + ELEMENT * kind.kernel[1]) + RESULTS * (not _is_stored_whole(call))
        return Cost(blocks * each * target.machine.element / INSTRUCTIONS, code=250)

    def label(self, call: Call) -> str:
        kind, x = call.of(Pool), call.ins[0]
        return f"{kind.algorithm}_pool_{windows_name(kind.kernel, kind.strides, x)}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y = call.of(Pool), call.ins[0], call.outs[0]
        picture = "n" if x.shape[0] != 1 else "0"
        window = (kind.kernel, kind.strides, kind.dilations, kind.pads)
        axes = known(any_axes(y, x, (), call.ins[1:], *window, join=False))
        position = ["0" if axis.out == 1 else f"p{number}" for number, axis in enumerate(axes)]

        def place(view: View, channel: str | Code) -> str:
            row = ring_row(position[0], view.lines)
            return index_c([static(stride) for stride in view.strides], [picture, channel, row, position[1]])

        own = Code("c + lane", loose=True)
        loads = [load_c(view.buffer.dtype, f"e{number}", place(view, own)) for number, view in enumerate(call.ins[1:])]
        total = "totals[lane]" if kind.algorithm == "sum" else f"({x.buffer.dtype.storage_c})(largest >> (8 * lane))"
        lines, value = to_statements(kind.epilogue or operand(0, kind.accumulator), [total, *loads], local="v")
        channels, is_long = static(x.shape[1]), kind.algorithm == "sum" and kind.kernel[0] * kind.kernel[1] > MOST
        return {
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "batch": static(x.shape[0]),
            "channels": channels,
            "axes": [_printed(axis, number) for number, axis in enumerate(axes)],
            "by_rows": call.rows is not None,
            "rings": ring_rows("p0", [y, *call.ins[1:]]) if call.rows is not None else [],
            "x_lines": x.lines,
            "dilation": axes[0].dilation,
            "x_at": index_c(
                [static(x.strides[0]), axes[0].x, axes[1].x, 1],
                [picture, "x_line" if x.lines else "begin0", "begin1", "c"],
            ),
            "largest": kind.algorithm == "max",
            "least": 0x80808080 if x.buffer.dtype is i8 else 0,
            "long": is_long,
            "unrolled": kind.kernel[1] <= UNROLLED and not is_long,
            "lanes": "4" if channels % AT_ONCE == 0 else "lanes",
            "whole": _is_stored_whole(call),
            "y_at": place(y, "c"),
            "lines": lines,
            "store": store_c(y.buffer.dtype, "y", place(y, own), value),
        }


def _is_stored_whole(call: Call) -> bool:
    """Are largest elements the result as they are, and lie as they do in x?"""
    kind = call.of(Pool)
    same = kind.epilogue in (None, operand(0, kind.accumulator))
    return kind.algorithm == "max" and same and call.outs[0].strides[1] == 1


def _printed(axis: Axis, number: int) -> dict[str, Any]:
    """What the template prints of an axis."""
    inside, at, origin = axis.always_inside, f"at{number}", axis.origin(f"p{number}" if axis.out != 1 else "0")
    first = f"{at} + first{number}" + (f" * {axis.dilation}" if axis.dilation != 1 else "")
    taps = [] if inside else [f"first{number} = {axis.first_tap(at)}", f"end{number} = {axis.end_tap(at)}"]
    return {
        "out": axis.out,
        "constants": [f"{at} = {origin}", *taps, f"begin{number} = {at if inside else first}"],
        "begin": "0" if inside else f"first{number}",
        "end": str(axis.kernel) if inside else f"end{number}",
        "step": axis.x * axis.dilation,
        "size": axis.kernel,
        "inside": inside,
    }


def _case(
    name: str,
    x: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dtype: DType = i8,
    pads: tuple[int, ...] = (0,) * 4,
    dilations: tuple[int, int] = (1, 1),
) -> Case:
    mean = apply("shift_right", apply("add", operand(0, i32), operand(1, i32)), literal(6, i32))
    bounded = apply("min", apply("max", mean, literal(dtype.low, i32)), literal(dtype.high, i32))
    kind = Pool("sum", kernel, strides, dilations, pads, (), i32, epilogue=cast(bounded, dtype))
    return _last(name, kind, x, dtype, i32)


def _largest(name: str, kind: Pool, x: tuple[int, ...], dtype: DType = i8, halved: bool = False) -> Case:
    half = cast(apply("shift_right", cast(operand(0, dtype), i32), literal(1, i32)), dtype)
    return _last(name, replace(kind, accumulator=dtype, epilogue=half if halved else None), x, dtype)


def _last(name: str, kind: Pool, x: tuple[int, ...], dtype: DType, *more: DType) -> Case:
    """One between channels-last tensors; the epilogue has operands of types `more`."""
    ends = zip(x[2:], kind.kernel, kind.dilations, kind.strides, kind.pads, kind.pads[2:], strict=False)
    space = tuple((n + a + b - (k - 1) * d - 1) // s + 1 for n, k, d, s, a, b in ends)
    out = TensorType(dtype, (*x[:2], *space))
    ins = (TensorType(dtype, x), *[TensorType(each, out.shape) for each in more])
    order, ranges = {0: (0, 2, 3, 1)}, {0: (dtype.low, dtype.high)}
    return Case(name, replace(kind, space=space), ins, (out,), permute=order, permute_outs=order, ranges=ranges)
