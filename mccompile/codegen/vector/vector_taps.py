"""Which taps of a window the tiles of a convolution in vectors multiply, in which loops, and where they read.

Counters: n batch, g groups, o first channel of a tile in its group, p0.. positions (the last runs over tiles), k0..
taps, t or c along the innermost sum; at0.. are the places of the first taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import prod

from ...base.dims import static
from ...base.dtypes import f32
from ...base.marked import named
from ...expr.code import Code
from ...kinds.conv import Conv
from ...program.ir import Call
from ..loops import index_c
from ..tiles import Range
from ..windows import Axis, any_axes, known
from .vector_runs import Run, longest_run, runs
from .vector_tiles import OwnSums, Pass, Taps, TileSize, computed_in, taken_together

ONE_POINT = Axis(size=1, out=1, kernel=1, stride=1, dilation=1, pad=0, x=0, y=0)
FEWEST_IN_LOOP = 8  # neighbouring taps of such a tile for the same points: as many are a loop


class ConvTaps:
    """The sums of one call. `channels` and `inputs` are those of `merged` groups; `one_tile`: the weights are those of
    one tile of channels. `by_point`: a tile has one point, and loops over taps find those inside the image, so that
    edges need no code of their own."""

    def __init__(self, call: Call, merged: int, one_tile: bool = False, by_point: bool = False) -> None:
        self.kind, self.call = conv_of(call), call
        self.x, self.w, self.y = call.ins[0], call.ins[1], call.outs[0]
        self.extras = call.ins[2:]
        kind, kernel = self.kind, self.w.type.static_shape[2:]
        window = (kernel, kind.strides, kind.dilations, kind.pads)
        *self.rows, self.points = known(any_axes(self.y, self.x, (), self.extras, *window, join=call.rows is None))
        if by_point:
            self.rows, self.points = [*self.rows, self.points], replace(ONE_POINT, extras=(0,) * len(self.extras))
        self.merged, self.group, self.one_tile, self.by_point = merged, kind.group // merged, one_tile, by_point
        self.channels, self.inputs = static(self.w.shape[0]) // self.group, static(self.w.shape[1]) * merged
        self.batch = static(self.x.shape[0])

    @cached_property
    def depth(self) -> int:
        return self.inputs * prod(axis.kernel for axis in (*self.rows, self.points))

    @property
    def step(self) -> int:
        return self.points.x * self.points.stride

    @cached_property
    def longest_run(self) -> int:
        """Into runs of how many terms sums are cut; 0: they are not."""
        return longest_run(self.depth, computed_in(self.call), self.kind.rounding)

    @property
    def cut(self) -> bool:
        """Are sums of 32-bit floats cut into runs?"""
        return self.longest_run > 0 and computed_in(self.call) is f32

    @property
    def long_rows(self) -> bool:
        """Are the products of a row of taps too many for one run?"""
        return 0 < self.longest_run < self.inputs * self.points.kernel

    @property
    def run(self) -> int:
        """How many steps of the sum at most read neighbouring numbers: inputs, those of several taps, or taps."""
        step, kernel = self.points.x * self.points.dilation, self.points.kernel
        if self.inputs == 1:
            return kernel if step == 1 else 1
        if static(self.x.strides[1]) != 1:
            return 1
        return self.inputs * (kernel if step == self.inputs and not self.long_rows else 1)

    def in_ring(self, number: int) -> bool:
        """Does x lie in a ring along this axis?"""
        return number == 0 and self.x.lines > 0

    def passes(self, first: int, count: int, size: TileSize, channels: int, edge: bool) -> tuple[Pass, ...]:
        """The sum of a tile. Where it is cut into runs and those of all taps of a row would be short, taps are passes
        of their own."""
        rows = tuple(loop for n, axis in enumerate(self.rows) if (loop := self.tap_loop(n, axis)) is not None)
        alone = self.alone(size.together)
        found = []
        for run in self.runs(size.together):
            around = (*run.around, *rows)
            taps = self.edge(first, count, channels, run.inputs) if edge else [self.inside(count, channels, run.inputs)]
            for one in taps if alone else ():
                own = (*around, *one.loops[:-1])
                found.append(Pass(own, taken_together(replace(one, loops=one.loops[-1:]), size.together, channels)))
            if taps and not alone:
                parts = [part for one in taps for part in taken_together(one, size.together, channels)]
                found.append(Pass(around, tuple(parts)))
        return tuple(found)

    def alone(self, together: int) -> bool:
        """Are the runs of single taps better than those of a few inputs of all taps of a row? They are where these
        would be short, and where those are not."""
        kernel = self.points.kernel
        single = computed_in(self.call) is f32 and self.inputs >= self.longest_run
        return self.long_rows and kernel > 1 and (single or self.longest_run // kernel < together)

    def runs(self, together: int) -> tuple[Run, ...]:
        """The inputs in runs, each for one tap of a row or for all of them."""
        if not self.long_rows:
            return (Run((), Range("c", self.inputs)),)
        most = self.longest_run if self.alone(together) else self.longest_run // self.points.kernel
        return runs("c", self.inputs, most, together)

    def terms_of_run(self, together: int) -> int:
        """How many terms are added up at most before they are added to a total: few where inputs are few and taps of a
        row are more than a run, each of which is one then."""
        if not self.longest_run:
            return self.depth
        inputs = max(run.inputs.extent for run in self.runs(together))
        return inputs if self.alone(together) else inputs * self.points.kernel

    def tap_loop(self, number: int, axis: Axis) -> Range | None:
        if axis.always_inside:
            return Range(f"k{number}", axis.kernel) if axis.kernel > 1 else None
        return Range(f"k{number}", axis.kernel, named(f"first{number}"), named(f"end{number}"))

    def tap_index(self, steps: Sequence[int]) -> str:
        """C of what the taps along the rows add to an index, whose steps along the taps are given."""
        used = ["0" if self.tap_loop(n, axis) is None else f"k{n}" for n, axis in enumerate(self.rows)]
        return index_c(steps, used) if self.rows else "0"

    def bases(self, channels: int) -> tuple[str, str]:
        """C of the indices in x and w where the innermost loops start."""
        x = self.tap_index([0 if self.in_ring(n) else axis.x * axis.dilation for n, axis in enumerate(self.rows)])
        if self.in_ring(0):
            row = self.rows[0].ring_tap("0" if self.tap_loop(0, self.rows[0]) is None else "k0")
            x = row if x == "0" else f"{row} + {x}"
        steps = [
            channels * self.inputs * self.points.kernel * prod(axis.kernel for axis in self.rows[number + 1 :])
            for number in range(len(self.rows))
        ]
        w = self.tap_index(steps)
        x_at, tile = named("x_at"), [] if self.one_tile else [f"{named('o')} * {self.depth}"]
        return f"{x_at} + {x}" if x != "0" else x_at, " + ".join([*tile, *[w] * (w != "0")]) or "0"

    def own_sums(self, point: str, channels: int, edge: bool) -> OwnSums:
        """Of a tile whose first point that is."""
        axis, wide, inputs = self.points, self.channels // self.merged, self.inputs // self.merged
        rows = tuple(loop for n, one in enumerate(self.rows) if (loop := self.tap_loop(n, one)) is not None)
        x, w = self.bases(channels)
        steps = [self.step, axis.x * axis.dilation, static(self.x.strides[1])]
        place = axis.origin(point)
        return OwnSums(
            self.channels,
            index_c([inputs], [Code(f"lane / {wide}" if wide > 1 else "lane", wide > 1)]),
            rows,
            Range("k", axis.kernel),
            f"{place} + point * {axis.stride} + k * {axis.dilation}" if edge else "",
            axis.size,
            Range("c", inputs, "own", f"own + {inputs}"),
            _plus(x, steps, ["point", "k", "c"]),
            _plus(w, [channels * self.inputs, channels, 1], ["k", "c", "lane"]),
        )

    def inside(self, count: int, channels: int, over: Range) -> Taps:
        """All taps of a row, for tiles inside the image; one loop for taps and inputs where those follow each other."""
        x, w = self.bases(channels)
        step, channel = self.points.x * self.points.dilation, static(self.x.strides[1])
        kernel, inputs = self.points.kernel, self.inputs
        if not self.long_rows and (kernel == 1 or inputs == 1 or step == channel * inputs):
            per = step if inputs == 1 else channel
            loops = [Range("t", kernel * inputs)] if kernel * inputs > 1 else []
            counters, x_steps, w_steps = ["t"] if loops else ["0"], [per], [channels]
        else:
            loops = [Range("k", kernel), over]
            counters, x_steps, w_steps = ["k", "c"], [step, channel], [channels * inputs, channels]
        return Taps(tuple(range(count)), tuple(loops), _plus(x, x_steps, counters), _plus(w, w_steps, counters))

    def edge_runs(self, first: int, count: int) -> list[tuple[int, int, tuple[int, ...]]]:
        """Taps of a tile at an edge, and the points for which they lie inside the image: first tap, how many follow
        each other with the same points. A few are unrolled, many are a loop."""
        axis = self.points
        runs: list[tuple[int, int, tuple[int, ...]]] = []
        for tap in range(axis.kernel):
            places = ((first + point) * axis.stride - axis.pad + tap * axis.dilation for point in range(count))
            inside = tuple(point for point, place in enumerate(places) if 0 <= place < axis.size)
            if runs and runs[-1][2] == inside:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1, inside)
            else:
                runs.append((tap, 1, inside))
        found = []
        for tap, taps, inside in runs:
            if inside and taps >= FEWEST_IN_LOOP:
                found.append((tap, taps, inside))
            elif inside:
                found += [(tap + number, 1, inside) for number in range(taps)]
        return found

    def edge(self, first: int, count: int, channels: int, over: Range) -> list[Taps]:
        """Each tap, or run of taps, with the points for which it lies inside the image."""
        x, w = self.bases(channels)
        axis, inputs = self.points, self.inputs
        found = []
        for tap, taps, inside in self.edge_runs(first, count):
            loops = [Range("k", taps)] if taps > 1 else []
            counters = ["k"] if loops else ["0"]
            loops += [over] if inputs > 1 else []
            counters += ["c"] if inputs > 1 else ["0"]
            at_x = index_c([1], [x], tap * axis.x * axis.dilation) if tap else x
            at_w = index_c([1], [w], tap * channels * inputs) if tap else w
            x_at = _plus(at_x, [axis.x * axis.dilation, static(self.x.strides[1])], counters)
            w_at = _plus(at_w, [channels * inputs, channels], counters)
            found.append(Taps(inside, tuple(loops), x_at, w_at))
        return found


def _plus(base: str, steps: Sequence[int], counters: Sequence[str]) -> str:
    more = index_c(steps, counters)
    return base if more == "0" else f"{base} + {more}"


def conv_of(call: Call) -> Conv:
    assert isinstance(call.kind, Conv)
    return call.kind
