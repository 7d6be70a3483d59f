"""bottleneck in portable C: a window of wide columns slides along the rows that are made together.

The workspace holds the columns under the window, each with all rows under the windows of these rows, and the channels
of one point behind the window. Column c lies in slot c modulo the window's width, and is made when the window reaches
it. Rows and columns outside of the image are never made nor read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.int8.patch_conv import rescaled_case, residual_case
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import term_c
from mccompile.expr.ir import operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    Target,
    View,
    elementwise_alias,
    static_views,
    supports_types,
)
from mccompile.kinds.bottleneck import Bottleneck
from mccompile.kinds.conv import Conv

ALIGN = 4


class Windows(Kernel):
    kind = Bottleneck

    def cases(self) -> Sequence[Case]:
        same = (1, 1, 1, 1)
        floats = TensorType(f32, (1, 4, 6, 5))
        plain = Conv((1, 1), (1, 1), (0, 0, 0, 0), 1, f32)
        weights = (TensorType(f32, (6, 4, 1, 1)), TensorType(f32, (6, 1, 3, 3)), TensorType(f32, (3, 6, 1, 1)))
        slide = replace(plain, pads=same, group=6)
        in_floats = Bottleneck(plain, slide, plain, (1, 1))
        return [
            bottleneck_case("3x3", (1, 4, 5, 7), 8, 4, 3, 1, same),
            bottleneck_case("two_rows", (1, 4, 5, 7), 8, 4, 3, 1, same, rows=2),
            bottleneck_case("residual", (1, 4, 5, 7), 8, 4, 3, 1, same, rows=2, residual=True),
            bottleneck_case("strided", (1, 3, 13, 37), 6, 5, 3, 2, (0, 0, 1, 1)),
            bottleneck_case("strided_two_rows", (1, 3, 13, 12), 6, 5, 3, 2, same, rows=2),
            bottleneck_case("5x5", (1, 3, 7, 6), 5, 2, 5, 1, (2, 2, 2, 2), rows=3),
            bottleneck_case("5x5_strided", (1, 3, 7, 6), 5, 2, 5, 2, (1, 2, 2, 1)),
            bottleneck_case("one_point", (1, 3, 1, 1), 4, 2, 3, 1, same, rows=4),
            bottleneck_case("wide_pads", (1, 3, 2, 2), 4, 2, 3, 1, (3, 4, 3, 4), rows=2),
            bottleneck_case("two_pictures", (2, 3, 4, 5), 4, 2, 3, 1, same),
            bottleneck_case("gaps", (1, 3, 7, 8), 4, 2, 2, 3, (0, 1, 0, 1), rows=2),
            bottleneck_case("1x1", (1, 3, 4, 5), 4, 2, 1, 1, (0, 0, 0, 0)),
            bottleneck_case("u8", (1, 4, 5, 7), 8, 4, 3, 1, same, dtype=u8),
            Case("f32", in_floats, (floats, *weights), (TensorType(f32, (1, 3, 6, 5)),)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        if any(view.buffer.dtype.is_packed for view in (*call.ins, *call.outs)):
            return No("elements are smaller than a byte")
        printer = _Printer(call)
        first = len(call.ins) - len(printer.kind.parts(call.ins)[2]) + printer.kind.narrow.fixed - 1
        bits = call.outs[0].buffer.dtype.bits
        same = (i for i in range(first, len(call.ins)) if call.ins[i].buffer.dtype.bits == bits)
        return Needs(
            alias={(0, i): 0 for i in same if elementwise_alias(call, i)},
            rows=frozenset({2}),
            scratch=printer.held + printer.point,
            scratch_align=ALIGN,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.macs) * 2 * target.machine.mac, code=900)

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call).context()

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        return ["y"], _names(call)

    def label(self, call: Call) -> str:
        printer, x = _Printer(call), call.ins[0]
        kernel = "x".join(map(str, printer.kernel))
        return f"bottleneck_{kernel}s{printer.slide.strides[0]}_{x.shape[2]}x{x.shape[3]}x{x.shape[1]}_{printer.wide}"


def _names(call: Call) -> list[str]:
    """Of the operands: those of the three convolutions have a letter each."""
    kind, found = call.of(Bottleneck), ["x"]
    convs = (kind.widen, kind.slide, kind.narrow)
    for letter, conv, part in zip("abc", convs, kind.parts(call.ins), strict=True):
        fixed = [f"{letter}_{name}" for name in conv.names[1:]]
        found += [*fixed, *(f"{letter}{number}" for number in range(len(part) - len(fixed)))]
    return found


class _Printer:
    """Counters: n batch, p and q row and column of the result, r row among those made together, column of x, line of
    the rows under the windows, e wide channel, o channel of the result."""

    def __init__(self, call: Call) -> None:
        self.call, self.kind = call, call.of(Bottleneck)
        self.slide = self.kind.slide
        self.x, self.y = call.ins[0], call.outs[0]
        self.parts = self.kind.parts(call.ins)
        self.names = self.kind.parts(_names(call))
        self.between = self.kind.between([view.type for view in call.ins])
        self.wide = static(self.between[0].shape[1])
        self.kernel = tuple(static(size) for size in self.parts[1][0].shape[2:])
        self.batch = "n" if self.x.shape[0] != 1 else "0"
        self.rows = min(self.kind.rows, static(self.y.shape[2]))
        self.lines = (self.rows - 1) * self.slide.strides[0] + self.kernel[0]

    @property
    def held(self) -> int:
        """Bytes of the columns under a window."""
        return _aligned(self.kernel[1] * self.lines * self.wide * self.between[0].dtype.bits // 8)

    @property
    def point(self) -> int:
        return _aligned(self.wide * self.between[1].dtype.bits // 8)

    def context(self) -> dict[str, Any]:
        (top, left), (high, broad), x, y = self.slide.pads[:2], self.slide.strides, self.x, self.y
        wide, slid = self.between
        window = index_c([self.lines * self.wide, self.wide, 1], ["slot", "line", "e"])
        tap = index_c([self.lines * self.wide, self.wide, 1], ["slot", f"(r * {high} + k)", "e"])
        image = [self.batch, "c", _line("(top + line)", x), "column"]
        return {
            "by_rows": self.call.rows is not None,
            "batch": static(x.shape[0]),
            "x_channels": static(x.shape[1]),
            "x_height": static(x.shape[2]),
            "x_width": static(x.shape[3]),
            "y_channels": static(y.shape[1]),
            "y_height": static(y.shape[2]),
            "y_width": static(y.shape[3]),
            "wide": self.wide,
            "kernel": self.kernel,
            "rows": self.rows,
            "lines": self.lines,
            "top": f"p * {high} - {top}",
            "left": f"q * {broad} - {left}",
            "stride_y": high,
            "held": self.held,
            "held_type": wide.dtype.storage_c,
            "point_type": slid.dtype.storage_c,
            "widen": self.conv(0, ("x", x, index_c(x.strides, image)), ["e", "c", "0", "0"]),
            "slide": self.conv(1, ("held", wide.dtype, tap), ["e", "0", "k", "j"]),
            "narrow": self.conv(2, ("point", slid.dtype, "e"), ["o", "e", "0", "0"]),
            "store_held": store_c(wide.dtype, "held", window, self.value(0)),
            "store_point": store_c(slid.dtype, "point", "e", self.value(1)),
            "store": store_c(
                y.buffer.dtype, "y", index_c(y.strides, [self.batch, "o", _line("(p + r)", y), "q"]), self.value(2)
            ),
        }

    def convs(self) -> tuple[Conv, Conv, Conv]:
        return self.kind.widen, self.slide, self.kind.narrow

    def conv(self, number: int, load: tuple[str, Any, str], weight: list[str]) -> dict[str, Any]:
        """What a step of a sum adds, and what becomes of the sum."""
        kind, views, names = self.convs()[number], self.parts[number], self.names[number]
        total, w = kind.accumulator, views[0]
        pointer, source, place = load
        dtype: DType = source.buffer.dtype if isinstance(source, View) else source
        zeros, x_zero, w_zero = [], "", ""
        if kind.x_zero:
            x_zero = "zero_x"
            zeros.append((x_zero, term_c(dtype, names[1], "0", total)))
        if kind.w_zero:
            w_zero, view = "zero_w", views[1 + kind.x_zero]
            channel = index_c(view.strides, [weight[0]])
            zeros.append((w_zero, term_c(view.buffer.dtype, names[1 + kind.x_zero], channel, total)))
        return {
            "type": total.compute_c,
            "exact": "" if total.is_float else total.name,
            "zeros": zeros,
            "left": term_c(dtype, pointer, place, total, x_zero),
            "right": term_c(w.buffer.dtype, names[0], index_c(w.strides, weight), total, w_zero),
            "lines": self.statements(number)[0],
        }

    def value(self, number: int) -> str:
        """C of what the sum becomes."""
        return self.statements(number)[1]

    def statements(self, number: int) -> tuple[list[str], str]:
        """Those of the epilogue, and its value."""
        places = (["(top + line)", "column"], ["(p + r)", "q"], ["(p + r)", "q"])
        at = [self.batch, "o" if number == 2 else "e", *places[number]]
        kind = self.convs()[number]
        extras = zip(self.parts[number], self.names[number], strict=True)
        loads = [
            load_c(view.buffer.dtype, name, index_c(view.strides, [*at[:2], _line(at[2], view), at[3]]))
            for view, name in list(extras)[kind.fixed - 1 :]
        ]
        return to_statements(kind.epilogue or operand(0, kind.accumulator), ["total", *loads], local="v")


def _line(row: str, view: View) -> str:
    """Where a row lies."""
    return f"({row} % {view.lines})" if view.lines else row


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def bottleneck_case(
    name: str,
    x: tuple[int, ...],
    wide: int,
    out: int,
    kernel: int,
    stride: int,
    pads: tuple[int, ...],
    dtype: DType = i8,
    rows: int = 1,
    residual: bool = False,
) -> Case:
    """In integers of 8 bits, channels-last."""
    point = Conv((1, 1), (1, 1), (0, 0, 0, 0), 1, i32, x_zero=True)
    slide = replace(point, strides=(stride, stride), pads=pads, group=wide)
    first = rescaled_case("", point, x, (wide, x[1], 1, 1), dtype)
    second = rescaled_case("", slide, first.outs[0].static_shape, (wide, 1, kernel, kernel), dtype)
    last = second.outs[0].static_shape, (out, wide, 1, 1)
    third = residual_case("", point, *last) if residual else rescaled_case("", point, *last, dtype)
    cases = (first, second, third)
    widen, slid, narrow = (case.kind for case in cases)
    assert isinstance(widen, Conv) and isinstance(slid, Conv) and isinstance(narrow, Conv)
    found = Case(
        name,
        Bottleneck(widen, slid, narrow, (len(first.ins) - 1, len(second.ins) - 1), rows),
        (first.ins[0], *(type for case in cases for type in case.ins[1:])),
        third.outs,
        permute={0: (0, 2, 3, 1)},
        permute_outs={0: (0, 2, 3, 1)},
    )
    base = 0
    for case in cases:
        moved = {number: number + base for number in range(1, len(case.ins))}
        found = replace(
            found,
            permute={**found.permute, **{moved[n]: v for n, v in case.permute.items() if n}},
            constant=found.constant | {moved[n] for n in case.constant if n},
            ranges={**found.ranges, **{moved[n]: v for n, v in case.ranges.items() if n}},
            values={**found.values, **{moved[n]: v for n, v in case.values.items() if n}},
            repeated={**found.repeated, **{moved[n]: v for n, v in case.repeated.items() if n}},
        )
        base += len(case.ins) - 1
    return replace(found, ranges={**found.ranges, 0: first.ranges[0]})
