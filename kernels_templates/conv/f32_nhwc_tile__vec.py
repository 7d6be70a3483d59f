"""conv in vectors along output channels: tiles of positions x vectors.

Operands and result may lie channels-last or planar; results are stored fastest channels-last. Positions at the left and
right edge of the image get tiles of their own in which the impossible products do not occur; above and below, the taps
inside the image are worked out once per row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import bf16, f16, f32
from mccompile.base.tensor import TensorType
from mccompile.expr.ir import apply, literal, operand
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views, viewed
from mccompile.kernels.loops import index_c
from mccompile.kernels.tiles import Range, epilogue_alias
from mccompile.kernels.vector_tiles import (
    HALF_RELU,
    Groups,
    Reference,
    Taps,
    Tile,
    TileSize,
    best_tile,
    computed_in,
    epilogue_statements,
    fetched_ahead,
    in_halves,
    piece,
    products_refusal,
    row_cycles,
    taken_together,
    vector_headers,
    vector_refusal,
)
from mccompile.kernels.windows import Axis, axes, ring_row, ring_rows
from mccompile.kernels.work import Units, slowest
from mccompile.kinds.conv import Conv

NOT_CUT, BY_POSITIONS, BY_CHANNELS = range(3)  # how the work is cut for several workers
MOST_EDGE_TAPS = 64  # taps of tiles at the edges, which are written out one by one
SMALL_WEIGHTS = 16 << 10  # bytes that stay in the first-level cache besides everything else


@dataclass(frozen=True)
class Part:
    """Neighbouring tiles of one size along the positions."""

    header: str
    x_at: str
    tile: Tile


@dataclass(frozen=True)
class Group:
    """Neighbouring tiles of one size along the channels."""

    header: str
    parts: tuple[Part, ...]


class ChannelsLastTile(Kernel):
    kind = Conv
    isa = "vec"

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32)
        pointwise = replace(plain, pads=(0, 0, 0, 0))
        relu = apply("max", apply("add", operand(0, f32), operand(1, f32)), literal(0, f32))
        sizes = [(1, 1, 1), (2, 3, 2), (3, 7, 3), (7, 2, 7), (15, 16, 15), (16, 31, 16), (17, 5, 17), (31, 8, 31)]
        cases = [
            _case(f"1x1_{pixels}x{c_in}_{c_out}", pointwise, (1, c_in, 1, pixels), (c_out, c_in, 1, 1))
            for pixels, c_in, c_out in [*sizes, (33, 17, 33), (29, 6, 24), (13, 4, 72), (5, 3, 100)]
        ]
        sizes = [(1, 3, 5), (2, 4, 8), (3, 1, 16), (15, 5, 17), (16, 3, 33), (33, 2, 7), (40, 3, 12)]
        cases += [
            _case(f"3x3_{size}x{c_in}_{c_out}", plain, (1, c_in, 4, size), (c_out, c_in, 3, 3))
            for size, c_in, c_out in sizes
        ]
        wide = Conv((2, 2), (1, 1), (3, 3, 3, 3), 1, f32)
        cases += [
            _case("strided", Conv((2, 2), (1, 1), (1, 1, 1, 1), 1, f32), (2, 5, 9, 31), (17, 5, 3, 3)),
            _case("first_layer", wide, (1, 3, 16, 37), (24, 3, 7, 7), planar=True),
            _case("planar_1x1", pointwise, (1, 5, 4, 7), (9, 5, 1, 1), planar=True),
            _case("odd", Conv((2, 3), (2, 1), (0, 2, 1, 0), 1, f32), (2, 3, 11, 37), (5, 3, 3, 2)),
            _case("dilated", Conv((1, 1), (2, 2), (2, 2, 2, 2), 1, f32), (1, 4, 9, 19), (8, 4, 3, 3)),
            _case("windows_outside", Conv((1, 1), (1, 1), (5, 5, 5, 5), 1, f32), (1, 2, 3, 3), (3, 2, 3, 3)),
            _case("1x1_padded", replace(pointwise, pads=(1, 0, 0, 2)), (1, 3, 4, 4), (4, 3, 1, 1)),
            _case("1x1_strided", Conv((2, 2), (1, 1), (0, 0, 0, 0), 1, f32), (1, 8, 6, 5), (4, 8, 1, 1)),
            _case("1d", Conv((2,), (3,), (4, 1), 1, f32), (2, 3, 65), (20, 3, 4)),
            _case("3d", Conv((1, 2, 1), (1, 1, 2), (1, 0, 2, 0, 1, 2), 1, f32), (1, 2, 4, 5, 6), (3, 2, 2, 3, 2)),
            _case("long_sum", pointwise, (1, 1100, 3, 7), (18, 1100, 1, 1)),
            _case("empty_batch", plain, (0, 3, 6, 6), (4, 3, 3, 3)),
        ]
        cases += [
            replace(_case("planar_result", plain, (1, 5, 6, 17), (19, 5, 3, 3)), permute_outs={}),
            replace(_case("planar_pixel", pointwise, (1, 5, 1, 1), (19, 5, 1, 1)), permute_outs={}),
        ]
        for dtype in (f16, bf16):
            case = _case(f"weights_{dtype}", plain, (1, 5, 6, 17), (21, 5, 3, 3))
            cases.append(replace(case, ins=(case.ins[0], TensorType(dtype, (21, 5, 3, 3)))))
        shape = (1, 19, 6, 17)
        for name, repeated in [
            ("bias", (0, 2, 3)),
            ("scalar", (0, 1, 2, 3)),
            ("per_position", (1,)),
            ("residual", ()),
        ]:
            kind = replace(plain, epilogue=relu)
            case = _case(f"epilogue_{name}", kind, (1, 3, 6, 17), (19, 3, 3, 3))
            ins, permute = (*case.ins, TensorType(f32, shape)), {**case.permute, 2: (0, 2, 3, 1)}
            cases.append(replace(case, ins=ins, permute=permute, repeated={2: repeated}))
        x, one = operand(0, f32), literal(1, f32)
        silu = apply("div", x, apply("add", one, apply("exp", apply("neg", x))))
        half = replace(plain, epilogue=HALF_RELU)
        cases += [
            in_halves(_case("half_pieces", half, (1, 48, 4, 9), (9, 48, 3, 3))),
            in_halves(_case("half_pieces_1x1", replace(half, pads=(0, 0, 0, 0)), (1, 128, 1, 11), (17, 128, 1, 1))),
            in_halves(_case("half_1x1", replace(half, pads=(0, 0, 0, 0)), (1, 19, 1, 13), (21, 19, 1, 1))),
            in_halves(_case("half_3x3", half, (1, 8, 4, 17), (35, 8, 3, 3))),
            in_halves(_case("half_strided", replace(half, strides=(2, 2)), (2, 3, 7, 9), (4, 3, 3, 3), planar=True)),
        ]
        return [*cases, _case("epilogue_silu", replace(plain, epilogue=silu), (2, 3, 5, 17), (35, 3, 3, 3))]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, x, w, y = _kind(call), *call.ins[:2], call.outs[0]
        reason = vector_refusal(target) or static_views(call) or products_refusal(call, target)
        reason = reason or refusals(kind.expressions(), computed_in(call))
        if reason:
            return No(reason)
        if kind.x_zero or kind.w_zero:
            return No("not with zero points")
        if kind.group != 1:
            return No("only for one group")
        if w.buffer.constant is None:
            return No("the weights are not constant")
        if any(static(v.strides[1]) not in (0, 1) and v.shape[1] != 1 for v in call.ins[2:]):
            return No("an operand of the epilogue does not lie channels-last")
        if 0 in (*x.shape[1:], *y.shape[1:]):
            return No("there is nothing to compute")
        layout = _Layout(call)
        if not layout.piece:
            return No("the sums are too long for 16 bits")
        size, cut = layout.best(target)
        if layout.edge_taps(size) > MOST_EDGE_TAPS:
            return No("the window is too wide to write its edges out")
        blocks = (size.lanes, size.points, size.vectors, size.together, cut)
        rows = frozenset({2}) if len(kind.strides) > 1 else frozenset()
        alias = epilogue_alias(call, kind.fixed)
        return Needs(alias=alias, constant=frozenset({1}), numeric="ulp", blocks=blocks, rows=rows)

    def cost(self, call: Call, target: Target) -> Cost:
        layout = _Layout(call)
        size, _ = layout.best(target)
        cycles = layout.cycles(size, target)
        bodies = len(layout.cover(size)) * len(Groups(size, layout.channels).parts())
        padding = Groups(size, layout.channels).padded - layout.channels
        if call.outs[0].strides[1] != 1:
            cycles += static(call.outs[0].type.count)  # stored one by one
        return Cost(cycles / 3e9, code=bodies * size.points * size.vectors * 20, blob=padding * layout.depth * 4)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        w = viewed(call.ins[1], constants[1])
        groups = Groups(TileSize(*call.blocks[:3]), w.shape[0])
        padded = np.zeros((groups.padded, *w.shape[1:]), w.dtype)
        padded[: w.shape[0]] = w
        order = (*range(2, w.ndim), 1, 0)
        tiles = [
            padded[first : first + vectors * groups.size.lanes].transpose(order).reshape(-1)
            for begin, end, vectors, _ in groups.parts()
            for first in range(begin, end, vectors * groups.size.lanes)
        ]
        return {1: np.concatenate(tiles)}

    def packing(self, call: Call) -> Mapping[int, str]:
        lanes, _, vectors, *_ = call.blocks
        return {1: f"conv channels in {vectors}x{lanes}"}

    def label(self, call: Call) -> str:
        kind, (x, w) = _kind(call), call.ins[:2]
        window = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        return f"conv_{window}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}_{w.shape[0]}"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        if call.rows is not None:
            return super().units(call)
        *size, cut = call.blocks
        return _Layout(call).units(TileSize(*size), cut).sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        *size, cut = call.blocks
        return _Layout(call).context(TileSize(*size), cut, self.parameter_names(call)[1])


class _Layout:
    """Loops and C of indices for one call. Counters: n batch, o first channel of a tile, p0.. positions (the last runs
    over tiles), k0.. taps, t or c along the innermost sum; at0.. are the places of the first taps."""

    def __init__(self, call: Call) -> None:
        self.kind, self.call = _kind(call), call
        self.x, self.w, self.y = call.ins[0], call.ins[1], call.outs[0]
        self.extras = call.ins[2:]
        kind, kernel = self.kind, self.w.type.static_shape[2:]
        window = (kernel, kind.strides, kind.dilations, kind.pads)
        *self.rows, self.points = axes(self.y, self.x, (), self.extras, *window, join=call.rows is None)
        self.channels, self.inputs = static(self.w.shape[0]), static(self.w.shape[1])
        self.batch = static(self.x.shape[0])

    @cached_property
    def depth(self) -> int:
        return self.inputs * prod(axis.kernel for axis in (*self.rows, self.points))

    @property
    def step(self) -> int:
        return self.points.x * self.points.stride

    @cached_property
    def piece(self) -> int:
        """How many inputs are added up before others are."""
        return piece(self.inputs, self.points.kernel, computed_in(self.call))

    def over_inputs(self) -> Range:
        if self.piece == self.inputs:
            return Range("c", self.inputs)
        return Range("c", self.piece, "c0", f"c0 + {self.piece}")

    @property
    def run(self) -> int:
        """How many steps of the sum at most read neighbouring numbers: inputs, those of several taps, or taps."""
        step, kernel = self.points.x * self.points.dilation, self.points.kernel
        if self.inputs == 1:
            return kernel if step == 1 else 1
        if static(self.x.strides[1]) != 1:
            return 1
        return self.piece * (kernel if step == self.piece else 1)

    def best(self, target: Target) -> tuple[TileSize, int]:
        """The size of tiles, and how the work is cut."""
        shape = (self.points.out, self.channels, self.depth, self.step * 4, target)
        run, dtype = self.run, computed_in(self.call)
        found = [(best_tile(*shape, run=run, dtype=dtype), NOT_CUT)]
        if self.call.workers > 1 and self.call.rows is None:
            workers = self.call.workers
            whole = best_tile(*shape, run=run, dtype=dtype)
            found = [(whole, BY_POSITIONS), (best_tile(*shape, workers, run, dtype), BY_CHANNELS)]

        def effort(chosen: tuple[TileSize, int]) -> float:
            size, cut = chosen
            unfair = slowest(self.units(size, cut).sizes, self.call.workers) if cut else 1.0
            return self.cycles(size, target) * unfair

        return min(found, key=effort)

    def cycles(self, size: TileSize, target: Target) -> float:
        """Roughly, of all workers together."""
        rows = prod(axis.out for axis in self.rows) * self.batch
        return rows * row_cycles(size, self.points.out, self.channels, self.depth, target)

    def units(self, size: TileSize, cut: int) -> Units:
        """What workers share: groups of channels, or rows, or tiles of the only row."""
        units = Units()
        if cut == BY_CHANNELS:
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

    def edge_taps(self, size: TileSize) -> int:
        return sum(self.points.kernel for *_, edge in self.cover(size) if edge)

    def context(self, size: TileSize, cut: int, names: list[str]) -> dict[str, Any]:
        groups = Groups(size, self.channels)
        outer = [Range("n", self.batch).header] if self.batch != 1 else []
        found = []
        headers = groups.headers("o", Units() if cut == BY_CHANNELS else None)
        for header, (_, _, vectors, last) in zip(headers, groups.parts(), strict=True):
            units = Units() if cut == BY_POSITIONS and not self.rows else None
            parts = tuple(self.part(run, size, vectors, last, names, units) for run in self.cover(size))
            found.append(Group(header, parts))
        several = groups.padded > size.channels
        return {
            "outer": outer,
            "rows": [self.row(number, cut == BY_POSITIONS) for number in range(len(self.rows))],
            "groups": found,
            "points_outside": several and groups.padded * self.depth * 4 <= SMALL_WEIGHTS,
        }

    def row(self, number: int, shared: bool) -> dict[str, Any]:
        axis = self.rows[number]
        at = f"at{number}"
        run = Range(f"p{number}", axis.out)
        if number == 0 and (shared or self.call.rows is not None):
            run = replace(run, begin="begin", end="end")
        ring = ring_rows("p0", [self.y, *self.extras]) if number == 0 else []
        return {
            "loop": run.header,
            "ring": [*(axis.ring(number, self.x.lines) if self.in_ring(number) else []), *ring],
            "at": f"const mcc_index {at} = {axis.origin(f'p{number}')};" if axis.x or not axis.always_inside else "",
            "first": "" if axis.always_inside else f"const mcc_index first{number} = {axis.first_tap(at)};",
            "end": "" if axis.always_inside else f"const mcc_index end{number} = {axis.end_tap(at)};",
        }

    def in_ring(self, number: int) -> bool:
        """Does x lie in a ring along this axis?"""
        return number == 0 and self.x.lines > 0

    def place(self, view: View, counters: Sequence[str], strides: Sequence[int], channel: str) -> str:
        batch = "n" if self.batch != 1 else "0"
        return index_c([static(view.strides[0]), static(view.strides[1]), *strides], [batch, channel, *counters])

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
            return Reference(name, self.place(view, counters, steps, channel), steps[-1], lane)

        every = (*self.rows, self.points)
        hoisted, stores = epilogue_statements(
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
        )
        at = ["0" if self.in_ring(number) else f"at{number}" for number in range(len(self.rows))]
        at.append(f"({self.points.origin(point)})")
        x_at = self.place(self.x, at, [axis.x for axis in every], "0")
        around = [self.tap_loop(number, axis) for number, axis in enumerate(self.rows)]
        step = lanes * vectors
        each = self.edge(first, count, step) if edge else [self.inside(count, step)]
        taps = [part for one in each for part in taken_together(one, size.together, step)]
        pieces = [Range("c0", self.inputs, step=self.piece)] if self.piece < self.inputs else []
        kept = (*pieces, *(loop for loop in around if loop is not None))
        ahead = fetched_ahead(step * self.depth, self.channels * self.depth)
        stored = self.w.buffer.dtype
        tile = Tile(lanes, count, vectors, self.step, kept, tuple(taps), hoisted, stores, 0, ahead, stored)
        tile = replace(tile, dtype=computed_in(self.call))
        return Part(header, x_at, tile)

    def tap_loop(self, number: int, axis: Axis) -> Range | None:
        if axis.always_inside:
            return Range(f"k{number}", axis.kernel) if axis.kernel > 1 else None
        return Range(f"k{number}", axis.kernel, f"first{number}", f"end{number}")

    def tap_index(self, steps: Sequence[int]) -> str:
        """C of what the taps along the rows add to an index, whose steps along the taps are given."""
        used = ["0" if self.tap_loop(n, axis) is None else f"k{n}" for n, axis in enumerate(self.rows)]
        return index_c(steps, used) if self.rows else "0"

    def bases(self, channels: int) -> tuple[str, str]:
        """C of the indices in x and w where the innermost loops start."""
        x = self.tap_index([0 if self.in_ring(n) else axis.x * axis.dilation for n, axis in enumerate(self.rows)])
        if self.in_ring(0):
            row = f"x_row[{'0' if self.tap_loop(0, self.rows[0]) is None else 'k0'}]"
            x = row if x == "0" else f"{row} + {x}"
        steps = [
            channels * self.inputs * self.points.kernel * prod(axis.kernel for axis in self.rows[number + 1 :])
            for number in range(len(self.rows))
        ]
        w = self.tap_index(steps)
        return f"x_at + {x}" if x != "0" else "x_at", f"o * {self.depth}" + (f" + {w}" if w != "0" else "")

    def inside(self, count: int, channels: int) -> Taps:
        """All taps of a row, for tiles inside the image; one loop for taps and inputs where those follow each other."""
        x, w = self.bases(channels)
        step, channel = self.points.x * self.points.dilation, static(self.x.strides[1])
        kernel, inputs = self.points.kernel, self.inputs
        if self.piece == inputs and (kernel == 1 or inputs == 1 or step == channel * inputs):
            per = step if inputs == 1 else channel
            loops = [Range("t", kernel * inputs)] if kernel * inputs > 1 else []
            counters, x_steps, w_steps = ["t"] if loops else ["0"], [per], [channels]
        else:
            loops = [Range("k", kernel), self.over_inputs()]
            counters, x_steps, w_steps = ["k", "c"], [step, channel], [channels * inputs, channels]
        return Taps(tuple(range(count)), tuple(loops), _plus(x, x_steps, counters), _plus(w, w_steps, counters))

    def edge(self, first: int, count: int, channels: int) -> list[Taps]:
        """Taps one by one, each with the points for which it lies inside the image."""
        x, w = self.bases(channels)
        axis, inputs = self.points, self.inputs
        loops = (self.over_inputs(),) if inputs > 1 else ()
        found = []
        for tap in range(axis.kernel):
            inside = [
                point
                for point in range(count)
                if 0 <= (first + point) * axis.stride - axis.pad + tap * axis.dilation < axis.size
            ]
            if inside:
                at_x = index_c([1], [x], tap * axis.x * axis.dilation) if tap else x
                at_w = index_c([1], [w], tap * channels * inputs) if tap else w
                counters = ["c"] if loops else ["0"]
                x_at, w_at = _plus(at_x, [static(self.x.strides[1])], counters), _plus(at_w, [channels], counters)
                found.append(Taps(tuple(inside), loops, x_at, w_at))
        return found


def _plus(base: str, steps: Sequence[int], counters: Sequence[str]) -> str:
    more = index_c(steps, counters)
    return base if more == "0" else f"{base} + {more}"


def _kind(call: Call) -> Conv:
    assert isinstance(call.kind, Conv)
    return call.kind


def _case(name: str, kind: Conv, x: tuple[int, ...], w: tuple[int, ...], planar: bool = False) -> Case:
    out = TensorType(f32, kind.out_shape(x, w))
    last = (0, *range(2, len(x)), 1)
    return Case(
        name,
        kind,
        (TensorType(f32, x), TensorType(f32, w)),
        (out,),
        permute={} if planar else {0: last},
        permute_outs={0: last},
        constant=frozenset({1}),
    )
