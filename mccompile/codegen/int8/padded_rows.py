"""Padded rows of an image: pointers to the rows of a window, in each of which the channels of a pixel are contiguous,
and the halo, where windows reach beyond the image, holds the zero point.

Rows that are like that already are read in place. Others are copied once each into a ring of padded rows; one more row
is padding altogether. So borders need no code of their own. Positions in one dimension are an image of one row. In a
volume, whose images follow each other in depth, a row of the ring holds those of all images under a window.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...base.dims import static
from ...base.marked import named
from ...base.records import dataclass
from ...kinds.conv import Conv
from ...program.ir import Call, View
from ..loops import index_c
from ..tiles import Range

FEW_PLANES = 4  # a run of elements in a window of one channel is short


class PaddedRows:
    """For windows of `at_once` rows of results. Counters in C: n batch, d depth of the result, p0 row of it, k0 row
    of a window; those of the images in its depth follow each other. `over`: so many bytes may be read behind the last
    one. `planes`: a few channels that lie apart may stay so, each with a row of its own."""

    def __init__(self, call: Call, kind: Conv, at_once: int, over: int, planes: bool = False) -> None:
        self.planes = planes
        self.call, self.at_once, self.over = call, at_once, over
        self.x, self.y = call.ins[0], call.outs[0]
        rank = len(kind.strides)
        one, none = (1,) * (2 - rank), (0,) * (2 - rank)
        self.deep = Depth.of(call, kind)
        self.zero = kind.x_zero
        self.batch, self.channels = static(self.x.shape[0]), static(self.x.shape[1])
        self.kernel = (*one, *(static(size) for size in call.ins[1].shape[2:]))[-2:]
        self.strides, self.dilations = (*one, *kind.strides)[-2:], (*one, *kind.dilations)[-2:]
        self.before, self.after = (*none, *kind.pads[:rank])[-2:], (*none, *kind.pads[rank:])[-2:]
        self.x_space, self.y_space = space(self.x), space(self.y)

    @cached_property
    def in_place(self) -> bool:
        side_by_side = self.x.strides[1] == 1 or self.channels == 1
        return side_by_side and not any((*self.before, *self.after, *self.deep.pads))

    @cached_property
    def planar(self) -> bool:
        """Do channels have rows of their own?"""
        apart = steps(self.x)[1] == 1 and self.x.strides[1] != 1 and self.dilations[1] == 1
        few = 1 < self.channels <= FEW_PLANES and self.kernel[1] > 1
        return self.planes and apart and few and not self.in_place

    @property
    def pixel(self) -> int:
        """From position to position in a row that is read."""
        return steps(self.x)[1] if self.in_place else 1 if self.planar else self.channels

    @property
    def plane(self) -> int:
        """Elements of a row of one channel."""
        return self.x_space[1] + self.before[1] + self.after[1]

    @property
    def lines(self) -> int:
        """Rows of the windows in all of their images."""
        return self.deep.kernel * self.rows

    @property
    def rows(self) -> int:
        """Of the windows in an image."""
        return self.kernel[0] + (self.at_once - 1) * self.strides[0]

    @property
    def span(self) -> int:
        """Rows from the first to the last of the windows."""
        return (self.rows - 1) * self.dilations[0] + 1

    @property
    def line(self) -> int:
        """Bytes of a row in the ring, of one image."""
        return self.plane * self.channels

    @property
    def ring_bytes(self) -> int:
        return 0 if self.in_place else (self.span + 1) * self.deep.kernel * self.line + self.over

    @property
    def slack(self) -> int:
        """Bytes that may be read behind x."""
        return self.over if self.in_place else 0

    @property
    def picture(self) -> str:
        """C of the pointer to the picture in hand."""
        return index_c([1, static(self.x.strides[0])], ["x", "n" if self.batch != 1 else "0"])

    @property
    def outer(self) -> list[str]:
        """C of the loops around rows."""
        loops = [Range("n", self.batch), Range("d", self.deep.out)]
        return [loop.header for loop in loops if loop.extent != 1]

    @property
    def shared(self) -> bool:
        """Are rows computed piece by piece?"""
        return self.call.rows is not None or self.call.workers > 1

    @property
    def end(self) -> str:
        return named("end") if self.shared else str(self.y_space[0])

    @property
    def declared(self) -> str:
        """How a part of a function declares the pointers to the rows of a window."""
        return f"const {self.x.buffer.dtype.storage_c} **lines"

    def context(self) -> dict[str, Any]:
        """For the macros of padded_rows.c.j2."""
        (row, column), (height, width) = steps(self.x), self.x_space
        return {
            "type": self.x.buffer.dtype.storage_c,
            "in_place": self.in_place,
            "moves": not self.in_place or row != 0,
            "begin": "begin" if self.shared else "0",
            "end": self.end,
            "at_once": self.at_once,
            "skips": self.shared or self.strides[0] * self.at_once > self.span,
            "rows": self.rows,
            "lines": self.lines,
            "deep": self.deep,
            "height": height,
            "width": width,
            "channels": self.channels,
            "blank": "x_zero[0]" if self.zero else "0",
            "span": self.span,
            "line": self.line,
            "bytes": self.ring_bytes,
            "dilation": self.dilations[0],
            "top": index_c([self.strides[0]], ["p0"], -self.before[0]),
            "left": self.before[1] * self.pixel,
            "planar": self.planar,
            "plane": self.plane,
            "x_plane": static(self.x.strides[1]),
            "together": column == self.channels and (self.x.strides[1] == 1 or self.channels == 1),
            "x_next": self.from_row("next"),
            "x_row": self.from_row("row"),
            "x_at": index_c([static(self.x.strides[1]), column], ["c", "i"]),
        }

    def from_row(self, row: str) -> str:
        """C of the pointer to a row of the image in hand."""
        line = f"({row} % {self.x.lines})" if self.x.lines else row
        return index_c([1, self.deep.x, steps(self.x)[0]], [self.picture, "image" if self.deep.moves else "0", line])


def space(view: View) -> tuple[int, int]:
    """Height and width."""
    height, width = (1, *view.shape[2:])[-2:]
    return static(height), static(width)


def steps(view: View) -> tuple[int, int]:
    """From row to row, and from position to position."""
    row, column = (0, *view.strides[2:])[-2:]
    return static(row), static(column)


@dataclass(frozen=True)
class Depth:
    """The axis of images that follow each other; of one image where there is none."""

    kernel: int
    stride: int
    dilation: int
    pads: tuple[int, int]
    size: int
    x: int  # step from image to image
    out: int
    y: int

    @classmethod
    def of(cls, call: Call, kind: Conv) -> Depth:
        if len(kind.strides) < 3:
            return cls(1, 1, 1, (0, 0), 1, 0, 1, 0)
        (x, w), y, rank = call.ins[:2], call.outs[0], len(kind.strides)
        sizes = static(w.shape[2]), kind.strides[0], kind.dilations[0], (kind.pads[0], kind.pads[rank])
        return cls(*sizes, static(x.shape[2]), static(x.strides[2]), static(y.shape[2]), static(y.strides[2]))

    @property
    def moves(self) -> bool:
        """Are there other images than the first one?"""
        return self.kernel > 1 or self.out > 1 or any(self.pads)

    @property
    def top(self) -> str:
        """C of the number of the first image under a window."""
        return index_c([self.stride], ["d" if self.out != 1 else "0"], -self.pads[0])
