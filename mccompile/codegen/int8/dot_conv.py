"""Tiles of a convolution in dot products: rows of x that are padded or read in place, runs of elements in them, and the
C of sums and of what zero points take off them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...base.dims import static
from ...base.dtypes import u8
from ...base.marked import named, read
from ...base.records import dataclass
from ...kinds.conv import Conv
from ...program.ir import Call, View
from ...targets.api import Target
from ..loops import index_c
from ..tiles import Range, is_constant
from ..vector.vector_groups import Groups
from ..vector.vector_tiles import TileSize
from .dot_forms import Form
from .dot_tiles import NUMBER, DotEpilogue, DotTile, Place, best_dot_tile
from .padded_rows import PaddedRows, steps
from .zero_points import weights_c, without_zero_points, zero_c

SMALL_WEIGHTS = 16 << 10  # bytes that stay in the first-level cache besides everything else


@dataclass(frozen=True)
class Nest:
    """Tiles of one size along the channels at all positions, or at a run of positions along all channels."""

    header: str
    inner: tuple[tuple[str, DotTile], ...]


class DotConv:
    """Loops and C of indices for one call. Counters: n batch, p0 row, p1 position in it (or in the picture, where rows
    follow each other without gaps), o first channel of a tile, k0 rows of the window, k1 runs of elements in them (taps
    or planes), c along a run."""

    def __init__(self, call: Call, form: Form) -> None:
        self.call, self.kind, self.form = call, conv_of(call), form
        self.epilogue = DotEpilogue(call, self.kind.fixed, 1, self.kind.epilogue)
        self.rows = PaddedRows(call, self.kind, 1, form.depth - 1, planes=True)
        self.channels = static(call.ins[1].shape[0])

    @property
    def run(self) -> int:
        """Elements that follow each other in a row of a window."""
        return self.rows.channels * self.rows.kernel[1] // self.runs

    @property
    def runs(self) -> int:
        """Of elements in a row of a window, with gaps between them."""
        rows = self.rows
        if rows.planar:
            return rows.channels
        joined = rows.kernel[1] == 1 or (rows.dilations[1] == 1 and rows.pixel == rows.channels)
        return 1 if joined else rows.kernel[1]

    @property
    def steps(self) -> int:
        return self.rows.kernel[0] * self.runs * -(-self.run // self.form.depth)

    @cached_property
    def flat(self) -> bool:
        """Are windows single elements, in rows that follow each other without gaps?"""
        rows, call = self.rows, self.call
        if not rows.in_place or rows.kernel != (1, 1) or rows.strides != (1, 1) or call.rows is not None:
            return False
        moving = [rows.x, rows.y, *filter(self.epilogue.moves, call.ins[self.kind.fixed :])]
        height, width = rows.y_space
        return call.workers == 1 and (height == 1 or all(steps(v)[0] == width * steps(v)[1] for v in moving))

    @property
    def points(self) -> int:
        height, width = self.rows.y_space
        return height * width if self.flat else width

    @property
    def channel_bytes(self) -> int:
        """Of the packed weights of a channel, and of what stands before them."""
        return self.steps * self.form.depth + self.heads * NUMBER

    @property
    def heads(self) -> int:
        """Numbers of each channel that stand before its weights."""
        return 1 + is_late(self.call)

    @property
    def sums_at(self) -> int:
        """Bytes of the workspace before the sums of windows."""
        return -(-self.rows.ring_bytes // 4) * 4 if has_sums(self.call) else self.rows.ring_bytes

    def best(self, target: Target) -> TileSize:
        return best_dot_tile(self.points, self.channels, self.steps, target)

    def context(self, size: TileSize, names: list[str]) -> dict[str, Any]:
        groups, parts = Groups(size, self.channels), self.parts(size)
        tiles = {(run, part): self.tile(run, size, part, names) for run in parts for part in groups.parts()}
        channels = list(zip(groups.headers("o"), groups.parts(), strict=True))
        if groups.padded > size.channels and groups.padded * self.steps * self.form.depth <= SMALL_WEIGHTS:
            nests = [
                Nest(_header(run), tuple((header, tiles[run, part]) for header, part in channels)) for run in parts
            ]
        else:
            nests = [
                Nest(header, tuple((_header(run), tiles[run, part]) for run in parts)) for header, part in channels
            ]
        used = {"x", "w"} if self.rows.in_place and not has_sums(self.call) else {"x", "w", "x_zero"}
        lines = " ".join(tile.lines for tile in tiles.values())
        return {
            "outer": self.rows.outer,
            "nests": nests,
            "scope": ["n", "p0", "p1", "o", self.rows.declared, "const int32_t *rest"],
            "flat": self.flat,
            "sums": self.sums(size) if has_sums(self.call) else None,
            "rows": self.rows.context(),
            "unread": [name for name in names if name not in used and name not in read(lines).names],
        }

    def parts(self, size: TileSize) -> list[tuple[int, int, int]]:
        """Runs of tiles along the positions: first position, points of a tile, end."""
        whole = self.points // size.points * size.points
        found = [(0, size.points, whole)] if whole else []
        return [*found, (whole, self.points - whole, self.points)] if whole < self.points else found

    def tile(
        self, run: tuple[int, int, int], size: TileSize, part: tuple[int, int, int, int], names: list[str]
    ) -> DotTile:
        _, points, _ = run
        _, _, vectors, last = part
        rows, batch = self.rows, "n" if self.rows.batch != 1 else "0"

        def place(view: View, name: str) -> Place:
            row, column = steps(view)
            strides = [static(view.strides[0]), row, column, static(view.strides[1])]
            line = f"({named('p0')} % {view.lines})" if view.lines else "p0"
            index = index_c(strides, [batch, "0" if self.flat else line, "p1", "o"])
            return Place(name, view, index, column, static(view.strides[1]))

        others = zip(self.call.ins[self.kind.fixed :], names[self.kind.fixed :], strict=True)
        extras = [place(view, name) for view, name in others]
        hoisted, results = self.epilogue.statements(size, points, vectors, last, place(rows.y, "y"), extras)
        loops = [Range("k0", rows.kernel[0])] if rows.kernel[0] > 1 else []
        loops += [Range("k1", self.runs)] if self.runs > 1 else []
        return DotTile(
            size.lanes,
            points,
            vectors,
            index_c([1, self.channel_bytes], [weights_c(self.call.ins[1], "w"), "o"]),
            (*loops, Range("c", self.run, step=self.form.depth)),
            self.run_at,
            rows.strides[1] * rows.pixel,
            rows.x.buffer.dtype,
            hoisted,
            results,
            self.epilogue.kept(size.lanes, points, vectors, extras),
            self.zeros(size.lanes, points, vectors),
            self.heads,
            form=self.form,
        )

    @property
    def run_at(self) -> str:
        """C of a pointer to the run of elements that the counters say."""
        rows = self.rows
        line = rows.picture if self.flat else f"{named('lines')}[{'k0' if rows.kernel[0] > 1 else '0'}]"
        between = [rows.strides[1] * rows.pixel, rows.plane if rows.planar else rows.dilations[1] * rows.pixel]
        return index_c([1, *between], [line, "p1", "k1" if self.runs > 1 else "0"])

    def zeros(self, lanes: int, points: int, vectors: int) -> tuple[str, ...]:
        """What zero points that are not in the sums yet take off them."""
        weights, zero = self.call.ins[1], zeros_of_weights(self.call) if self.kind.w_zero else None
        return without_zero_points(
            lanes,
            points,
            vectors,
            (lambda _: f"{named('x_zero')}[0]") if is_late(self.call) else None,
            (lambda point: f"{named('rest')}[{index_c([1], ['p1'], point)}]") if has_sums(self.call) else None,
            lambda vector: zero_c(weights, zero, named("w_zero"), "o", lanes, vector),
        )

    def sums(self, size: TileSize) -> dict[str, Any]:
        """For the loop that adds up windows."""
        rows = self.rows
        loops = [Range("k0", rows.kernel[0])] if rows.kernel[0] > 1 else []
        loops += [Range("k1", self.runs)] if self.runs > 1 else []
        terms = rows.kernel[0] * self.runs * self.run
        run = f"mcc_sum_{rows.x.buffer.dtype}_i32x{size.lanes}({self.run_at}, {self.run})"
        if self.run < 4 * size.lanes:  # less than such a sum takes at once
            loops.append(Range("c", self.run))
            run = f"({self.run_at})[c]"
        return {
            "at": index_c([1], ["scratch"], self.sums_at),
            "points": self.points,
            "loops": [loop.header for loop in loops],
            "run": run,
            "zeros": f" - {terms} * (int32_t)x_zero[0]" if self.kind.x_zero else "",
        }


def _header(run: tuple[int, int, int]) -> str:
    first, points, end = run
    if end - first == points:
        return f"{{\nconst mcc_index p1 = {first};"
    return Range("p1", end, str(first), step=points).header


def is_late(call: Call) -> bool:
    """Is there a zero point of x that is not known when weights are packed?"""
    return conv_of(call).x_zero and not is_constant(call.ins[2])


def has_sums(call: Call) -> bool:
    """Are windows added up, for zero points of the weights?"""
    return conv_of(call).w_zero or call.ins[1].buffer.dtype is u8


def zeros_of_weights(call: Call) -> View:
    return call.ins[conv_of(call).fixed - 1]


def conv_of(call: Call) -> Conv:
    assert isinstance(call.kind, Conv)
    return call.kind
