"""Sliding windows in portable C: which taps of a window lie inside the image, said once per row or column, never per
product.

For position `o` along an axis, tap `t` reads `o * stride - pad + t * dilation`. Invariant: for every position, the taps
in [first_tap, end_tap) are exactly those that lie inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from ..base.dims import Dim, bounds, static, upper
from ..base.marked import marked_name, named, sized
from ..base.records import dataclass
from ..expr.code import Code
from ..expr.dims_c import operand_c, size_c
from ..program.ir import View
from .loops import size_name
from .tiles import Range

Extent = TypeVar("Extent", bound=Dim)


@dataclass(frozen=True)
class Sliding(Generic[Extent]):
    """A window along one axis."""

    size: Extent  # of the image
    out: Extent
    kernel: int
    stride: int
    dilation: int
    pad: int  # before the image
    x: Extent  # strides of the views, in elements
    y: Extent
    w: int = 0
    extras: tuple[Extent, ...] = ()

    @property
    def is_static(self) -> bool:
        return isinstance(self.size, int) and isinstance(self.out, int)

    @property
    def interior(self) -> tuple[int, int]:
        """The positions [first, end) whose windows lie inside the image altogether, where it is as large as it can
        be."""
        first = max(0, -(-self.pad // self.stride))
        room = upper(self.size) - 1 + self.pad - (self.kernel - 1) * self.dilation
        end = min(upper(self.out), room // self.stride + 1)
        return (first, end) if first < end else (0, 0)

    @property
    def always_inside(self) -> bool:
        if self.is_static:
            return self.interior == (0, self.out) and self.out != 0
        last = (self.out - 1) * self.stride - self.pad + (self.kernel - 1) * self.dilation
        return self.pad <= 0 and bounds(self.size - 1 - last)[0] >= 0

    def inside(self, number: int, points: int) -> str:
        """C for whether the windows of so many positions from `p<number>` on lie inside, as those of a tile do."""
        position = f"p{number}"
        if self.is_static:
            first, end = self.interior
            if end - first == points:
                return f"{position} == {sized(first)}"
            return f"{position} >= {sized(first)} && {position} <= {sized(end - points)}"
        tests = [f"{position} + {points} <= {operand_c(self.out)}"]
        if not self.always_inside:
            reach = (points - 1) * self.stride + (self.kernel - 1) * self.dilation
            at = named(f"at{number}")
            tests += [f"{at} >= 0", f"{at} + {reach} < {operand_c(self.size)}"]
        return " && ".join(tests)

    def origin(self, position: str) -> str:
        """C for the place in the image of tap 0."""
        name = marked_name(position)
        text = name if self.stride == 1 else f"{name} * {sized(self.stride)}"
        if self.pad == 0:
            return text
        return f"{text} {'-' if self.pad > 0 else '+'} {sized(abs(self.pad))}"

    def place(self, position: str) -> Code:
        """The same, to be computed with."""
        return Code(self.origin(position), self.stride != 1 or self.pad != 0)

    def first_tap(self, origin: str) -> str:
        """C for the first tap inside, given the name of the origin."""
        if self.pad <= 0:
            return "0"
        if self.dilation == 1:
            return f"{origin} < 0 ? -{origin} : 0"
        return f"{origin} < 0 ? (-{origin} + {sized(self.dilation - 1)}) / {sized(self.dilation)} : 0"

    def end_tap(self, origin: str) -> str:
        """C for the end of the taps inside; where none is, it is not above the first."""
        last = (self.kernel - 1) * self.dilation
        if bounds(self.size - 1 - last - (self.out - 1) * self.stride + self.pad)[0] >= 0:
            return sized(self.kernel)
        size = size_c(self.size)
        count = f"{size} - {origin}"
        if self.dilation > 1:
            count = f"({count} + {sized(self.dilation - 1)}) / {sized(self.dilation)}"
        return f"{origin} + {sized(last)} < {size} ? {sized(self.kernel)} : {count}"

    @property
    def is_one_row(self) -> bool:
        """Is a single tap always inside?"""
        return self.kernel == 1 and self.always_inside

    def ring(self, number: int, lines: int) -> list[str]:
        """C for where the rows under the window lie in a ring, for the taps inside: what `ring_tap` names."""
        at = named(f"at{number}")
        if self.is_one_row:
            return [f"const mcc_index x_row = {'0' if lines == 1 else f'{at} % {lines} * {self.x}'};"]
        first, end = ("0", str(self.kernel)) if self.always_inside else (f"first{number}", f"end{number}")
        tap = "k" if self.dilation == 1 else f"k * {self.dilation}"
        return [
            f"mcc_index x_row[{self.kernel}];",
            f"for (mcc_index k = {first}; k < {end}; ++k) x_row[k] = ({at} + {tap}) % {lines} * {self.x};",
        ]

    def ring_tap(self, tap: str) -> str:
        """C for where the row under a tap lies."""
        return named("x_row") if self.is_one_row else f"{named('x_row')}[{tap}]"

    def ring_scope(self) -> str:
        """How a part of a function declares what `ring` has."""
        return "x_row" if self.is_one_row else "const mcc_index *x_row"


Axis = Sliding[int]  # where all sizes are known at compile time


def ring_rows(position: str, views: Sequence[View]) -> list[str]:
    """C that names, for each ring among the views, the line that holds a row."""
    sizes = sorted({view.lines for view in views if view.lines})
    lines_of = ((size, "0" if size == 1 else f"{named(position)} % {size}") for size in sizes)
    return [f"const mcc_index {ring_row(position, size)} = {line};" for size, line in lines_of]


def positions(axis: Sliding[Dim], number: int, by_rows: bool, x: View, others: Sequence[View]) -> dict[str, Any]:
    """What a template prints of the loop over the result's positions along an axis of the image; `others` are the
    result and what is read at its positions."""
    run, rows = Range.over(f"p{number}", axis.out), number == 0
    rings = sorted({view.lines for view in others if view.lines}) if rows else []
    return {
        "scope": [
            *(f"{name}{number}" for name in ("p", "at", "first", "end")),
            *(ring_row(f"p{number}", lines) for lines in rings),
            *([axis.ring_scope()] if rows and x.lines else []),
        ],
        "loop": (replace(run, begin="begin", end="end") if by_rows and rows else run).header,
        "ring": [
            *(axis.ring(number, x.lines) if rows and x.lines else []),
            *(ring_rows(f"p{number}", others) if rows else []),
        ],
        "counter": f"p{number}",
        "out": size_c(axis.out),
    }


def ring_row(position: str, lines: int) -> str:
    """The name of that line; of a whole tensor the row itself."""
    return f"{position}_in_{lines}" if lines else position


def any_axes(
    out: View,
    x: View,
    w: Sequence[int],
    extras: Sequence[View],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    join: bool = True,
) -> list[Sliding[Dim]]:
    """One per spatial axis; `w` are strides of the weights along them, if there are any. With `join`, neighbours over
    which nothing slides (1x1 windows) become one where they lie evenly in every view, or where one is a single point.
    """
    found: list[Sliding[Dim]] = []
    for number, size in enumerate(kernel):
        at = number + 2
        axis: Sliding[Dim] = Sliding(
            x.shape[at],
            out.shape[at],
            size,
            strides[number],
            dilations[number],
            pads[number],
            x.strides[at],
            out.strides[at],
            w[number] if w else 0,
            tuple(extra.strides[at] for extra in extras),
        )
        if join and found and (joined := _joined(found[-1], axis)):
            found[-1] = joined
        else:
            found.append(axis)
    return found


def windows_name(kernel: Sequence[Dim], strides: Sequence[int], x: View) -> str:
    """`3x3s2_8x9x16`: windows over an image, in the names of functions."""
    windows = "x".join(map(str, kernel)) + "s" + "x".join(map(str, dict.fromkeys(strides)))
    return f"{windows}_{'x'.join(map(size_name, (*x.shape[2:], x.shape[1])))}"


def known(axes: Sequence[Sliding[Dim]]) -> list[Axis]:
    """The same where all sizes are known at compile time."""
    return [_known(axis) for axis in axes]


def _known(axis: Sliding[Dim]) -> Axis:
    size, out, x, y = (static(dim) for dim in (axis.size, axis.out, axis.x, axis.y))
    extras = tuple(static(stride) for stride in axis.extras)
    return Sliding(size, out, axis.kernel, axis.stride, axis.dilation, axis.pad, x, y, axis.w, extras)


def _joined(a: Sliding[Dim], b: Sliding[Dim]) -> Sliding[Dim] | None:
    for point, other in ((a, b), (b, a)):
        if point.kernel == 1 and point.pad == 0 and point.size == 1 and point.out == 1:
            return other
    for axis in (a, b):
        if axis.kernel != 1 or axis.stride != 1 or axis.pad != 0 or axis.size != axis.out:
            return None
    if b.out != 1 and a.out != 1:
        for outer, inner in ((a.x, b.x), (a.y, b.y), *zip(a.extras, b.extras, strict=True)):
            if outer != inner * b.out:
                return None
    small = a if b.out == 1 else b
    return Sliding(a.size * b.size, a.out * b.out, 1, 1, 1, 0, small.x, small.y, 0, small.extras)
