"""Tiles of a convolution in vectors along output channels: where they lie, how workers share them, and their C.

Each group is a convolution of its own over a slice of the channels. Groups that are narrower than a vector are merged:
the weights from inputs of one of them to results of another one are zeros. A result that is not finite is added up anew
from its own group: zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...base.dims import static
from ...base.marked import named, sized
from ...base.records import dataclass
from ...expr.code import Code
from ...kernels.api import Cost
from ...kernels.registry import effort
from ...kernels.work import Units, slowest
from ...program.ir import Call, View
from ...targets.api import Prefer, Target
from ..loops import index_c
from ..tiles import Range
from ..windows import ring_row, ring_rows
from .vector_epilogue import Reference, epilogue_statements
from .vector_groups import Groups
from .vector_runs import cutting
from .vector_taps import ConvTaps, conv_of
from .vector_tiles import (
    NARROW_CORE,
    Group,
    Part,
    Tile,
    TileSize,
    best_tile,
    computed_in,
    fetched_ahead,
    is_long,
    lanes_of,
    row_cycles,
)

NOT_CUT, BY_POSITIONS, BY_CHANNELS, BY_TILES = range(4)  # how the work is cut for several workers
AROUND_TAP = 18  # cycles of the loop over taps in a tile, where a cycle begins one instruction
OF_LOOPS, OF_SUM, OF_TAP, OF_PRODUCT = 160, 25, 40, 10  # bytes of code: see code_bytes
SMALL_WEIGHTS = 16 << 10  # bytes that stay in the first-level cache besides everything else
GROUPED_WEIGHTS = 160 << 10  # the same where there are groups: each reads little of a line of the cache, so all do


@dataclass(frozen=True)
class Positions(Part):
    x_at: str


def best_layout(call: Call, target: Target) -> tuple[VectorConv, TileSize, int]:
    """How many groups are merged, whether tiles are single points, the size of tiles, and how the work is cut."""
    group = conv_of(call).group
    wide = static(call.ins[1].shape[0]) // group
    counts = [n for n in range(1, group + 1) if group % n == 0 and (n == 1 or n * wide <= lanes_of(target))]
    layouts = [VectorConv(call, merged) for merged in counts]
    if target.prefer == Prefer.FLASH:
        layouts += [VectorConv(call, merged, by_point=True) for merged in counts]
    found = [(layout, *layout.best(target)) for layout in layouts]

    def worth(one: tuple[VectorConv, TileSize, int]) -> float:
        layout, size, _ = one
        return effort(Cost(layout.cycles(size, target), code=layout.code_bytes(size)), target)

    return min(found, key=worth)


def merged_weights(w: np.ndarray, group: int, merged: int) -> np.ndarray:
    """Weights as [groups after merging, results of one, inputs of one, ...]."""
    wide, inputs = w.shape[0] // group, w.shape[1]
    found = np.zeros((group // merged, merged, wide, merged, inputs, *w.shape[2:]), w.dtype)
    parts = w.reshape(group // merged, merged, wide, *w.shape[1:])
    for number in range(merged):
        found[:, number, :, number] = parts[:, number]
    return found.reshape(group // merged, merged * wide, merged * inputs, *w.shape[2:])


class VectorConv(ConvTaps):
    """Loops and C of indices for one call."""

    def best(self, target: Target) -> tuple[TileSize, int]:
        """The size of tiles, and how the work is cut."""
        shape = (self.points.out, self.channels, self.depth, self.step * 4, target)
        run, dtype, planar = self.run, computed_in(self.call), self.planar
        found = [(best_tile(*shape, run=run, dtype=dtype, planar=planar), NOT_CUT)]
        if self.call.workers > 1 and self.call.rows is None:
            workers = self.call.workers
            whole = best_tile(*shape, run=run, dtype=dtype, planar=planar)
            found = [(whole, BY_POSITIONS), (best_tile(*shape, workers, run, dtype), BY_CHANNELS)]
            if not self.rows and self.group == 1 and whole.channels < self.channels:
                found.append((whole, BY_TILES))

        def effort(chosen: tuple[TileSize, int]) -> float:
            size, cut = chosen
            unfair = slowest(self.units(size, cut).sizes, self.call.workers) if cut else 1.0
            return self.cycles(size, target) * unfair

        return min(found, key=effort)

    @property
    def planar(self) -> bool:
        """Do points lie side by side in the result, and channels apart?"""
        return self.points.y == 1 != static(self.y.strides[1]) and self.y.shape[1] != 1

    def cycles(self, size: TileSize, target: Target) -> float:
        """Roughly, of all workers together."""
        rows = prod(axis.out for axis in self.rows) * self.batch * self.group
        row = row_cycles(size, self.points.out, self.channels, self.depth, target, self.planar)
        if target.machine.issue < NARROW_CORE:
            tiles = -(-self.points.out // size.points) * -(-self.channels // (size.vectors * size.lanes))
            taps = prod(self.w.type.static_shape[2:]) if static(self.w.shape[1]) > 1 else 1
            together = self.points.kernel if self.run > self.inputs else 1  # taps of one loop
            row += tiles * taps // together * AROUND_TAP
        return rows * row * cutting(self.depth, self.kind.rounding)

    def units(self, size: TileSize, cut: int) -> Units:
        """What workers share: groups of channels, or rows, or tiles of the only row, for all channels or one by one."""
        units = Units()
        if cut == BY_TILES:
            for begin, end, vectors, _ in Groups(size, self.channels).parts():
                row = [count * vectors for _, count, tiles, _ in self.cover(size) for _ in range(tiles)]
                units.sizes += row * ((end - begin) // (vectors * size.lanes))
        elif cut == BY_CHANNELS and self.group > 1:
            units.loop("g", 0, 1, self.group, 1)
        elif cut == BY_CHANNELS:
            Groups(size, self.channels).headers("o", units)
        elif cut == BY_POSITIONS and self.rows:
            units.loop("p0", 0, 1, self.rows[0].out, 1)
        elif cut == BY_POSITIONS:
            for first, count, tiles, _ in self.cover(size):
                units.loop("p0", first, count, tiles, count)
        return units

    def cover(self, size: TileSize) -> list[tuple[int, int, int, bool]]:
        """Runs of tiles along the positions: first position, points per tile, number of tiles, at an edge?"""
        first, end = self.points.interior
        runs: list[tuple[int, int, int, bool]] = []
        at = 0
        while at < self.points.out:
            count = min(size.points, self.points.out - at)
            edge = at < first or at + count > end
            if runs and not edge and not runs[-1][3] and runs[-1][1] == count:
                runs[-1] = (runs[-1][0], count, runs[-1][2] + 1, False)
            else:
                runs.append((at, count, 1, edge))
            at += count
        return runs

    @property
    def reaches(self) -> bool:
        """Does the window of any position along the tiles meet the image?"""
        return any(self.edge_runs(at, 1) for at in range(self.points.out))

    def edge_taps(self, size: TileSize) -> int:
        """How many are unrolled."""
        return sum(len(self.edge_runs(first, count)) for first, count, _, edge in self.cover(size) if edge)

    def code_bytes(self, size: TileSize) -> int:
        """Roughly, of the loops, and of the taps that are unrolled at edges."""
        total = 0
        for _, _, vectors, _ in Groups(size, self.channels).parts():
            for first, count, _, edge in self.cover(size):
                sums = count * vectors
                unrolled = len(self.edge_runs(first, count)) if edge else 0
                total += OF_LOOPS + sums * OF_SUM + unrolled * (OF_TAP + sums * OF_PRODUCT)
        return total

    def context(self, size: TileSize, cut: int, names: list[str]) -> dict[str, Any]:
        groups = Groups(size, self.channels)
        outer = [Range("n", self.batch).header] if self.batch != 1 else []
        found = []
        headers = groups.headers("o", Units() if cut == BY_CHANNELS and self.group == 1 else None)
        each, before = sum(tiles for _, _, tiles, _ in self.cover(size)), 0
        for header, (begin, end, vectors, last) in zip(headers, groups.parts(), strict=True):
            units = Units() if cut == BY_POSITIONS and not self.rows else None
            if cut == BY_TILES:
                step = vectors * size.lanes
                group = f"({named('o')} - {begin})" if begin else named("o")
                tile = f"({group} / {step})" if end - begin > step else "0"
                header += f"\nconst mcc_index o_unit = {index_c([each], [tile], before)};"
                units, before = Units(named("o_unit")), before + (end - begin) // step * each
            parts = tuple(self.part(run, size, vectors, last, names, units) for run in self.cover(size))
            found.append(Group(header, parts))
        over_groups = Range("g", self.group).header
        if cut == BY_CHANNELS:
            over_groups = Units().loop("g", 0, 1, self.group, 1)
        first = f"{named('w')} + {named('g')} * {groups.padded * self.depth}"
        of_group = f"const {self.w.buffer.dtype.storage_c} *const wg = {first};"
        return {
            "outer": outer,
            "scope": self.scope(cut),
            "over_groups": f"{over_groups}\n{of_group}" if self.group > 1 else "",
            "rows": [self.row(number, cut == BY_POSITIONS) for number in range(len(self.rows))],
            "groups": found,
            "points_outside": self.points_outside(size, cut),
        }

    def scope(self, cut: int) -> dict[str, list[str]]:
        """Declarations of what parts may read of loops around them: over groups, channels, rows and points."""
        rows = [f"{name}{number}" for number in range(len(self.rows)) for name in ("p", "at", "first", "end")]
        rows += [ring_row("p0", lines) for lines in sorted({v.lines for v in (self.y, *self.extras) if v.lines})]
        return {
            "outer": ["n", "const float *packed"],
            "groups": ["g", f"const {self.w.buffer.dtype.storage_c} *wg"] if self.group > 1 else [],
            "channels": ["o", *(["o_unit"] if cut == BY_TILES else [])],
            "rows": [*rows, self.rows[0].ring_scope()] if self.rows else rows,
            "points": [f"p{len(self.rows)}", "x_at"],
        }

    def points_outside(self, size: TileSize, cut: int) -> bool:
        """Is each tile of points computed for all channels before the next, as the cache holds all weights?"""
        several = Groups(size, self.channels).padded > size.channels or self.group > 1
        small = GROUPED_WEIGHTS if self.group > 1 else SMALL_WEIGHTS
        return several and not self.one_tile and cut != BY_TILES and self.weights(size) * 4 <= small

    def weights(self, size: TileSize) -> int:
        """How many there are, with the zeros."""
        channels = size.channels if self.one_tile else Groups(size, self.channels).padded
        return self.group * channels * self.depth

    def row(self, number: int, shared: bool) -> dict[str, Any]:
        axis, by_rows = self.rows[number], number == 0 and (shared or self.call.rows is not None)
        at = f"at{number}"
        ring = ring_rows("p0", [self.y, *self.extras]) if number == 0 else []
        return {
            "p": f"p{number}",
            "begin": named("begin") if by_rows else "0",
            "end": named("end") if by_rows else sized(axis.out),
            "at": at if axis.x or not axis.always_inside else "",
            "origin": axis.origin(f"p{number}"),
            "first": "" if axis.always_inside else f"first{number}",
            "first_tap": axis.first_tap(at),
            "end_tap": axis.end_tap(at),
            "past": f"end{number}",
            "ring": [*(axis.ring(number, self.x.lines) if self.in_ring(number) else []), *ring],
        }

    def place(
        self, view: View, counters: Sequence[str | Code], strides: Sequence[int], channel: str, in_group: int
    ) -> str:
        """C of an index, where a group has so many of the view's channels."""
        batch, group = "n" if self.batch != 1 else "0", "g" if self.group > 1 else "0"
        step = static(view.strides[1])
        return index_c([static(view.strides[0]), step * in_group, step, *strides], [batch, group, channel, *counters])

    def part(
        self,
        run: tuple[int, int, int, bool],
        size: TileSize,
        vectors: int,
        last: int,
        names: list[str],
        units: Units | None,
    ) -> Part:
        first, count, tiles, edge = run
        lanes = size.lanes
        point, header = str(first), "{"
        if tiles > 1 or units is not None:
            point = f"p{len(self.rows)}"
            header = Range(point, first + count * tiles, str(first), step=count).header
        if units is not None:
            header = units.loop(point, first, count, tiles, count)

        def reference(view: View, name: str, steps: Sequence[int]) -> Reference:
            rows = [ring_row(f"p{number}", view.lines if number == 0 else 0) for number in range(len(self.rows))]
            counters = [*rows, point]
            lane = static(view.strides[1]) if view.shape[1] != 1 else 1 if name == "y" else 0
            channel = "o" if lane and view.shape[1] != 1 else "0"
            in_group = self.channels if lane and view.shape[1] != 1 else 0
            index = self.place(view, counters, steps, channel, in_group)
            return Reference(name, index, steps[-1], lane, stored=view.buffer.dtype)

        every = (*self.rows, self.points)
        step = lanes * vectors
        passes = self.passes(first, count, size, step, edge)
        epilogue = epilogue_statements(
            self.kind.epilogue,
            lanes,
            count,
            vectors,
            last,
            reference(self.y, "y", [axis.y for axis in every]),
            [
                reference(view, name, [axis.extras[number] for axis in every])
                for number, (view, name) in enumerate(zip(self.extras, names[2:], strict=True))
            ],
            computed_in(self.call),
            sums=True,
            long=is_long(passes, count, vectors, self.cut),
        )
        at: list[str | Code] = ["0" if self.in_ring(number) else f"at{number}" for number in range(len(self.rows))]
        at.append(self.points.place(point))
        x_at = self.place(self.x, at, [axis.x for axis in every], "0", self.inputs)
        ahead = 0 if self.one_tile else fetched_ahead(step * self.depth, self.weights(size))
        stored = self.w.buffer.dtype
        dtype = computed_in(self.call)
        tile = Tile(lanes, count, vectors, self.step, passes, epilogue, 0, ahead, stored)
        own = self.own_sums(point, step, edge) if self.merged > 1 else None
        return Positions(header, replace(tile, dtype=dtype, totals=self.longest_run > 0, own=own), x_at)
