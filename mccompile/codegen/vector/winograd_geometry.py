"""Where Winograd's method finds its patches: the axes of a convolution that it transforms, and the one in front.

Columns are transformed, and rows as well where the window has three of each. The axis in front of them is one of
frames: those of a video, or the rows of a picture whose columns alone are transformed. Taps along it are summed like
input channels; where it has one tap, frames are worked off one after the other like pictures.
"""

from __future__ import annotations

from ...base.dims import static
from ...base.records import dataclass
from ...kinds.conv import Conv
from ...program.ir import Call
from ..windows import Axis


@dataclass(frozen=True)
class TransformedAxis:
    """Patches give `m` results each along it, `dilation` apart."""

    size: int
    results: int
    pad: int
    dilation: int

    def patches(self, m: int) -> int:
        return -(-self.results // (m * self.dilation)) * self.dilation

    def first(self, patch: str, m: int) -> str:
        """C of the first result of a patch."""
        if self.dilation == 1:
            return f"{patch} * {m}"
        return f"{patch} / {self.dilation} * {m * self.dilation} + {patch} % {self.dilation}"

    def inputs(self, m: int) -> Axis:
        """The window of a patch, of all its inputs."""
        return Axis(self.size, self.patches(m), m + 2, m, self.dilation, self.pad, 0, 0)

    def missing(self, result: int, m: int) -> bool:
        """Does this result of a patch lie behind the end in any of them?"""
        last = self.patches(m) - 1
        return last // self.dilation * m * self.dilation + last % self.dilation + result * self.dilation >= self.results


@dataclass(frozen=True)
class Geometry:
    rows: TransformedAxis | None  # None: they are not transformed
    columns: TransformedAxis
    frames: Axis  # of a patch
    apart: int = 0  # frames that have no inputs in common; 0: there is no such axis
    stride: int = 1  # between the inputs of these

    def patches(self, m: int) -> int:
        """Of a picture."""
        return (self.rows.patches(m) if self.rows else 1) * self.columns.patches(m)

    def elements(self, m: int) -> int:
        """Of a transformed patch."""
        return (m + 2) ** (2 if self.rows else 1)


def geometry(call: Call) -> Geometry | None:
    """None where there is nothing to transform."""
    kind, (x, w), y = call.of(Conv), call.ins[:2], call.outs[0]
    window = [static(size) for size in w.shape[2:]]
    fits = [taps == 3 and stride == 1 for taps, stride in zip(window, kind.strides, strict=True)]
    in_front = len(window) - (2 if all(fits[-2:]) and len(fits) > 1 else 1)
    if not fits[-1] or in_front > 1:
        return None
    transformed = [
        TransformedAxis(static(x.shape[axis + 2]), static(y.shape[axis + 2]), kind.pads[axis], kind.dilations[axis])
        for axis in range(in_front, len(window))
    ]
    rows, columns = transformed[0] if len(transformed) == 2 else None, transformed[-1]
    if not in_front:
        return Geometry(rows, columns, Axis(1, 1, 1, 1, 1, 0, 0, 0))
    frames = Axis(
        static(x.shape[2]), static(y.shape[2]), window[0], kind.strides[0], kind.dilations[0], kind.pads[0], 0, 0
    )
    if frames.kernel > 1:
        return Geometry(rows, columns, frames, apart=1)
    if not frames.always_inside:
        return None
    return Geometry(rows, columns, Axis(1, 1, 1, 1, 1, 0, 0, 0), frames.out, frames.stride)
