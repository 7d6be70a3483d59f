"""Sliding windows in portable C: which taps of a window lie inside the image, said once per row or column, never per
product.

For position `o` along an axis, tap `t` reads `o * stride - pad + t * dilation`. Invariant: for every position, the taps
in [first_tap, end_tap) are exactly those that lie inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.dims import static
from ..program.ir import View


@dataclass(frozen=True)
class Axis:
    size: int  # of the image
    out: int
    kernel: int
    stride: int
    dilation: int
    pad: int  # before the image
    x: int  # strides of the views, in elements
    y: int
    w: int = 0
    extras: tuple[int, ...] = ()

    @property
    def interior(self) -> tuple[int, int]:
        """The positions [first, end) whose windows lie inside the image altogether."""
        first = max(0, -(-self.pad // self.stride))
        room = self.size - 1 + self.pad - (self.kernel - 1) * self.dilation
        end = min(self.out, room // self.stride + 1)
        return (first, end) if first < end else (0, 0)

    @property
    def always_inside(self) -> bool:
        return self.interior == (0, self.out) and self.out > 0

    def origin(self, position: str) -> str:
        """C for the place in the image of tap 0."""
        text = position if self.stride == 1 else f"{position} * {self.stride}"
        return f"{text} - {self.pad}" if self.pad > 0 else text if self.pad == 0 else f"{text} + {-self.pad}"

    def first_tap(self, origin: str) -> str:
        """C for the first tap inside, given the name of the origin."""
        if self.dilation == 1:
            return f"{origin} < 0 ? -{origin} : 0"
        return f"{origin} < 0 ? (-{origin} + {self.dilation - 1}) / {self.dilation} : 0"

    def end_tap(self, origin: str) -> str:
        """C for the end of the taps inside; where none is, it is not above the first."""
        last = (self.kernel - 1) * self.dilation
        count = f"{self.size} - {origin}"
        if self.dilation > 1:
            count = f"({count} + {self.dilation - 1}) / {self.dilation}"
        return f"{origin} + {last} < {self.size} ? {self.kernel} : {count}"


    def ring(self, number: int, lines: int) -> list[str]:
        """C for where the rows under the window lie in a ring: `x_row[tap]`, for the taps inside. A single one is no
        loop: compilers that see one leave the sum that follows in scalars."""
        if self.kernel == 1 and self.always_inside:
            return [f"const mcc_index x_row[1] = {{at{number} % {lines} * {self.x}}};"]
        first, end = ("0", str(self.kernel)) if self.always_inside else (f"first{number}", f"end{number}")
        tap = "k" if self.dilation == 1 else f"k * {self.dilation}"
        return [
            f"mcc_index x_row[{self.kernel}];",
            f"for (mcc_index k = {first}; k < {end}; ++k) x_row[k] = (at{number} + {tap}) % {lines} * {self.x};",
        ]


def ring_rows(position: str, views: Sequence[View]) -> list[str]:
    """C that names, for each ring among the views, the line that holds a row."""
    sizes = sorted({view.lines for view in views if view.lines})
    return [f"const mcc_index {ring_row(position, lines)} = {position} % {lines};" for lines in sizes]


def ring_row(position: str, lines: int) -> str:
    """The name of that line; of a whole tensor the row itself."""
    return f"{position}_in_{lines}" if lines else position


def axes(
    out: View,
    x: View,
    w: Sequence[int],
    extras: Sequence[View],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    join: bool = True,
) -> list[Axis]:
    """One per spatial axis; `w` are strides of the weights along them, if there are any. With `join`, neighbours over
    which nothing slides (1x1 windows) become one where they lie evenly in every view."""
    found: list[Axis] = []
    for number, size in enumerate(kernel):
        at = number + 2
        axis = Axis(
            static(x.shape[at]),
            static(out.shape[at]),
            size,
            strides[number],
            dilations[number],
            pads[number],
            static(x.strides[at]),
            static(out.strides[at]),
            w[number] if w else 0,
            tuple(static(extra.strides[at]) for extra in extras),
        )
        if join and found and (joined := _joined(found[-1], axis)):
            found[-1] = joined
        else:
            found.append(axis)
    return found


def _joined(a: Axis, b: Axis) -> Axis | None:
    for axis in (a, b):
        if axis.kernel != 1 or axis.stride != 1 or axis.pad != 0 or axis.size != axis.out:
            return None
    if b.out != 1 and a.out != 1:
        for outer, inner in ((a.x, b.x), (a.y, b.y), *zip(a.extras, b.extras, strict=True)):
            if outer != inner * b.out:
                return None
    small = a if b.out == 1 else b
    return Axis(a.size * b.size, a.out * b.out, 1, 1, 1, 0, small.x, small.y, 0, small.extras)
