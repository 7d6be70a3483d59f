"""Loops over the places of a grid, and C of where each axis of a picture is read (kernels_templates/grid_places.c.j2).
All grid_sample kernels read the same elements with the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

from ..base.dims import Dim, maximum
from ..base.dtypes import f32, f64
from ..expr.code import Code
from ..expr.dims_c import operand_c
from ..expr.scalar_c import literal_c, load_c
from ..kinds.grid_sample import TAPS, GridSample
from ..program.ir import Call, View
from .loops import Nest, index_c, nest


class AxisPlaces(TypedDict):
    n: int
    size: Dim
    period: Dim  # after which reflections repeat, where there are so few elements that one may be reached again
    counts: bool  # does it matter where a place lies along the axis?
    place: str
    step: str


class GridPlaces:
    """For one call. `o0`, `o1` .. are offsets into x, each up to an axis; `element` is where the last one leads."""

    def __init__(self, call: Call) -> None:
        self.call, self.kind = call, call.of(GridSample)
        (x, grid), y = call.ins, call.outs[0]
        self.accumulator = f64 if x.buffer.dtype is f64 else f32
        self.place = f64 if grid.buffer.dtype is f64 else f32
        shape = (y.shape[0], *y.shape[2:])
        at_y = _of(y, shape, (y.strides[0], *y.strides[2:]))
        at_x = _of(x, shape, (x.strides[0], *(0 for _ in shape[1:])))
        self.loops: Nest = nest(shape, [at_y, at_x, _of(grid, shape, grid.strides[:-1])])
        self.counters: list[str | Code] = [loop.counter for loop in self.loops.loops]

    def channel(self, which: int, view: View, counter: str = "c") -> str:
        return index_c((*self.loops.strides[which], view.strides[1]), [*self.counters, counter])

    @property
    def unpassed(self) -> frozenset[str]:
        """The one element of a picture is the nearest to all places."""
        counts = any(self.counts(axis) for axis in range(len(self.call.ins[0].shape) - 2))
        return frozenset({"grid"}) if self.kind.mode == "nearest" and not counts else frozenset()

    def counts(self, axis: int) -> bool:
        return self.call.ins[0].strides[2 + axis] != 0 or self.kind.padding == "zeros"

    def axes(self, channel: str = "c") -> list[AxisPlaces]:
        """`channel` is where among channels the offsets begin."""
        x, grid = self.call.ins
        found = list[AxisPlaces]()
        before, rank = self.channel(1, x, channel), len(x.shape) - 2
        for number, size in enumerate(x.shape[2:]):
            last = index_c((*self.loops.strides[2], grid.strides[-1]), [*self.counters, str(rank - 1 - number)])
            tap = f"p{number}[{0 if self.kind.mode == 'nearest' else f't{number}'}]"
            step = index_c((x.strides[2 + number],), (tap,))
            found.append(
                {
                    "n": number,
                    "size": size,
                    "period": self.period(size),
                    "counts": self.counts(number),
                    "place": load_c(grid.buffer.dtype, "grid", last),
                    "step": f"{before} + {step}".removeprefix("0 + "),
                }
            )
            before = f"o{number}"
        return found

    def period(self, size: Dim) -> Dim:
        if isinstance(size, int) and size > 2:
            return 0
        return maximum(2 * size - 2, 1) if self.kind.align_corners else 2 * size

    def number(self, whole: Dim, more: float = 0) -> str:
        """The sum as C of the type of places."""
        if isinstance(whole, int | float):
            return literal_c(whole + more, self.place)
        text = f"({self.place.compute_c}){operand_c(whole)}"
        return f"({text} + {literal_c(more, self.place)})" if more else text

    def context(self) -> dict[str, Any]:
        """What the macro of the template takes."""
        place = self.place
        return {
            "kind": self.kind,
            "taps": TAPS[self.kind.mode],
            "place": place.compute_c,
            "suffix": "f" if place is f32 else "",
            "name": place.name,
            "number": self.number,
            "type": self.accumulator.compute_c,
        }


def _of(view: View, shape: Sequence[Dim], strides: Sequence[Any]) -> View:
    return replace(view, shape=tuple(shape), strides=tuple(strides))
