"""What direct convolutions print: a tile of positions x channels, any strides, any number of dimensions; padding is
never read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.constant import Constant
from ..base.dims import Dim, static, upper
from ..base.marked import named
from ..base.records import dataclass
from ..base.tensor import dense_strides
from ..expr.ir import Expr, operand
from ..expr.scalar_c import load_c, store_c, to_statements
from ..kernels.api import Call, Cost, Kernel, Needs, No, Target, static_views, supports_types, viewed
from ..kernels.registry import effort
from ..kinds.conv import Conv
from ..targets.api import Prefer
from .loops import index_c, magnitude, size_name
from .packed_lanes import pack_rows, packed_lane_c, packed_row
from .tiles import Body, Named, Product, Range, Tile, best_tile, cut_sum, epilogue_alias, is_constant, moved, term_c
from .traffic import of_results
from .windows import Sliding, any_axes, positions, ring_row

CODE, ONE_POINT_CODE = 900, 450  # bytes of tiles of several points and a body for edges, of one point
ABOUT = 600  # where bytes hardly count, and of integers
ONE_POINT_TIME = 1.25  # of a product, as weights are loaded for one point each


@dataclass(frozen=True)
class ConvBody(Body):
    lanes: tuple[Range, ...]  # loops over channels, where those are inside of the positions
    x_inner: str
    w_inner: str
    zeros: Named


class DirectConv:
    """Works out the loops and the text of every index for one call. Counters: n batch, g group, o channel within it,
    p0.. positions, k0.. taps, c input channel; at0.. are the places of the first taps."""

    depthwise = False  # lanes are groups, whatever the strides of x are

    def __init__(self, call: Call, names: list[str]) -> None:
        self.kind, self.call, self.names = call.of(Conv), call, names
        self.x, self.w, self.y = call.ins[0], call.ins[1], call.outs[0]
        self.extras = call.ins[self.kind.fixed :]
        self.by_rows = call.rows is not None  # then the first axis is never the one along which tiles lie
        kind, kernel = self.kind, self.w.type.static_shape[2:]
        self.group_in, self.group_out = static(self.w.shape[1]), static(self.w.shape[0]) // kind.group
        self.x_input = self.x.strides[1]
        self.w_lane, self.w_input = static(self.w.strides[0]), static(self.w.strides[1])
        self.axes = self.spatial_axes([static(stride) for stride in self.w.strides[2:]])
        self.last = len(self.axes) - 1
        # Depthwise over channels-last operands: a tile is made of neighbouring channels, which are groups.
        channels_last = magnitude(self.x.strides[1]) < magnitude(self.axes[-1].x)
        self.lanes_are_groups = self.depthwise or (kind.group > 1 and self.group_out == 1 and channels_last)
        first, end = self.axes[-1].interior
        lanes = kind.group if self.lanes_are_groups else self.group_out
        self.tile = self.best_tile(end - first, lanes)
        if call.blocks:
            self.tile = replace(self.tile, points=call.blocks[0])
        channel = index_c([self.group_out, 1], self.channel())
        if is_constant(self.w):
            channels, steps = static(self.w.shape[0]), math.prod(kernel) * self.group_in
            self.row = self.packed_row(channels)
            self.w_at = packed_lane_c(channel, channels, self.row, steps)
            self.w_lane, self.w_input = 1, self.row
            self.axes = self.spatial_axes(
                [static(stride) * self.group_in * self.row for stride in dense_strides(kernel)]
            )
        else:
            self.w_at = index_c([self.group_out * self.w_lane, self.w_lane], self.channel())

    def best_tile(self, points: int, lanes: int) -> Tile:
        return best_tile(points, lanes, own_factors=self.lanes_are_groups)

    def packed_row(self, channels: int) -> int:
        return packed_row(channels, self.tile)

    def spatial_axes(self, w_strides: Sequence[int]) -> list[Sliding[Dim]]:
        """The positions of a tile lie along the last one."""
        kind, kernel = self.kind, self.w.type.static_shape[2:]
        found = any_axes(
            self.y, self.x, w_strides, self.extras, kernel, kind.strides, kind.dilations, kind.pads, not self.by_rows
        )
        free = range(1 if self.by_rows else 0, len(found))
        long = [number for number in free if upper(found[number].out) >= 4]
        chosen = long[-1] if long else max(free, key=lambda number: upper(found[number].out))
        return [*found[:chosen], *found[chosen + 1 :], found[chosen]]

    @property
    def loops(self) -> list[Range]:
        """Over pictures and channels, in tiles."""
        batch, group = Range.over("n", self.x.shape[0]), self.kind.group
        if self.lanes_are_groups:
            return [batch, Range("g", group, step=self.tile.lanes)]
        return [batch, Range("g", group), Range("o", self.group_out, step=self.tile.lanes)]

    def shared(self) -> tuple[str, int]:
        """The loop that workers share, and its units: the one of most."""
        units = {loop.counter: -(-loop.extent // loop.step) for loop in self.loops}
        return max(units.items(), key=lambda unit: unit[1])

    def cut(self, loop: Range) -> Range:
        """The loop, or the units of it that a worker computes."""
        if self.by_rows or self.call.workers == 1 or loop.counter != self.shared()[0]:
            return loop
        times = "" if loop.step == 1 else f" * {loop.step}"
        return replace(loop, begin=f"{named('begin')}{times}", end=f"{named('end')}{times}")

    def context(self) -> dict[str, Any]:
        kind, point_axis = self.kind, self.axes[self.last]
        first, end = point_axis.interior
        wide = self.tile
        outer = [self.cut(loop) for loop in (self.loops[:1] if self.lanes_are_groups else self.loops)]
        origins = [named(f"at{i}") for i in range(len(self.axes))]
        steps: list[Dim] = [axis.x for axis in self.axes]
        if self.in_ring(0):  # the row is added where its tap is known: here, if there is only one
            one = self.axes[0].is_one_row
            origins[0], steps[0] = (self.axes[0].ring_tap("0"), 1) if one else ("0", 0)
        needs_single = not point_axis.is_static or point_axis.out != end - first or bool((end - first) % wide.points)
        x_at = self.place(self.x, self.group_in, origins, steps)
        # A tile of one position gains .2 % where its taps need no check: not worth a second body.
        gains = wide.points > 1 or (self.lanes_are_groups and not self.call.blocks)
        has_wide = end - first >= wide.points and (gains or not needs_single)
        return {
            "outer": [loop for loop in outer if loop.extent != 1],
            "rows": [self.place_along(number) for number in range(self.last)],
            "points": self.place_along(self.last),
            "inside": point_axis.inside(self.last, wide.points),
            "wide": self.body(wide, clamped=False) if has_wide else None,
            "single": self.body(replace(wide, points=1), clamped=True) if needs_single else None,
            "sum_type": kind.accumulator.compute_c,
            "sum_name": kind.accumulator.name,
            "exact": not kind.accumulator.is_float,
            "x_at": x_at,
            "w_at": self.w_at,
        }

    def in_ring(self, number: int) -> bool:
        """Does x lie in a ring along this axis?"""
        return number == 0 and self.x.lines > 0

    def place_along(self, number: int) -> dict[str, Any]:
        """What the loop along one axis of the image prints."""
        axis, at = self.axes[number], f"at{number}"
        return {
            **positions(axis, number, self.by_rows, self.x, [self.y, *self.extras]),
            "at": f"const mcc_index {at} = {axis.origin(f'p{number}')};",
            "first": "" if axis.always_inside else f"const mcc_index first{number} = {axis.first_tap(named(at))};",
            "end": "" if axis.always_inside else f"const mcc_index end{number} = {axis.end_tap(named(at))};",
        }

    def channel(self) -> list[str]:
        """Counters of group and channel within it."""
        kind = self.kind
        return ["g" if kind.group > 1 else "0", "0" if self.lanes_are_groups or self.group_out == 1 else "o"]

    def place(self, view: Any, channels: int, counters: list[str], strides: list[Dim]) -> str:
        """Index in an operand that has a batch and groups of `channels`."""
        batch = "n" if self.x.shape[0] != 1 else "0"
        fixed = [view.strides[0], view.strides[1] * channels]
        return index_c([*fixed, *strides], [batch, self.channel()[0], *counters])

    def sum_loops(self, clamped: bool) -> list[Range]:
        """Loops over input channels and taps, those with the largest steps through x outermost."""
        found = [(magnitude(self.x.strides[1]), Range("c", self.group_in))]
        for number, axis in enumerate(self.axes):
            if axis.always_inside or (number == self.last and not clamped):
                loop = Range(f"k{number}", axis.kernel)
            else:
                loop = Range(f"k{number}", axis.kernel, f"first{number}", f"end{number}")
            if self.in_ring(number):
                loop = replace(loop, then=f"const mcc_index x_line = x_at + {axis.ring_tap(f'k{number}')};")
            found.append((magnitude(axis.x) * axis.dilation, loop))
        found.sort(key=lambda item: -item[0])
        return [loop for _, loop in found if loop.extent != 1 or loop.end]

    def body(self, tile: Tile, clamped: bool) -> Body:
        kind = self.kind
        around, inside = cut_sum(self.sum_loops(clamped), kind.accumulator)
        used = [loop.counter for loop in self.sum_loops(clamped)]
        counters = [name if name in used else "0" for name in ("c", *(f"k{i}" for i in range(len(self.axes))))]
        x_strides = [self.x_input, *(a.x * a.dilation for a in self.axes)]
        x_at = "x_at"
        if self.in_ring(0):
            x_strides[1] = 0
            x_at = "x_line" if "k0" in used else x_at
        w_strides = [self.w_input, *(a.w for a in self.axes)]
        zeros, loads, products = self.products(tile)
        lanes = [self.cut(self.loops[1])] if self.lanes_are_groups else []
        lines, store = self.epilogue(tile)
        x_inner = index_c([1, *x_strides], [x_at, *counters])
        w_inner = index_c([1, *w_strides], ["w_at", *counters])
        body = tile, around, inside, loads, products, tuple(lines), store
        return ConvBody(*body, tuple(lanes), x_inner, w_inner, zeros)

    def products(self, tile: Tile) -> tuple[Named, Named, tuple[Product, ...]]:
        """Zero points, loads of factors, and products of one step of the sum."""
        kind, total = self.kind, self.kind.accumulator
        zeros: list[tuple[str, str]] = []
        if kind.x_zero:
            zeros.append(("zero_x", term_c(self.x.buffer.dtype, "x_zero", "0", total)))
        loads: list[tuple[str, str]] = []
        x_lanes = range(tile.lanes) if self.lanes_are_groups else range(1)
        for lane in x_lanes:
            for point in range(tile.points):
                along = self.axes[self.last].x * self.axes[self.last].stride
                step = lane * self.group_in * self.x.strides[1] + point * along
                name = f"x{lane}_{point}" if self.lanes_are_groups else f"x{point}"
                zero = "zero_x" if kind.x_zero else ""
                loads.append((name, term_c(self.x.buffer.dtype, "x", moved("x_in", step), total, zero)))
        for lane in range(tile.lanes):
            zero = ""
            if kind.w_zero:
                view = self.call.ins[2 + kind.x_zero]
                step = static(view.strides[0])
                zero = f"zero_w{lane}" if step else "zero_w"
                at = index_c([step * self.group_out, step, step], [*self.channel(), str(lane)])
                noted = zero, term_c(self.w.buffer.dtype, "w_zero", at, total)
                zeros += [noted] if noted not in zeros else []
            step = lane * self.w_lane
            loads.append((f"w{lane}", term_c(self.w.buffer.dtype, "w", moved("w_in", step), total, zero)))
        products = [
            Product(tile.result(lane, point), f"x{lane}_{point}" if self.lanes_are_groups else f"x{point}", f"w{lane}")
            for lane in range(tile.lanes)
            for point in range(tile.points)
        ]
        return tuple(zeros), tuple(loads), tuple(products)

    @property
    def ends(self) -> Expr:
        """What becomes of a sum."""
        return self.kind.epilogue or operand(0, self.kind.accumulator)

    def epilogue(self, tile: Tile) -> tuple[list[str], str]:
        """Statements for one result of a tile, at `lane` and `point`."""
        lane = "0" if tile.lanes == 1 else "lane"
        point = "0" if tile.points == 1 else "point"

        def at(view: Any, steps: Sequence[Dim]) -> str:
            channel = view.strides[1]
            places = [ring_row(f"p{i}", view.lines if i == 0 else 0) for i in range(len(self.axes))]
            counters = [self.channel()[1], *places, lane, point]
            return self.place(view, self.group_out, counters, [channel, *steps, channel, steps[-1]])

        loads = [
            load_c(view.buffer.dtype, name, at(view, [axis.extras[number] for axis in self.axes]))
            for number, (view, name) in enumerate(zip(self.extras, self.names[self.kind.fixed :], strict=True))
        ]
        lines, value = to_statements(self.ends, ["total", *loads], local="v")
        return lines, store_c(self.y.buffer.dtype, "y", at(self.y, [axis.y for axis in self.axes]), value)


class DirectConvKernel(Kernel):
    kind = Conv
    branches = ""

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call, call.ins[1]) or supports_types(call)
        if reason:
            return No(reason)
        rows = frozenset({2}) if len(call.of(Conv).strides) > 1 else frozenset()
        alias = epilogue_alias(call, call.of(Conv).fixed)
        return Needs(alias=alias, rows=rows, symbols=True, blocks=self.blocks(call, target))

    def blocks(self, call: Call, target: Target) -> tuple[int, ...]:
        """Tiles of one point where flash comes first and they save more than they take; else of several. Integers have
        kernels of their own, which are worth more than the bytes."""
        if target.prefer != Prefer.FLASH or not call.of(Conv).accumulator.is_float:
            return ()
        return min(((), (1,)), key=lambda blocks: effort(self.cost(replace(call, blocks=blocks), target), target))

    def cost(self, call: Call, target: Target) -> Cost:
        machine, (outs, inputs) = target.machine, map(upper, call.ins[1].shape[:2])
        tap = machine.tap * call.of(Conv).group / max(outs * inputs, 1)
        one_point = ONE_POINT_TIME if call.blocks else 1.0
        time = upper(call.macs) * (machine.mac * one_point + tap) + of_results(call, target)
        exact = target.prefer == Prefer.FLASH and call.of(Conv).accumulator.is_float
        return Cost(time, code=ABOUT if not exact else ONE_POINT_CODE if call.blocks else CODE)

    def units(self, call: Call) -> Sequence[int]:
        return super().units(call) if call.rows is not None else (1,) * self.printer(call).shared()[1]

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        if not is_constant(call.ins[1]):
            return {}
        w = viewed(call.ins[1], constants[1])
        steps = w.transpose(*range(2, w.ndim), 1, 0).reshape(-1, w.shape[0])  # taps, inputs; channels
        return {1: pack_rows(steps, self.printer(call).row)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"taps_inputs_{self.printer(call).row}_channels"} if is_constant(call.ins[1]) else {}

    def printer(self, call: Call) -> DirectConv:
        return DirectConv(call, self.parameter_names(call)[1])

    def label(self, call: Call) -> str:
        kind, (x, w) = call.of(Conv), call.ins[:2]
        kernel = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        space = "x".join(map(size_name, x.shape[2:]))
        name = "depthwise" if kind.group > 1 and kind.group == x.shape[1] else "conv"
        return f"{name}_{kernel}_{space}x{x.shape[1]}_{w.shape[0]}"

    def context(self, call: Call) -> Mapping[str, Any]:
        return self.printer(call).context()
