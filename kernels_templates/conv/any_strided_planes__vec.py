"""conv of one input per result (depthwise, with any multiplier) in loops over lanes, along an axis of the image or
along channels, whichever lies together. Any element types, any strides, any number of dimensions.

A block of rows is copied into the workspace first, as numbers of the sum's type less their zero point, with zeros where
the windows reach beyond the image. Along an axis with a stride, elements that the same tap meets come to lie together.

Invariant: a sum has the terms of the portable kernel, and zeros, so those of integers have the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.lanes import (
    LANES,
    LEAST,
    SHORTEST,
    covering_pieces,
    cuts,
    each_lane,
    lane_pieces,
    lane_work,
    lanes_refusal,
    without_branches,
)
from mccompile.codegen.loops import index_c, magnitude
from mccompile.codegen.tiles import Range, epilogue_alias, term_c
from mccompile.codegen.traffic import AROUND, fmas_of, has_traffic, of_results
from mccompile.codegen.vector.vector_tiles import FLOAT, lanes_of
from mccompile.codegen.windows import Axis, any_axes, known
from mccompile.expr.code import Code
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views, supports_types
from mccompile.kinds.conv import Conv

TYPES = (i32, u32, i64, u64, f32, f64)
UNROLLED = 32  # taps at most
COPYING = 0.5  # cycles of an element
WAITING = 2.2  # what all takes over what is counted: products wait for loads that cross lines of the cache
BLOCK = 24 << 10  # bytes of rows that are copied at once, unless a single one takes more
PLAIN = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32)


class Planes(Kernel):
    kind = Conv
    branches = ""

    def cases(self) -> Sequence[Case]:
        last = {0: (0, 2, 3, 1)}
        relu = apply("max", apply("add", operand(0, i32), operand(1, i32)), literal(0, i32))
        return [
            *(_case(f"{dtype}", replace(PLAIN, accumulator=dtype), (1, 3, 8, 29)) for dtype in TYPES),
            _case("strided", replace(PLAIN, strides=(2, 3), pads=(1, 2, 0, 1)), (2, 3, 9, 50), (3, 5)),
            _case("dilated", replace(PLAIN, strides=(1, 2), dilations=(2, 3)), (1, 2, 9, 41)),
            _case("windows_outside", replace(PLAIN, pads=(5,) * 4), (1, 2, 3, 5)),
            _case("multiplier", PLAIN, (1, 3, 6, 21), times=3),
            _case("blocks_of_rows", replace(PLAIN, accumulator=f64), (1, 2, 97, 70)),
            _case("large_window", replace(PLAIN, pads=(3,) * 4), (1, 2, 11, 19), (7, 7)),
            _case("wide_window", replace(PLAIN, pads=(0, 20) * 2), (1, 2, 3, 19), (1, 41)),
            _case("tall", PLAIN, (1, 3, 22, 3)),
            _case("1d", Conv((2,), (3,), (4, 1), 1, i64), (2, 3, 45), (4,)),
            _case("3d", Conv((1, 2, 1), (1, 1, 2), (1, 0, 2, 0, 1, 2), 1, f64), (1, 2, 4, 5, 16), (2, 3, 2)),
            _case("3d_frames", Conv((1, 1, 1), (1, 1, 1), (0, 0, 1, 0, 0, 1), 1, i32), (1, 2, 4, 1, 20), (2, 1, 3)),
            _case("3d_outside", Conv((1, 1, 1), (1, 1, 1), (0, 4, 1) * 2, 1, f64), (1, 2, 4, 3, 20), (2, 3, 3)),
            _case("channels_last", PLAIN, (2, 70, 8, 9), permute=last, permute_outs=last),
            _case("channels_last_strided", replace(PLAIN, strides=(2, 2)), (1, 24, 9, 8), (5, 3), permute=last),
            _case("channels_last_multiplier", PLAIN, (1, 17, 5, 4), times=2, permute=last, permute_outs=last),
            replace(_case("epilogue", replace(PLAIN, epilogue=relu), (1, 3, 6, 21), extras=1), permute={2: last[0]}),
            replace(
                _case("columns_first", replace(PLAIN, epilogue=relu), (1, 17, 6, 5), extras=1),
                permute={0: (0, 3, 2, 1), 2: (0, 3, 2, 1)},
            ),
            _case("weights_across", PLAIN, (1, 3, 6, 18), permute={1: (2, 3, 1, 0)}),
            _narrow("words", i16, i8, {}),
            _narrow("words_of_words", i16, i16, last),
            _narrow("unsigned_words", u16, u8, last),
            _narrow("bytes", u8, i8, {}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [planes]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w) = call.of(Conv), call.ins[:2]
        reason = (
            ("" if has_traffic(target) else "the target has no vectors of all types")
            or supports_types(call)
            or static_views(call)
        )
        if reason:
            return No(reason)
        if kind.accumulator not in TYPES:
            return No("only for sums of floats and of integers of 32 bits and more")
        if 0 in (*call.outs[0].shape, *x.shape, *w.shape):
            return No("the result is empty")
        if w.shape[1] != 1:
            return No("only for one input per result")
        views = [view.buffer.dtype for view in (*call.outs, *call.ins)]
        reason = lanes_refusal(target, kind.expressions(), views)
        if reason:
            return No(reason)
        layout = _Layout(call, [])
        if layout.along < SHORTEST:
            return No("elements that lie together are too few")
        return Needs(scratch=layout.scratch, scratch_align=64, alias=epilogue_alias(call, kind.fixed))

    def cost(self, call: Call, target: Target) -> Cost:
        layout, total = _Layout(call, []), call.of(Conv).accumulator
        lanes = lanes_of(target) * FLOAT * 8 // total.bits
        results = static(call.outs[0].type.count)
        vectors = results / layout.along * -(-layout.along // lanes)
        cycles = vectors * layout.taps / fmas_of(lanes * total.bits // 8 // FLOAT, target)
        cycles += results / layout.along * 3 * AROUND / target.machine.issue  # rows are copied, summed and stored
        views = [view.buffer.dtype for view in (*call.outs, *call.ins[call.of(Conv).fixed :])]
        cycles += results * lane_work(call.kind.expressions(), [total, *views], target)
        copied = COPYING * static(call.ins[0].type.count)
        return Cost(WAITING * (cycles + copied) + of_results(call, target) / 2, code=1200)

    def units(self, call: Call) -> Sequence[int]:
        return (1,) * -(-_Layout(call, []).channels // _Layout(call, []).lanes)

    def label(self, call: Call) -> str:
        kind, (x, w) = call.of(Conv), call.ins[:2]
        window = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        return f"depthwise_{window}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}"

    def context(self, call: Call) -> Mapping[str, Any]:
        layout = _Layout(call, self.parameter_names(call)[1])
        return {
            "opening": layout.opening(),
            "outer": layout.outer(),
            "blocks": layout.blocks(),
            "rows": layout.rows_loop,
            "scope": layout.scope(),
        }


class _Layout:
    """Loops and C of indices for one call. Counters: n batch, g channel, j result of it, b blocks of rows, r rows that
    are copied, u.. what is copied of them, p.. positions, k.. taps; axes are numbered as in the image. `axes`: the
    first is the one whose rows are copied, the last the one that lanes lie along, unless they are channels."""

    def __init__(self, call: Call, names: Sequence[str]) -> None:
        self.call, self.kind, self.names = call, call.of(Conv), names
        self.x, self.w, self.y = call.ins[0], call.ins[1], call.outs[0]
        kind, extras, kernel = self.kind, call.ins[self.kind.fixed :], self.w.type.static_shape[2:]
        steps, windows = [static(stride) for stride in self.w.strides[2:]], (kind.strides, kind.dilations, kind.pads)
        axes = list(enumerate(known(any_axes(self.y, self.x, steps, extras, kernel, *windows, join=False))))
        long = [axis for axis in axes if axis[1].out >= LEAST] or [max(axes, key=lambda axis: axis[1].out)]
        chosen = min(reversed(long), key=lambda axis: magnitude(axis[1].x))
        single = (len(axes), Axis(1, 1, 1, 1, 1, 0, 0, 0, 0, (0,) * len(extras)))
        self.axes = [*([axis for axis in axes if axis is not chosen] or [single]), chosen]
        self.channels, self.total = static(self.x.shape[1]), kind.accumulator
        beside = magnitude(self.x.strides[1]) < magnitude(chosen[1].x) and self.channels >= SHORTEST
        self.of_channels = beside or chosen[1].out < SHORTEST
        self.lanes = min(self.channels, LANES) if self.of_channels else 1  # channels that are computed at once
        self.times = static(self.w.shape[0]) // self.channels
        self.taps = prod(kernel)

    @property
    def along(self) -> int:
        """Elements that loops over lanes go over."""
        return self.lanes if self.of_channels else self.axes[-1][1].out

    @property
    def number(self) -> str:
        """What is added up. Sums of integers wrap around, as those without signs do."""
        return self.total.compute_c if self.total.is_float else f"uint{self.total.bits}_t"

    # What lies in the workspace: weights by result, tap and channel, sums of a row, and the rows.

    @staticmethod
    def reach(axis: Axis, positions: int) -> int:
        """Elements that the windows of so many neighbouring positions go over."""
        return (positions - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1

    @cached_property
    def sizes(self) -> list[int]:
        """Elements of a row along its axes; the last one's in phases, as many as its stride, if lanes lie along it."""
        found = [self.reach(axis, axis.out) for _, axis in self.axes[1:]]
        return [*found, self.lanes] if self.of_channels else [*found[:-1], self.phase * self.axes[-1][1].stride]

    @property
    def phase(self) -> int:
        axis = self.axes[-1][1]
        return -(-self.reach(axis, axis.out) // axis.stride)

    @cached_property
    def steps(self) -> list[int]:
        """From one row to the next, and along its axes."""
        return [prod(self.sizes[number:]) for number in range(len(self.sizes) + 1)]

    @cached_property
    def rows(self) -> int:
        """Positions whose rows are copied at once."""
        axis, row = self.axes[0][1], self.total.nbytes(self.steps[0])
        fitting = (BLOCK // row - self.reach(axis, 1)) // axis.stride + 1
        blocks = -(-axis.out // max(1, min(fitting, axis.out)))
        return -(-axis.out // blocks)

    @property
    def regions(self) -> tuple[int, int, int]:
        plane = self.reach(self.axes[0][1], self.rows) * self.steps[0]
        return (self.times * self.taps * self.lanes, self.along, plane)

    @property
    def scratch(self) -> int:
        return self.total.nbytes(sum(self.regions))

    def opening(self) -> list[str]:
        weights, line, plane = self.regions
        return [
            f"{self.number} *const weights = ({self.number} *)(void *)scratch;",
            f"{self.number} *const line = weights + {weights};",
            f"{self.number} *const plane = line + {line};",
            f"for (mcc_index i = 0; i < {plane}; ++i) plane[i] = 0;",
        ]

    def outer(self) -> list[Range]:
        begin, end = ("begin", "end") if self.call.workers > 1 else ("0", str(-(-self.channels // self.lanes)))
        times = f" * {self.lanes}" if self.lanes > 1 else ""
        groups = Range("g", self.channels, begin=f"{begin}{times}", end=f"{end}{times}", step=self.lanes)
        return [*([Range.over("n", self.x.shape[0])] if self.x.shape[0] != 1 else []), groups]

    def blocks(self) -> list[dict[str, Any]]:
        """Of channels: whole ones, and what is left over."""
        rest = self.channels % self.lanes
        found = [(f"if (g + {self.lanes} <= {self.channels}) {{", self.lanes), ("} else {", rest)]
        chosen = found if rest else [("", self.lanes)]
        return [
            {"header": header, "weights": self.weights(n), "copied": self.copied(n), "rows": self.row(n)}
            for header, n in chosen
        ]

    @property
    def rows_loop(self) -> str:
        return Range("b", self.axes[0][1].out, step=self.rows).header

    def scope(self) -> list[str]:
        counters = ["n"] if self.x.shape[0] != 1 else []
        return [*counters, "g", "b", *(f"{self.number} *{name}" for name in ("weights", "line", "plane"))]

    def row(self, lanes: int) -> list[str]:
        """C for the results of a block of rows."""
        number, axis = self.axes[0]
        end = f"b + {self.rows}"
        end = f"({end} < {axis.out} ? {end} : {axis.out})" if axis.out % self.rows else end
        middle = self.axes[1:] if self.of_channels else self.axes[1:-1]
        positions = [Range(f"p{number}", 0, "b", end), *(Range(f"p{n}", a.out) for n, a in middle)]
        return _nested([Range("j", self.times), *positions], self.sums(lanes) + self.results(lanes))

    def weights(self, lanes: int) -> list[str]:
        counters = [f"k{n}" for n, _ in self.axes]
        kernel = [axis.kernel for _, axis in self.axes]
        loops = [Range("j", self.times), *(Range(f"k{n}", a.kernel) for n, a in self.axes), Range("lane", lanes)]
        steps = [prod(kernel[number + 1 :]) * self.lanes for number in range(len(kernel))]
        used = [counter if size > 1 else "0" for counter, size in zip(counters, kernel, strict=True)]
        ones = ["j" if self.times > 1 else "0", *used, "lane" if lanes > 1 else "0"]
        place = index_c([self.taps * self.lanes, *steps, 1], ones)
        channel = index_c([self.times, self.times, 1], ["g", ones[-1], ones[0]])
        zero = ""
        if self.kind.w_zero:
            number = 2 + self.kind.x_zero
            zero = self.term(number, index_c([static(self.call.ins[number].strides[0])], [_loose(channel)]))
        at = index_c([static(self.w.strides[0]), *(axis.w for _, axis in self.axes)], [_loose(channel), *used])
        return _nested(loops, [f"weights[{place}] = ({self.number}){self.term(1, at, zero)};"])

    def term(self, number: int, place: str, zero: str = "") -> str:
        of = {2: 0, 2 + self.kind.x_zero: 1}.get(number, number) if number >= 2 else number
        return term_c(self.call.ins[of].buffer.dtype, self.names[number], place, self.total, zero)

    def copied(self, lanes: int) -> list[str]:
        """Rows under the windows of a block; around what lies in the image, zeros stay."""
        axis = self.axes[0][1]
        x, between = self.x, self.axes[1:] if self.of_channels else self.axes[1:-1]
        ranges = [(n, a, max(0, a.pad), min(self.reach(a, a.out), a.size + a.pad)) for n, a in between]
        loops = [Range(f"u{n}", end - first, str(first), str(end)) for n, _, first, end in ranges]
        names = [loop.counter if loop in _kept(loops) else "0" for loop in loops]
        fixed, starts = ["n" if x.shape[0] != 1 else "0", "g", "row"], sum(-a.pad * a.x for _, a, *_ in ranges)
        steps = [static(x.strides[0]), static(x.strides[1]), axis.x, *(a.x for _, a, *_ in ranges)]
        zero = self.term(2, "0") if self.kind.x_zero else ""

        def moved(count: int, to: int, step: int, start: int) -> list[str]:
            found: list[str] = []
            for begin, many in covering_pieces(count, count):
                source = index_c([*steps, step], [*fixed, *names, "lane"], starts + start + begin * step)
                place = index_c([*self.steps[: len(names) + 1], 1], ["r", *names, "lane"], to + begin)
                found += each_lane(many, [f"plane[{place}] = ({self.number}){self.term(0, source, zero)};"])
            return found

        lines: list[str] = []
        if self.of_channels:
            lines = moved(lanes, 0, static(x.strides[1]), 0)
        else:
            last = self.axes[-1][1]
            for phase in range(last.stride):
                first = -(-max(0, last.pad - phase) // last.stride)
                end = -(-(min(self.reach(last, last.out), last.size + last.pad) - phase) // last.stride)
                start = (first * last.stride + phase - last.pad) * last.x
                if end > first:
                    lines += moved(end - first, phase * self.phase + first, last.stride * last.x, start)
        row = self.steps[0]
        copy = _nested(loops, lines)
        copies = self.reach(axis, self.rows)
        head = Range("r", copies).header
        at = f"const mcc_index row = {index_c([axis.stride, 1], ['b', 'r'], -axis.pad)};"
        if axis.always_inside and axis.out % self.rows == 0:
            return [head, at, *copy, "}"]
        none = f"for (mcc_index i = 0; i < {row}; ++i) plane[{index_c([row, 1], ['r', 'i'])}] = 0;"
        return [head, at, f"if (row >= 0 && row < {axis.size}) {{", *copy, "} else {", none, "}", "}"]

    def sums(self, lanes: int) -> list[str]:
        """What the windows of a row of lanes add up to: taps along the last axes are unrolled."""
        axes, count = list(self.axes), 1
        while axes and count * axes[-1][1].kernel <= UNROLLED:
            count *= axes.pop()[1].kernel
        unrolled, kernel = self.axes[len(axes) :], [axis.kernel for _, axis in self.axes]
        width = lanes if self.of_channels else self.along
        steps = [prod(kernel[number + 1 :]) * self.lanes for number in range(len(kernel))]
        phased = not self.of_channels and axes and axes[-1] is self.axes[-1]
        loops = [Range(f"k{n}", a.kernel) for n, a in axes if a.kernel > 1]
        names = [f"k{n}" if (n, a) in axes and a.kernel > 1 else "0" for n, a in self.axes]
        first = "p" + str(self.axes[0][0])
        positions = [f"p{n}" if a.out > 1 else "0" for n, a in self.axes[1 : len(self.axes) - (not self.of_channels)]]
        along = [a.stride * step for (_, a), step in zip(self.axes, self.steps, strict=False)]
        down = [a.dilation * step for (_, a), step in zip(self.axes, self.steps, strict=False)]
        places: list[str | Code] = [_loose(f"{first} - b"), *positions]
        looped, extra = names, ""
        if phased:  # the tap of a loop chooses its phase
            last = self.axes[-1][1]
            looped = [*names[:-1], "0"]
            of_tap = index_c([last.dilation], [names[-1]])
            extra = f"({of_tap}) % {last.stride} * {self.phase} + ({of_tap}) / {last.stride}"
        base = index_c([*along[: len(places)], *down], [*places, *looped])
        base = f"{base} + {extra}" if extra else base
        weight = index_c([self.taps * self.lanes, *steps], ["j" if self.times > 1 else "0", *names])
        terms = []
        for taps in product(*(range(axis.kernel) for _, axis in unrolled)):
            place, weight_at = 0, 0
            for position, ((_, axis), tap) in enumerate(zip(unrolled, taps, strict=True), len(axes)):
                weight_at += steps[position] * tap
                if not self.of_channels and position == len(self.axes) - 1:
                    place += tap * axis.dilation % axis.stride * self.phase + tap * axis.dilation // axis.stride
                else:
                    place += down[position] * tap
            terms.append((place, weight_at))
        lines = [
            f"const {self.number} *const from = plane + {base};",
            f"const {self.number} *const factors = weights + {weight};",
        ]
        for begin, many in lane_pieces(width) if loops else covering_pieces(width, width):
            body = [f"{self.number} total = {f'line[{_at(begin)}]' if loops else '0'};"]
            for at, w in terms:
                factor = f"factors[{_at(w + begin)}]" if self.of_channels else f"factors[{w}]"
                body.append(f"total += from[{_at(at + begin)}] * {factor};")
            lines += each_lane(many, [*body, f"line[{_at(begin)}] = total;"])
        cleared = [f"for (mcc_index lane = 0; lane < {width}; ++lane) line[lane] = 0;"] if loops else []
        return [*cleared, *_nested(loops, lines)] if loops else lines

    def results(self, lanes: int) -> list[str]:
        ends = without_branches(self.kind.epilogue or operand(0, self.total))
        names = ["n" if self.x.shape[0] != 1 else "0", "g", "j" if self.times > 1 else "0"]
        spatial = [f"p{n}" if a.out > 1 else "0" for n, a in self.axes]
        width, lines = lanes if self.of_channels else self.along, list[str]()

        def at(view: Any, y: Sequence[int], lane: str) -> str:
            channel = static(view.strides[1])
            counters: list[str | Code] = [*names, *(spatial if self.of_channels else spatial[:-1]), _loose(lane)]
            step = channel * self.times if self.of_channels else y[-1]
            steps = [static(view.strides[0]), channel * self.times, channel, *(y if self.of_channels else y[:-1]), step]
            return index_c(steps, counters)

        for begin, many in lane_pieces(width):
            lane = _at(begin)
            loads = [
                load_c(view.buffer.dtype, name, at(view, [a.extras[number] for _, a in self.axes], lane))
                for number, (view, name) in enumerate(
                    zip(self.call.ins[self.kind.fixed :], self.names[self.kind.fixed :], strict=True)
                )
            ]
            made, value = to_statements(ends, ["total", *loads], local="v")
            total = f"const {self.total.compute_c} total = ({self.total.compute_c})line[{lane}];"
            store = store_c(self.y.buffer.dtype, "y", at(self.y, [a.y for _, a in self.axes], lane), value)
            lines += each_lane(many, [total, *made, store], cuts(ends))
        return lines


def _at(begin: int) -> str:
    return f"lane + {begin}" if begin else "lane"


def _loose(text: str) -> Code:
    return Code(text, loose=" " in text)


def _kept(loops: Sequence[Range]) -> list[Range]:
    return [loop for loop in loops if loop.extent != 1 or loop.begin != "0"]


def _nested(loops: Sequence[Range], lines: Sequence[str]) -> list[str]:
    around = _kept(loops)
    return [*(loop.header for loop in around), *lines, *["}"] * len(around)]


def planes(channels: int, height: int, width: int) -> Case:
    found = _narrow("", i16, i8, {}, (2, channels, height, width + SHORTEST))
    return replace(found, name=f"{channels}_{height}_{width}")


def _narrow(
    name: str,
    x: DType,
    w: DType,
    permute: Mapping[int, tuple[int, ...]],
    shape: Shape = (2, 21, 6, 23),
) -> Case:
    """With zero points; sums are cut off at the ends of the result's type."""
    ends = apply("max", apply("min", operand(0, i32), literal(x.high, i32)), literal(x.low, i32))
    channels = static(shape[1])
    kind = replace(PLAIN, group=channels, epilogue=cast(ends, x), x_zero=True, w_zero=True)
    kernel, zeros = TensorType(w, (channels, 1, 3, 3)), (TensorType(x, ()), TensorType(w, (channels,)))
    types = (TensorType(x, shape), kernel, *zeros)
    out = TensorType(x, kind.out_shape(shape, kernel.shape))
    ranges = {number: (float(type.dtype.low), float(type.dtype.high)) for number, type in enumerate(types)}
    return Case(name, kind, types, (out,), permute, ranges=ranges, constant=frozenset({1, 3}))


def _case(name: str, kind: Conv, x: Shape, window: tuple[int, ...] = (3, 3), times: int = 1, **more: Any) -> Case:
    """Sums of integers wrap around."""
    dtype, w = kind.accumulator, (x[1] * times, 1, *window)
    kind = replace(kind, group=static(x[1]))
    span = 2.0 if dtype.is_float else float(min(dtype.high, 2**31 - 1))
    ends = (max(-span, dtype.low), span)
    return Case.of_one_type(name, kind, (x, w), kind.out_shape(x, w), dtype, ranges={0: ends, 1: ends}, **more)
