"""int8 depthwise conv in SIMD dot products along channels: four rows of a column of the image lie beside each other in
a lane, and are multiplied with a column of the window. Machines that add up products one after the other take rows one
by one.

Windows of up to three rows that move by one row are computed for two rows of results at a time, since both find
their rows among the same four.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, u8
from mccompile.base.marked import named, read
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.int8.dot import epilogue_of
from mccompile.codegen.int8.dot_forms import TERMS, Form, form_in, form_of
from mccompile.codegen.int8.dot_tiles import (
    DEPTH,
    NUMBER,
    DotEpilogue,
    Place,
    dot_lanes,
    dot_refusal,
    halves,
    shifted,
    sum_registers,
    zipped,
)
from mccompile.codegen.int8.padded_rows import PaddedRows, steps
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, is_constant
from mccompile.codegen.vector.vector_tiles import TileSize
from mccompile.expr.ir import Apply, Cast, Expr, apply, cast, literal, operand
from mccompile.expr.vector_c import math_headers
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views, viewed
from mccompile.kinds.conv import Conv

MOST_PRODUCTS = 200  # of a tile, each unrolled for four vectors


@dataclass(frozen=True)
class Unit:
    """Channels that are computed together, of which `count` are stored."""

    lanes: int
    vectors: int  # of sums of a point
    first: int
    count: int
    units: int  # how many follow each other

    @property
    def header(self) -> str:
        if self.units == 1:
            return f"{{\nconst mcc_index o = {self.first};"
        return Range("o", self.first + self.units * self.width, str(self.first), step=self.width).header

    @property
    def width(self) -> int:
        """Channels, with those that are not stored."""
        return self.vectors * self.lanes


@dataclass(frozen=True)
class Product:
    """A quad of rows in a column of the window, for all points of a tile."""

    loads: tuple[tuple[str, str], ...]  # names of columns of the picture that are met first, and C of their four rows
    block: int  # of weights
    sums: tuple[tuple[str, str], ...]  # what is added to, and the column


@dataclass(frozen=True)
class Part:
    """Tiles of one number of points."""

    header: str
    sums: tuple[str, ...]
    products: tuple[tuple[Product, ...], ...]  # of each quad
    results: tuple[list[str], ...]  # statements that store them, in pieces that may stand alone
    added: list[str]  # declarations of what a tile hands to those that add products up
    kept: list[str]  # the same of those that store results


class DepthwiseDots(Kernel):
    kind = Conv

    def cases(self) -> Sequence[Case]:
        plain = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32, x_zero=True)
        solid = Conv((1, 1, 1), (1, 1, 1), (1,) * 6, 1, i32, x_zero=True)
        cases = [_case(f"channels_{n}", plain, (1, n, 4, 5)) for n in (1, 3, 16, 31, 32, 33, 64, 72, 100, 144)]
        return [
            *cases,
            *(_case(f"size_{h}x{w}", plain, (1, 24, h, w)) for h, w in ((1, 1), (2, 3), (3, 7), (7, 2), (15, 16))),
            *(_case(f"u8_{n}", plain, (1, n, 5, 4), u8) for n in (9, 64)),
            _case("two_pictures", plain, (2, 36, 5, 3)),
            _case("inside", replace(plain, pads=(0,) * 4), (1, 40, 6, 7)),
            _case("strided", replace(plain, strides=(2, 2), pads=(0, 0, 1, 1)), (1, 40, 8, 9)),
            _case("strided_odd", replace(plain, strides=(2, 1)), (1, 40, 9, 7)),
            _case("dilated", replace(plain, dilations=(2, 2), pads=(2, 2, 2, 2)), (1, 20, 6, 7)),
            _case("no_zero_point", replace(plain, x_zero=False), (1, 20, 4, 4)),
            _case("5x5", replace(plain, pads=(2, 2, 2, 2)), (1, 20, 6, 7), window=(5, 5)),
            _case("2x4", replace(plain, pads=(1, 1, 0, 2)), (1, 33, 6, 7), window=(2, 4)),
            _case("1d", Conv((1,), (1,), (2, 0), 1, i32, x_zero=True), (1, 20, 9), window=(3,)),
            _case("3d", solid, (2, 20, 5, 6, 7), window=(3, 3, 3)),
            _case("3d_inside", replace(solid, pads=(0,) * 6), (1, 33, 5, 4, 6), window=(3, 3, 3)),
            _case(
                "3d_dilated", replace(solid, dilations=(2, 1, 1), strides=(1, 2, 1)), (1, 9, 6, 5, 4), window=(3, 2, 3)
            ),
            _case("3d_frames", replace(solid, strides=(2, 1, 1)), (1, 17, 5, 4, 5), window=(1, 3, 3)),
            replace(_case("planar", plain, (1, 17, 5, 6)), permute={}),
            _case("bounded", plain, (1, 40, 5, 6), bounds=(-9, 90)),
            *(_floats(f"floats_{n}", plain, (1, n, 5, 6), _logistic()) for n in (3, 19, 40, 64, 100)),
            _floats("bytes_of_floats", plain, (1, 40, 5, 6), _quantized(_logistic())),
            _floats("bytes_of_floats_strided", replace(plain, strides=(2, 2)), (2, 70, 5, 6), _quantized(_logistic())),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (x, w), y = call.of(Conv), call.ins[:2], call.outs[0]
        reason = dot_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        if x.buffer.dtype not in (i8, u8) or w.buffer.dtype is not i8 or kind.w_zero:
            return No("operands are not 8-bit integers, or weights have zero points")
        if y.buffer.dtype not in (i8, u8, f32):
            return No("results are neither 8-bit integers nor 32-bit floats")
        if w.shape[:2] != (x.shape[1], 1) or kind.group != x.shape[1]:
            return No("it is not depthwise")
        if len(kind.strides) > 3 or 0 in (*x.shape, *y.shape) or not all(map(is_constant, call.ins[1 : kind.fixed])):
            return No("it has more than 3 spatial axes, a tensor is empty, or weights or zero points are computed")
        layout = _Layout(call, dot_lanes(target), sum_registers(target), form_of(target))
        epilogue = layout.epilogue
        if not epilogue.in_vectors or any(map(epilogue.moves, epilogue.extras)):
            return No(epilogue.refusal or "an operand of the epilogue changes from point to point")
        if layout.products > MOST_PRODUCTS or min(kind.pads) < 0:
            return No("the window is too large to unroll, or pads are negative")
        return Needs(
            rows=frozenset({2}) if len(kind.strides) == 2 else frozenset(),
            constant=frozenset(range(1, kind.fixed)) | epilogue.constants,
            align={1: 4},
            slack={0: layout.rows.slack},
            scratch=layout.rows.ring_bytes,
            blocks=(layout.lanes, layout.registers, 0, shifted(x.buffer.dtype, target), layout.form.number),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        layout = _Layout(call, dot_lanes(target), sum_registers(target), form_of(target))
        tiles = static(call.outs[0].type.count) / (layout.wide * layout.points * layout.at_once)
        cycles = tiles * (layout.products * 6 + 30 * layout.points * layout.at_once)
        return Cost(cycles, code=layout.products * 40)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        layout, kind = _layout(call), call.of(Conv)
        shift = call.blocks[3]
        w = viewed(call.ins[1], constants[1])
        w = w.reshape(w.shape[0], layout.rows.deep.kernel, *layout.rows.kernel)
        zero = int(viewed(call.ins[2], constants[2]).reshape(-1)[0]) if kind.x_zero else 0
        begins = layout.epilogue.begins(constants) - (zero + shift) * w.astype(np.int64).sum((1, 2, 3))
        # [channel][column][quad][row of results][row of the quad]
        lines = np.zeros((*w.shape[:2], layout.rows.rows, w.shape[3], layout.at_once), np.int8)
        for late in range(layout.at_once):
            lines[:, :, late : late + w.shape[2], :, late] = w
        lines = lines.reshape(w.shape[0], -1, *lines.shape[3:]).swapaxes(1, 2)
        rest = layout.quads * layout.depth - layout.rows.lines
        deep = np.pad(lines, [(0, 0), (0, 0), (0, rest), (0, 0)])
        quads = deep.reshape(w.shape[0], w.shape[3] * layout.quads, layout.depth, layout.at_once).swapaxes(2, 3)
        blocks = quads.reshape(w.shape[0], -1, layout.depth)
        tables = layout.epilogue.rows(constants)
        found: list[np.ndarray] = []
        packed: dict[int, list[np.ndarray]] = {index: [] for index in tables}
        for unit in layout.units():
            width = unit.width
            for first in range(unit.first, unit.first + unit.units * width, width):

                def of_unit(values: np.ndarray, first: int = first, unit: Unit = unit) -> np.ndarray:
                    part = values[first : first + unit.count]
                    part = np.pad(part, [(0, unit.width - unit.count)] + [(0, 0)] * (values.ndim - 1))
                    return zipped(part, unit.lanes) if layout.zips else part

                found.append(of_unit(begins).astype(np.int32).view(np.int8))
                found.append(np.ascontiguousarray(of_unit(blocks).swapaxes(0, 1)).reshape(-1))
                for index, row in tables.items():
                    packed[index].append(halves(of_unit(row), unit.lanes))
        return {1: np.concatenate(found), **{index: np.concatenate(parts) for index, parts in packed.items()}}

    def packing(self, call: Call) -> Mapping[int, str]:
        layout = _layout(call)
        bias = "" if layout.epilogue.bias is None else "_bias"
        zipped = "zipped" if layout.zips else "taps"
        weights = f"{zipped}_{layout.lanes}x{layout.at_once}_{call.blocks[3]}{bias}"
        return {1: weights, **dict.fromkeys(layout.epilogue.tables, f"table_{zipped}_{layout.lanes}")}

    def label(self, call: Call) -> str:
        kind, (x, w) = call.of(Conv), call.ins[:2]
        window = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        return f"depthwise_{window}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}"

    def headers(self, call: Call) -> frozenset[str]:
        headers = frozenset(f"mcc_dot{unit.lanes}.h" for unit in _layout(call).units())
        return headers | math_headers(call.kind.expressions())

    def units(self, call: Call) -> Sequence[int]:
        return (1,) * _layout(call).rows.y_space[0]

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        return _layout(call).context(self.parameter_names(call)[1])


class _Layout:
    """Counters: n batch, p0 row of results, o first channel of a unit, p1 first position of a tile in its row."""

    def __init__(self, call: Call, lanes: int, registers: int, form: Form) -> None:
        self.form, self.zips = form, form is not TERMS
        self.depth, self.vectors = (DEPTH, 4) if self.zips else (1, 1)  # rows in a product; sums of a point
        self.call, self.kind, self.lanes, self.registers = call, call.of(Conv), lanes, registers
        self.epilogue = DotEpilogue(call, self.kind.fixed, 1, self.kind.epilogue)
        single = PaddedRows(call, self.kind, 1, 0)
        two = single.strides[0] == 1 and single.dilations[0] == 1 and single.kernel[0] < DEPTH and single.y_space[0] > 1
        self.at_once = 2 if two and self.zips else 1  # rows of results
        self.rows = PaddedRows(call, self.kind, self.at_once, self.wide - 1)
        self.channels, self.width = self.rows.channels, self.rows.y_space[1]

    @property
    def wide(self) -> int:
        """Channels of a unit of the widest vectors."""
        return self.vectors * self.lanes

    @property
    def points(self) -> int:
        """Results of a tile in a row: their sums, and as many columns of the picture, lie in registers."""
        if not self.zips:  # columns and weights are half as wide as sums
            return max(1, min((2 * self.registers - self.rows.kernel[1] - 1) // 3, self.width))
        return max(1, min((self.registers - 1) // (4 * self.at_once + 4), self.width))

    @property
    def quads(self) -> int:
        """Of rows in a window, which are multiplied together."""
        return -(-self.rows.lines // self.depth)

    @property
    def products(self) -> int:
        return self.rows.kernel[1] * self.quads * self.at_once * self.points

    @property
    def bytes(self) -> int:
        """Of weights per channel, with the sums to begin with."""
        return NUMBER + self.depth * self.rows.kernel[1] * self.quads * self.at_once

    def units(self) -> list[Unit]:
        """The widest vectors while they are full, then one as narrow as will do."""
        wide = self.wide
        whole, rest = divmod(self.channels, wide)
        found = [Unit(self.lanes, self.vectors, 0, wide, whole)] if whole else []
        if rest:
            lanes = min(8, self.lanes) if self.zips and rest <= 32 else self.lanes
            found.append(Unit(lanes, self.vectors, whole * wide, rest, 1))
        return found

    def parts(self) -> list[tuple[int, int, int]]:
        """Runs of tiles: first position, points of a tile, end."""
        whole = self.width // self.points * self.points
        found = [(0, self.points, whole)] if whole else []
        return [*found, (whole, self.width - whole, self.width)] if whole < self.width else found

    def context(self, names: list[str]) -> dict[str, Any]:
        units, lines = [], ""
        for unit in self.units():
            extras = [
                Place(name, view, "0" if self.epilogue.stays(view) else "o", 0, static(view.strides[1]))
                for view, name in zip(self.epilogue.extras, names[self.kind.fixed :], strict=True)
            ]
            hoisted = self.epilogue.hoisted(unit.lanes, self.vectors, extras)
            parts = [self.part(run, unit, extras) for run in self.parts()]
            inside = ["o", "const int8_t *wp", *self.epilogue.hoisted_names(unit.lanes, extras)]
            units.append(
                {"unit": unit, "hoisted": hoisted, "parts": parts, "of": f"i32x{unit.lanes}", "inside": inside}
            )
            lines += " ".join((*hoisted, *(line for part in parts for line in itertools.chain(*part.results))))
        used = {"x", "w"} if self.rows.in_place else {"x", "w", "x_zero"}
        return {
            "outer": self.rows.outer,
            "scope": ["n", "d", "p0", self.rows.declared],
            "rows": self.rows.context(),
            "units": units,
            "bytes": self.bytes,
            "type": self.rows.x.buffer.dtype,
            "depth": self.depth,
            "zips": self.zips,
            "taps": "taps" if self.quads > 1 else "",
            "unread": [name for name in names if name not in used and name not in read(lines).names],
        }

    def part(self, run: tuple[int, int, int], unit: Unit, extras: list[Place]) -> Part:
        first, points, end = run
        rows = self.rows
        header = f"{{\nconst mcc_index p1 = {first};"
        if end - first > points:
            header = Range("p1", end, str(first), step=points).header
        stride, dilation = rows.strides[1], rows.dilations[1]
        quads: list[tuple[Product, ...]] = []
        for quad in range(self.quads):
            products, met = [], set()
            for tap in range(rows.kernel[1]):
                loads = []
                for column in (point * stride + tap * dilation for point in range(points)):
                    at = index_c([stride * rows.pixel, 1], ["p1", "o"], column * rows.pixel)
                    numbers = [min(quad * self.depth + i, rows.lines - 1) for i in range(self.depth)]
                    if column not in met:
                        pointers = ", ".join(f"{named('lines')}[{number}] + {at}" for number in numbers)
                        loads.append((f"q{column}_{quad}", pointers))
                    met.add(column)
                for late in range(self.at_once):
                    block = (tap * self.quads + quad) * self.at_once + late
                    both = [(f"a{late}_{p}", f"q{p * stride + tap * dilation}_{quad}") for p in range(points)]
                    products.append(Product(() if late else tuple(loads), block, tuple(both)))
            quads.append(tuple(products))
        sums = tuple(f"a{late}_{point}" for late in range(self.at_once) for point in range(points))
        of = f"i32x{unit.lanes}"
        if self.zips:
            names = [f"{each}_{vector}" for each in sums for vector in range(self.vectors)]
            added = [f"mcc_{of} &{name}" for name in names]
        else:
            names = [f"a{point}_0" for point in range(points)]
            added = [f"mcc_dot_terms_{of} &s{point}" for point in range(points)]
        kept = [f"mcc_{of} {name}" for name in names]
        inside = ["p1", "const int8_t *wq"]
        results = tuple(self.results(points, unit, extras))
        return Part(header, sums, tuple(quads), results, [*inside, *added], [*inside, *kept])

    def results(self, points: int, unit: Unit, extras: list[Place]) -> Iterator[list[str]]:
        """Statements that store what a tile has made."""
        if not self.zips:
            size = TileSize(unit.lanes, points, 1)
            yield from self.epilogue.statements(size, points, 1, unit.count, self.result(0, 0), extras)[1]
            return
        for late in range(self.at_once):
            stored = (
                self.epilogue.four(f"a{late}_{point}", unit.lanes, self.result(late, point), unit.count, extras)
                for point in range(points)
            )
            if late:  # there may be no such row
                yield [f"if ({named('p0')} + {late} < {self.rows.end}) {{", *itertools.chain(*stored), "}"]
            else:
                yield from stored

    def result(self, late: int, point: int) -> Place:
        view: View = self.rows.y
        row, column = steps(view)
        at = f"{named('p0')} + {late}" if late else named("p0")
        line = f"(({at}) % {view.lines})" if view.lines else f"({at})" if late else at
        batch = "n" if self.rows.batch != 1 else "0"
        index = index_c(
            [static(view.strides[0]), self.rows.deep.y, row, column, 1], [batch, "d", line, "p1", "o"], point * column
        )
        return Place("y", view, index, column, 1)


def _layout(call: Call) -> _Layout:
    lanes, registers = call.blocks[:2]
    return _Layout(call, lanes, registers, form_in(call))


def _case(
    name: str,
    kind: Conv,
    x: tuple[int, ...],
    dtype: DType = i8,
    window: tuple[int, ...] = (3, 3),
    bounds: tuple[int, int] | None = None,
) -> Case:
    channels = x[1]
    w = (channels, 1, *window)
    kind = replace(kind, group=channels)
    out = kind.out_shape(x, w)
    epilogue = epilogue_of(dtype, 4, (1, 2, 3))
    if bounds is not None:
        assert isinstance(epilogue, Cast) and isinstance(epilogue.argument, Apply)
        above = apply("max", epilogue.argument.arguments[0], literal(bounds[0], i32))
        epilogue = cast(apply("min", above, literal(bounds[1], i32)), dtype)
    kind = replace(kind, epilogue=epilogue)
    chance, full, ones = np.random.default_rng(channels), [static(size) for size in out], (1,) * len(window)
    per_channel = [
        np.broadcast_to(chance.integers(low, high, (1, channels, *ones)).astype(np.int32), full)
        for low, high in ((-3000, 3000), (1 << 27, 1 << 29), (-400, 400))
    ]
    fixed, last = kind.fixed, (0, *range(2, len(x)), 1)
    return Case(
        name,
        kind,
        (
            TensorType(dtype, x),
            TensorType(i8, w),
            *(TensorType(dtype, ()),) * kind.x_zero,
            *[TensorType(i32, out)] * 3,
        ),
        (TensorType(dtype, out),),
        permute={0: last},
        permute_outs={0: last},
        constant=frozenset(range(1, fixed + 3)),
        ranges={0: (dtype.low, dtype.high), 1: (-128, 127), **({2: (dtype.low, dtype.high)} if kind.x_zero else {})},
        values={fixed + i: array for i, array in enumerate(per_channel)},
        repeated=dict.fromkeys(range(fixed, fixed + 3), (0, *range(2, len(x)))),
    )


def _floats(name: str, kind: Conv, x: tuple[int, ...], epilogue: Expr) -> Case:
    """Sums that become floats, with a scale and a bias per channel."""
    case, fixed, channels = _case(name, kind, x), kind.fixed, x[1]
    assert isinstance(case.kind, Conv)
    chance, full, floats = np.random.default_rng(channels), case.outs[0].static_shape, replace(case.outs[0], dtype=f32)
    tables = (chance.uniform(low, high, (1, channels, 1, 1)) for low, high in ((1e-4, 1e-3), (-1, 1)))
    return replace(
        case,
        kind=replace(case.kind, epilogue=epilogue),
        ins=(*case.ins[:fixed], floats, floats),
        outs=(replace(case.outs[0], dtype=epilogue.dtype),),
        constant=frozenset(range(1, fixed + 2)),
        values={fixed + i: np.broadcast_to(np.float32(table), full) for i, table in enumerate(tables)},
        repeated=dict.fromkeys((fixed, fixed + 1), (0, 2, 3)),
    )


def _logistic() -> Expr:
    number = apply("add", apply("mul", cast(operand(0, i32), f32), operand(1, f32)), operand(2, f32))
    one = literal(1.0, f32)
    return apply("div", one, apply("add", one, apply("exp", apply("neg", number))))


def _quantized(number: Expr) -> Expr:
    rounded = apply("round_even", apply("mul", number, literal(200.0, f32)))
    return cast(apply("max", apply("min", rounded, literal(255.0, f32)), literal(0.0, f32)), u8)
