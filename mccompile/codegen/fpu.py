"""Convolutions and products of floats for cores whose FPU multiplies and adds one pair at a time: tiles of at most two
points x eight lanes, whose sums stay in registers (runtime_c/include/mcc_fpu.h).

Lanes are channels or columns. Where their number is not a multiple of a tile's, the weights of the last tile are padded
with zeros, and its results are `filled` lanes only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.constant import Constant
from ..base.dims import static
from ..base.dtypes import f32, i8
from ..base.marked import named, sized
from ..base.records import dataclass
from ..base.tensor import dense_strides
from ..kernels.api import Call, Cost, Target, viewed
from .direct_conv import DirectConv, DirectConvKernel
from .loops import index_c
from .packed_lanes import pack_rows
from .tiles import LONG, Range, Tile

MOST = 8  # lanes of a tile
CALL, ROW, BYTE = 50, 10, 2.5  # instructions of a call, of a run, and for a weight of 8 bits
PORTABLE, PORTABLE_BYTES = 2.4, 4.8  # instructions of the portable kernels for a product
CODE, ONE_POINT = 600, 350  # bytes of a function with its sums, and of one that has tiles of one point only
AROUND = 1.5  # what a step of a tile takes besides its lanes: loads, and its part of the call


@dataclass(frozen=True)
class Runs:
    """How far apart in x and in the weights the runs of the last loop but one begin."""

    x: str
    w: str


def best_lanes(lanes: int) -> int:
    """The widest of the tiles that take least."""
    return min(range(min(lanes, MOST), 0, -1), key=lambda wide: -(-lanes // wide) * (wide + AROUND))


def padded_lanes(weights: np.ndarray, lanes: int) -> np.ndarray:
    """Weights [steps of the sum, lanes] as rows of a tile's lanes."""
    rest = -weights.shape[1] % lanes
    return pack_rows(np.pad(weights, ((0, 0), (0, rest))), lanes)


def filled_c(counter: str, count: int, lanes: int) -> str:
    """C for how many lanes of the tile at `counter` have results, or nothing where all have."""
    if count % lanes == 0:
        return ""
    left = f"{sized(count)} - {named(counter)}"
    return f"{left} < {sized(lanes)} ? {left} : {sized(lanes)}"


def function_c(call: Call) -> str:
    """The name of the function that makes the sums, without its tile."""
    return "mcc_fpu_bytes" if call.ins[1].buffer.dtype is i8 else "mcc_fpu_sums"


def portable(call: Call) -> float:
    """How many instructions the portable kernel takes for a product."""
    return PORTABLE_BYTES if call.ins[1].buffer.dtype is i8 else PORTABLE


def float_refusal(call: Call, fixed: int, accumulator: object) -> str:
    """Why these functions do not add up the products of the first two operands, or nothing."""
    x, w = call.ins[:2]
    if accumulator is not f32 or fixed != 2 or x.buffer.dtype is not f32 or w.buffer.dtype not in (f32, i8):
        return "operands are not 32-bit floats"
    return ""


class FpuConv(DirectConv):
    """Tiles of positions x channels; the last loop of a sum is a run without gaps in x and in the weights."""

    def best_tile(self, points: int, lanes: int) -> Tile:
        wide = self.best_lanes(lanes)
        return Tile(min(max(points, 1), 2), wide, filled_c("g" if self.lanes_are_groups else "o", lanes, wide))

    def best_lanes(self, lanes: int) -> int:
        return best_lanes(lanes)

    def packed_row(self, channels: int) -> int:
        return self.tile.lanes

    def __init__(self, call: Call, names: list[str]) -> None:
        super().__init__(call, names)
        self.taps = self.w.type.static_shape[2:]
        self.steps = math.prod(self.taps) * self.group_in
        if self.is_planar:
            self.w_input = math.prod(self.taps) * self.row
            self.axes = self.spatial_axes([static(stride) * self.row for stride in dense_strides(self.taps)])
        padded = -(-self.group_out // self.row) * self.row
        self.w_at = index_c([self.steps * (1 if self.lanes_are_groups else padded), self.steps], self.channel())

    @property
    def is_planar(self) -> bool:
        """Do neighbours in a row of one channel lie side by side instead of channels?"""
        return self.group_in > 1 and self.x.strides[1] != 1

    def pack(self, w: np.ndarray) -> np.ndarray:
        """Group by group; taps and inputs in the order of `w_input` and of the axes."""
        groups = 1 if self.lanes_are_groups else self.kind.group
        order = (0, *range(1, w.ndim)) if self.is_planar else (0, *range(2, w.ndim), 1)
        steps = w.transpose(order).reshape(groups, w.shape[0] // groups, -1)
        return np.stack([padded_lanes(group.T, self.row) for group in steps])

    @property
    def instructions(self) -> float:
        """For a product, roughly."""
        tile, lanes = self.tile, self.kind.group if self.lanes_are_groups else self.group_out
        *others, rows, _ = [1, 1, *(loop.extent for loop in self.sum_loops(clamped=False))]
        calls = math.prod(others) * (CALL + rows * ROW) + self.steps * self.step_instructions
        return calls * -(-lanes // tile.lanes) / (self.steps * tile.points * lanes)

    @property
    def step_instructions(self) -> float:
        own = BYTE * self.tile.lanes if self.w.buffer.dtype is i8 else 0
        return self.tile.count + 1.5 + self.tile.points / 4 + own

    def context(self) -> dict[str, Any]:
        runs = {f"k{n}": Runs(str(static(axis.x) * axis.dilation), str(axis.w)) for n, axis in enumerate(self.axes)}
        runs["c"] = Runs(str(self.x.strides[1]), str(self.w_input))
        found, tile = super().context(), self.axes[self.last]
        return {
            **found,
            "step": index_c([1], [str(static(tile.x) * tile.stride)]),
            "runs": runs,
            "sums_of": function_c(self.call),
        }

    def run_along(self, loops: Sequence[Range], number: int) -> list[Range]:
        """The loops, with that over the taps of an axis as the last one."""
        counter = f"k{number}"
        run = next((loop for loop in loops if loop.counter == counter), Range(counter, 1))
        return [*(loop for loop in loops if loop.counter != counter), run]


class RunsConv(FpuConv):
    """A run is made of the input channels of all taps along the axis of the tile where those lie side by side, of the
    input channels of one tap, or of the taps in a row of one channel."""

    def __init__(self, call: Call, names: list[str]) -> None:
        super().__init__(call, names)
        self.x_input = 1 if self.group_in == 1 else self.x.strides[1]

    @property
    def has_runs(self) -> bool:
        return self.merges or (self.group_in > 1 and (not self.is_planar or self.row_axis is not None))

    @property
    def row_axis(self) -> int | None:
        """The axis whose taps lie side by side in one channel."""
        side = (n for n, a in enumerate(self.axes) if a.kernel > 1 and a.x * a.dilation == 1 and a.w == self.row)
        return next((n for n in side if not self.in_ring(n)), None)

    @property
    def merges(self) -> bool:
        """Do the taps along the axis of the tile continue each other, in x and in the weights?"""
        axis = self.axes[self.last]
        beside = self.group_in == 1 or self.x.strides[1] == 1
        short = 1 < axis.kernel * self.group_in <= LONG
        return beside and short and static(axis.x) * axis.dilation * self.row == axis.w == self.group_in * self.row

    def sum_loops(self, clamped: bool) -> list[Range]:
        """The run comes last."""
        loops, last = super().sum_loops(clamped), f"k{self.last}"
        if self.is_planar:
            assert self.row_axis is not None  # as there are runs
            return self.run_along(loops, self.row_axis)
        run = Range("c", self.group_in)
        if self.merges:
            run = Range("c", self.axes[self.last].kernel * self.group_in)
            found = next((loop for loop in loops if loop.counter == last and loop.end), None)
            if found is not None:
                begin, end = (f"{named(text)} * {sized(self.group_in)}" for text in (found.begin, found.end))
                run = Range("c", run.extent, begin, end)
        return [*(loop for loop in loops if loop.counter != "c" and not (self.merges and loop.counter == last)), run]


class EachConv(FpuConv):
    """Depthwise: each lane has an x of its own; a run is made of taps."""

    depthwise = True

    def best_lanes(self, lanes: int) -> int:
        """Those that divide the channels, if some do that are not too few: others read beyond the last channel."""
        whole = (wide for wide in range(MOST, 3, -1) if lanes % wide == 0)
        return next(whole, best_lanes(lanes))

    @property
    def run(self) -> int:
        """The axis along which weights lie side by side."""
        runs = (n for n, axis in enumerate(self.axes) if axis.w == self.row and axis.kernel > 1 and not self.in_ring(n))
        return next(runs, self.last)

    def context(self) -> dict[str, Any]:
        run = self.axes[self.run]
        return {
            **super().context(),
            "tap": index_c([1], [str(static(run.x) * run.dilation)]),
            "sums_of": "mcc_fpu_each",
        }

    @property
    def step_instructions(self) -> float:
        return self.tile.count + 3 + 2 * self.tile.points

    def sum_loops(self, clamped: bool) -> list[Range]:
        """The run comes last."""
        return self.run_along(super().sum_loops(clamped), self.run)


class FpuConvKernel(DirectConvKernel):
    def printer(self, call: Call) -> FpuConv:
        raise NotImplementedError

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        return {1: self.printer(call).pack(viewed(call.ins[1], constants[1]))}

    def packing(self, call: Call) -> Mapping[int, str]:
        printer = self.printer(call)
        order = "inputs_taps" if printer.is_planar else "taps_inputs"
        return {1: f"{order}_{printer.row}_channels_padded"}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_fpu.h"})

    def cost(self, call: Call, target: Target) -> Cost:
        time = self.printer(call).instructions / portable(call)
        cycles = static(call.macs) * target.machine.mac * time + static(call.outs[0].type.count) * target.machine.result
        return Cost(cycles, code=ONE_POINT if call.blocks else CODE)
