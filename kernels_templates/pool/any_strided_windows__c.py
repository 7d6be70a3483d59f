"""pool in portable C: a tile of neighbouring positions, or of neighbouring channels, in named scalars.

The elements of a window that lie inside the image are known before its loops begin: once per row along all axes but
one; along that one, positions whose windows lie inside are taken several at a time, those at the edges one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import Dim, bounds, upper
from mccompile.base.dtypes import DType, bf16, f16, f32, f64, i8, i32, u8
from mccompile.base.records import dataclass
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, magnitude
from mccompile.codegen.tiles import Range, Tile, Tiled, cut_sum, epilogue_alias, term_c
from mccompile.codegen.windows import Sliding, any_axes, positions, ring_row, windows_name
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, supports_types
from mccompile.kinds.pool import Pool


@dataclass(frozen=True)
class Body(Tiled):
    x_in: str
    loads: tuple[tuple[str, str], ...]  # name, value
    lines: tuple[str, ...]
    store: str


class Windows(Kernel):
    kind = Pool
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = Pool("max", (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), (), f32)
        mean = replace(plain, algorithm="average")
        nhwc = {0: (0, 2, 3, 1)}
        cases = [
            _case("max", plain, (2, 3, 16, 17), (8, 9)),
            _case("max_channels_last", plain, (1, 8, 9, 10), (5, 5), permute=nhwc),
            _case("max_dilated", replace(plain, dilations=(2, 3), strides=(1, 1)), (1, 3, 9, 12), (7, 8)),
            _case("max_overhanging", replace(plain, pads=(0, 0, 0, 0)), (1, 5, 8, 8), (4, 4)),
            _case("max_1d", Pool("max", (4,), (3,), (1,), (0, 1), (), f32), (2, 3, 25), (8,)),
            _case(
                "max_3d", Pool("max", (2, 3, 2), (1, 2, 2), (1, 2, 1), (1,) * 6, (), f32), (1, 2, 4, 7, 6), (5, 3, 4)
            ),
            _case("mean", mean, (1, 3, 9, 16), (5, 8)),
            _case("mean_channels_last", mean, (1, 7, 9, 10), (5, 5), permute=nhwc),
            _case("mean_overhanging", replace(mean, pads=(0, 0, 0, 0)), (1, 5, 8, 8), (4, 4)),
            _case("mean_with_pad", replace(mean, count_include_pad=True), (1, 3, 10, 10), (6, 6)),
            _case("mean_global", replace(mean, kernel=(40, 30), strides=(1, 1), pads=(0,) * 4), (2, 6, 40, 30), (1, 1)),
            _case("norm_1", replace(mean, algorithm="lp", p=1), (1, 3, 9, 16), (5, 8)),
            _case("norm_2", replace(mean, algorithm="lp"), (1, 3, 9, 16), (5, 8)),
            _case("norm_3", replace(mean, algorithm="lp", p=3), (1, 4, 9, 16), (5, 8), permute=nhwc),
            _case("epilogue", replace(mean, epilogue=RELU_OF_SUM), (1, 3, 9, 16), (5, 8), extras=1),
            _case("f64", replace(mean, accumulator=f64), (1, 3, 9, 16), (5, 8), dtype=f64),
            _case("sum", replace(plain, algorithm="sum"), (1, 3, 9, 16), (5, 8)),
            _sum_case("sum_i8", replace(plain, algorithm="sum", accumulator=i32), (1, 4, 9, 16), (5, 8), i8),
            _sum_case("sum_u8", replace(plain, algorithm="sum", accumulator=i32), (1, 3, 9, 16), (5, 8), u8),
            _case("i8", replace(plain, accumulator=i8), (1, 3, 9, 16), (5, 8), dtype=i8),
            _case("u8", replace(plain, accumulator=u8), (1, 3, 9, 16), (5, 8), dtype=u8),
        ]
        more = apply("add", operand(0, i32), literal(77, i32))
        row = Pool("sum", (1, 4), (1, 1), (1, 1), (0,) * 4, (), i32, epilogue=more)
        cases.append(replace(_sum_case("sum_pairs", row, (1, 2, 3, 19), (3, 16), i8), permute=nhwc))
        for dtype in (f16, bf16):
            rounded = cast(operand(0, f32), dtype)
            cases.append(_case(f"max_{dtype}", replace(plain, epilogue=rounded), (1, 3, 9, 16), (5, 8), dtype=dtype))
            cases.append(_case(f"mean_{dtype}", replace(mean, epilogue=rounded), (1, 3, 9, 16), (5, 8), dtype=dtype))
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if reason:
            return No(reason)
        rows = frozenset({2}) if len(call.of(Pool).kernel) > 1 and call.outs[0].shape[2] != 1 else frozenset()
        return Needs(alias=epilogue_alias(call, call.of(Pool).fixed), rows=rows, symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        terms = upper(call.outs[0].type.count)
        for size in call.of(Pool).kernel:
            terms *= size
        return Cost(terms * 0.5 * target.machine.element, code=400)

    def label(self, call: Call) -> str:
        kind, x = call.of(Pool), call.ins[0]
        return f"{kind.algorithm}_pool_{windows_name(kind.kernel, kind.strides, x)}"

    def varies(self, call: Call, target: Target) -> Sequence[str]:
        assert isinstance(call.kind, Pool)
        largest = ["numbers are compared with the largest"] if call.kind.algorithm == "max" else []
        return [*largest, *super().varies(call, target)]

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call, self.parameter_names(call)[1]).context()


class _Printer:
    """Works out the loops and the text of every index for one call. Counters: n batch, c channel, p0.. positions, k0..
    elements of the window; at0.. are the places of the first elements."""

    def __init__(self, call: Call, names: list[str]) -> None:
        self.kind, self.names = call.of(Pool), names
        self.x, self.y = call.ins[0], call.outs[0]
        self.extras = call.ins[1:]
        self.by_rows = call.rows is not None  # then the first axis is never the one along which tiles lie
        kind = self.kind
        window = (kind.kernel, kind.strides, kind.dilations, kind.pads)
        self.axes = any_axes(self.y, self.x, (), self.extras, *window, join=False)
        # Where the padded image ends along each axis: that far elements count, with count_include_pad.
        self.pads_after = kind.pads[len(kind.kernel) :]
        wide = [i for i, a in enumerate(self.axes) if upper(a.out) >= 4 and (i or not self.by_rows)]
        self.point = (wide or [len(self.axes) - 1])[-1]  # the positions of a tile lie along this axis
        self.channels = self.x.shape[1]
        self.channels_last = magnitude(self.x.strides[1]) < magnitude(self.axes[self.point].x)

    def context(self) -> dict[str, Any]:
        kind, axis = self.kind, self.axes[self.point]
        first, end = axis.interior
        tile = self.tile(end - first)
        positions = [self.row(number) for number in range(len(self.axes)) if number != self.point]
        channel = Range.over("c", self.channels, step=tile.lanes)
        needs_single = not axis.is_static or axis.out != end - first or bool((end - first) % tile.points)
        return {
            "outer": [Range.over("n", self.x.shape[0]), *([] if self.channels_last else [channel])],
            "rows": positions,
            "points": self.row(self.point),
            "inner": [channel] if self.channels_last else [],
            "inside": axis.inside(self.point, tile.points),
            "wide": self.body(tile, clamped=False) if end - first >= tile.points else None,
            "single": self.body(Tile(1, tile.lanes), clamped=True) if needs_single else None,
            "algorithm": kind.algorithm,
            "start": literal_c(kind.accumulator.low, kind.accumulator) if kind.algorithm == "max" else "0",
            "sum_type": kind.accumulator.compute_c,
            "sum_name": kind.accumulator.name,
            "exact": not kind.accumulator.is_float,
            "f": "f" if kind.accumulator.bits <= 32 else "",
            "p": kind.p,
            "root": literal_c(1 / kind.p, kind.accumulator) if kind.algorithm == "lp" else "",
            "p_literal": literal_c(kind.p, kind.accumulator) if kind.algorithm == "lp" else "",
            "x_at": self.at(
                self.x,
                [0 if self.in_ring(n) else a.x for n, a in enumerate(self.axes)],
                [f"at{i}" for i in range(len(self.axes))],
                "0",
            ),
        }

    def tile(self, points: int) -> Tile:
        """Channels side by side where they lie side by side, else positions, else channels after all: several elements
        in flight."""
        even = [n for n in (8, 4, 2, 1) if self.channels % n == 0]
        if self.channels_last:
            return Tile(1, even[0])
        if points >= 4:
            return Tile(4, 1)
        return Tile(1, next(n for n in even if n <= 4))

    def in_ring(self, number: int) -> bool:
        """Does x lie in a ring along this axis?"""
        return number == 0 and self.x.lines > 0

    def row(self, number: int) -> dict[str, Any]:
        axis, at = self.axes[number], f"at{number}"
        clamped = not axis.always_inside
        used = clamped or self.in_ring(number) or axis.x != 0
        return {
            **positions(axis, number, self.by_rows, self.x, [self.y, *self.extras]),
            "at": f"const mcc_index {at} = {axis.origin(f'p{number}')};" if used else "",
            "first": f"const mcc_index first{number} = {axis.first_tap(at)};" if clamped else "",
            "end": f"const mcc_index end{number} = {axis.end_tap(at)};" if clamped else "",
        }

    def at(self, view: View, steps: Sequence[Dim], counters: Sequence[str], lane: str) -> str:
        batch, channel = view.strides[:2]
        return index_c([batch, channel, channel, *steps], ["n", "c", lane, *counters])

    def body(self, tile: Tile, clamped: bool) -> Body:
        kind = self.kind
        loops = []
        for number, axis in enumerate(self.axes):
            if axis.always_inside or (number == self.point and not clamped):
                loops.append(Range(f"k{number}", axis.kernel))
            else:
                loops.append(Range(f"k{number}", axis.kernel, f"first{number}", f"end{number}"))
            if self.in_ring(number):
                then = f"const mcc_index x_line = x_at + {axis.ring_tap(f'k{number}')};"
                loops[-1] = replace(loops[-1], then=then)
        around, inside = ((), tuple(loops)) if kind.algorithm == "max" else cut_sum(loops, kind.accumulator)
        loads = []
        for lane in range(tile.lanes):
            for point in range(tile.points):
                along = self.axes[self.point].x * self.axes[self.point].stride
                step = lane * self.x.strides[1] + point * along
                index = index_c([1], ["x_in"], step) if step != 0 else "x_in"
                loads.append(
                    (f"x{tile.result(lane, point)}", term_c(self.x.buffer.dtype, "x", index, kind.accumulator))
                )
        lines, store = self.epilogue(tile, clamped)
        steps = [0 if self.in_ring(n) else a.x * a.dilation for n, a in enumerate(self.axes)]
        taps = [f"k{n}" for n in range(len(self.axes))]
        x_in = index_c([1, *steps], ["x_line" if self.in_ring(0) else "x_at", *taps])
        return Body(tile, around, inside, x_in, tuple(loads), tuple(lines), store)

    def epilogue(self, tile: Tile, clamped: bool) -> tuple[list[str], str]:
        """Statements for one result of a tile, at `lane` and `point`."""
        kind = self.kind
        lane = "0" if tile.lanes == 1 else "lane"
        point = "0" if tile.points == 1 else "point"

        def at(view: View, steps: Sequence[Dim]) -> str:
            places = [ring_row(f"p{i}", view.lines if i == 0 else 0) for i in range(len(self.axes))]
            counters = [*places, point]
            return self.at(view, [*steps, steps[self.point]], counters, lane)

        loads = [
            load_c(view.buffer.dtype, name, at(view, [axis.extras[number] for axis in self.axes]))
            for number, (view, name) in enumerate(zip(self.extras, self.names[1:], strict=True))
        ]
        lines, value = to_statements(kind.epilogue or operand(0, kind.accumulator), ["total", *loads], local="v")
        if kind.algorithm == "average":
            counts = [self.count(number, axis, clamped) for number, axis in enumerate(self.axes)]
            c_type = kind.accumulator.compute_c
            lines.insert(0, f"const {c_type} total = sum / ({c_type})({' * '.join(counts)});")
        return lines, store_c(self.y.buffer.dtype, "y", at(self.y, [axis.y for axis in self.axes]), value)

    def count(self, number: int, axis: Sliding[Dim], clamped: bool) -> str:
        """C for how many elements of a window count along an axis."""
        if axis.always_inside or (number == self.point and not clamped):
            return str(axis.kernel)
        if not self.kind.count_include_pad:
            return f"(end{number} - first{number})"
        padded = replace(axis, size=axis.size + self.pads_after[number])
        last = (axis.out - 1) * axis.stride - axis.pad + (axis.kernel - 1) * axis.dilation
        return str(axis.kernel) if bounds(padded.size - last)[0] > 0 else f"({padded.end_tap(f'at{number}')})"


def _case(name: str, kind: Pool, x: Shape, space: Shape, **more: Any) -> Case:
    out = (*x[:2], *space)
    return Case.of_one_type(name, replace(kind, space=space), (x,), out, ranges={0: (-100, 100)}, **more)


def _sum_case(name: str, kind: Pool, x: tuple[int, ...], space: tuple[int, ...], dtype: DType) -> Case:
    out = TensorType(kind.accumulator, (*x[:2], *space))
    return Case(name, replace(kind, space=space), (TensorType(dtype, x),), (out,), ranges={0: (0, 100)})
