"""Depthwise convolution in vectors along channels, for operands that lie channels-last: tiles of rows x columns of
results. In volumes, loops over the taps in depth that lie inside go around these.

All other taps are unrolled. Products that would lie left or right of the image do not occur in the tiles at its edges.
Above and below, rows are computed one at a time with only those taps that lie inside, or, where that would be most of
the image, in tiles of their own as well. Weights that are not constant are packed at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import bf16, f16, f32
from mccompile.base.marked import named
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import PADDED_CONV, RELU_OF_SUM, conv_case, sized_conv, with_picture
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.edge_runs import Run, covering, edges_apart, is_inside, middle, tiles_loop
from mccompile.codegen.vector.packed_weights import needs_of_weights, packing
from mccompile.codegen.vector.vector_epilogue import Epilogue, Reference, epilogue_statements
from mccompile.codegen.vector.vector_loops import channels_last_refusal, narrow
from mccompile.codegen.vector.vector_runs import HALF_RUN, longest_run
from mccompile.codegen.vector.vector_tiles import (
    HALF_RELU,
    TileSize,
    best_lanes,
    computed_in,
    convolution_refusal,
    in_halves,
    vector_headers,
    vector_registers,
)
from mccompile.codegen.windows import Axis, any_axes, known
from mccompile.expr.code import Code
from mccompile.expr.ir import apply, literal, operand
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, View, viewed
from mccompile.kernels.work import Units, slowest
from mccompile.kinds.conv import Conv

NOT_CUT, BY_CHANNELS, BY_ROWS = range(3)  # how the work is cut for several workers
OF_OTHERS = 1.1  # what it costs to read channels of all rows, which convolutions over channels have made row by row
BY_ITSELF = 0  # in place of the rows of a tile
MOST_PRODUCTS = 5000  # unrolled in one function
FEW_REGISTERS, FEW_PRODUCT = 8, 2.4  # no room for inputs that taps to come need: cycles of a product
LINES = 60  # of products that stand together


@dataclass(frozen=True)
class Tap:
    w: int
    products: tuple[tuple[int, int], ...]  # point, and how far behind the first of all inputs its own lies
    ends: bool = False  # the run of a sum of 16 bits: see vector_tiles.py


@dataclass(frozen=True)
class Channels:
    """One vector of channels, or a loop over them, in one tile of positions."""

    header: str
    x_at: str  # C of the index of the first input
    w_at: str
    points: int
    taps: tuple[tuple[Tap, ...], ...]  # in runs of about `LINES` products
    totals: bool
    last: int  # lanes that count; 0: all
    epilogue: Epilogue


@dataclass(frozen=True)
class Column:
    header: str
    scope: tuple[str, ...]  # names of the counters around it
    channels: tuple[Channels, ...]


@dataclass(frozen=True)
class Row:
    header: str
    lines: tuple[str, ...]
    taps: tuple[str, ...]  # loops over taps that lie inside the image; without any all of them are unrolled
    scope: tuple[str, ...]
    columns: tuple[Column, ...]


class Depthwise(Kernel):
    kind = Conv
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = PADDED_CONV
        sizes = [(1, 1, 1), (2, 3, 2), (7, 1, 3), (3, 7, 7), (4, 4, 15), (16, 2, 16), (17, 5, 17), (5, 31, 33)]
        cases = [_case(f"3x3_{h}x{w}x{c}", plain, (1, c, h, w), (3, 3)) for h, w, c in sizes]
        cases += [
            _case("strided", replace(plain, strides=(2, 2)), (2, 24, 9, 15), (3, 3)),
            _case("strided_odd_pads", replace(plain, strides=(2, 2), pads=(0, 0, 1, 1)), (1, 19, 8, 8), (3, 3)),
            _case("5x5", replace(plain, pads=(2, 2, 2, 2)), (1, 12, 8, 9), (5, 5)),
            _case("uneven", Conv((2, 1), (1, 2), (3, 0, 1, 2), 1, f32), (1, 6, 9, 10), (4, 3)),
            _case("windows_outside", replace(plain, pads=(4, 4, 4, 4)), (1, 5, 3, 2), (3, 3)),
            _case("no_pads", replace(plain, pads=(0, 0, 0, 0)), (1, 40, 6, 7), (3, 3)),
            _case("one_row_is_left", replace(plain, pads=(0, 0, 0, 0)), (1, 1, 6, 5), (2, 3)),
            _case("1d", Conv((1,), (1,), (1, 1), 1, f32), (1, 20, 37), (3,)),
            _case("3d", Conv((1, 1, 1), (1, 1, 1), (1,) * 6, 1, f32), (2, 20, 4, 5, 9), (3, 3, 3)),
            _case("3d_strided", Conv((2, 1, 2), (1, 2, 1), (2, 0, 1, 0, 0, 1), 1, f32), (1, 9, 5, 6, 7), (3, 2, 3)),
            _case("large_window", replace(plain, pads=(6,) * 4), (1, 17, 20, 19), (13, 13)),
            _case("3d_frames", Conv((2, 1, 1), (1, 1, 1), (1,) * 6, 1, f32), (1, 17, 4, 5, 6), (1, 3, 3)),
        ]
        for dtype in (f16, bf16):
            case = _case(f"weights_{dtype}", plain, (1, 21, 6, 5), (3, 3))
            cases.append(replace(case, ins=(case.ins[0], TensorType(dtype, (21, 1, 3, 3)))))
        for name, repeated in [("bias", (0, 2, 3)), ("residual", ()), ("scalar", (0, 1, 2, 3))]:
            case = _case(f"epilogue_{name}", replace(plain, epilogue=RELU_OF_SUM), (1, 19, 4, 5), (3, 3))
            cases.append(with_picture(case, repeated))
        x, one = operand(0, f32), literal(1, f32)
        silu = apply("div", x, apply("add", one, apply("exp", apply("neg", x))))
        cases.append(in_halves(_case("half", replace(plain, epilogue=HALF_RELU), (1, 19, 6, 9), (3, 3))))
        biased = with_picture(_case("bias", replace(plain, epilogue=RELU_OF_SUM), (2, 19, 4, 5), (3, 3)), (0, 2, 3))
        cases += [replace(case, name=f"run_time_{case.name}", constant=frozenset()) for case in (biased, cases[8])]
        tall = replace(plain, pads=(3, 0, 3, 0), epilogue=HALF_RELU)
        cases.append(in_halves(_case("half_7x7", tall, (1, 9, 5, 8), (7, 7))))
        return [*cases, _case("epilogue_silu", replace(plain, epilogue=silu), (2, 19, 5, 9), (3, 3))]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [depthwise]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, x, w = call.of(Conv), *call.ins[:2]
        if kind.group != x.shape[1] or w.shape[0] != kind.group:
            return No("not depthwise, or with several results per channel")
        packs = computed_in(call) is f32 and w.buffer.constant is None
        reason = "there are more than 3 spatial axes" if len(kind.strides) > 3 else ""
        reason = reason or convolution_refusal(call, target, packs=packs) or channels_last_refusal(call, call.ins[2:])
        if reason:
            return No(reason)
        layout = _Layout(call)
        lanes, high, wide, cut = layout.blocks(target)
        if layout.products(high, wide) > MOST_PRODUCTS:
            return No("the window is too large to unroll")
        needs = needs_of_weights(packs, -(-static(w.shape[0]) // lanes) * lanes * layout.taps)
        few = int(vector_registers(lanes, target) <= FEW_REGISTERS)
        alias, blocks = epilogue_alias(call, kind.fixed), (lanes, high, wide, cut, packs, few)
        return Needs(alias=alias, numeric="ulp", blocks=blocks, **needs)

    def cost(self, call: Call, target: Target) -> Cost:
        layout = _Layout(call)
        lanes, high, columns, _ = layout.blocks(target)
        rows = max(high, 1)
        vectors = -(-static(call.ins[0].shape[1]) // lanes)
        tiles = prod(axis.out for axis in layout.axes) / (rows * columns) * static(call.ins[0].shape[0]) * vectors
        each = 1 if lanes == 16 else FEW_PRODUCT if vector_registers(lanes, target) <= FEW_REGISTERS else 0.6
        cycles = tiles * (layout.taps * rows * columns * each + 20 + 2 * rows * columns)
        return Cost(cycles, code=layout.products(high, columns) * 10)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        if 1 not in constants:
            return {}
        w, lanes = viewed(call.ins[1], constants[1]), call.blocks[0]
        padded = np.zeros((-(-w.shape[0] // lanes) * lanes, prod(w.shape[2:])), w.dtype)
        padded[: w.shape[0]] = w.reshape(w.shape[0], -1)
        return {1: padded.reshape(-1, lanes, padded.shape[1]).transpose(0, 2, 1).reshape(-1)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"depthwise channels in {call.blocks[0]}"}

    def label(self, call: Call) -> str:
        kind, (x, w) = call.of(Conv), call.ins[:2]
        window = "x".join(map(str, w.shape[2:])) + "s" + "x".join(map(str, dict.fromkeys(kind.strides)))
        return f"depthwise_{window}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call, computed_in(call))

    def units(self, call: Call) -> Sequence[int]:
        lanes, high, _, cut, *_ = call.blocks
        return _Layout(call).units(lanes, high, cut)

    def context(self, call: Call) -> Mapping[str, Any]:
        lanes, high, wide, cut, packs, few = call.blocks
        packed = packing(call.ins[1], TileSize(lanes, 1, 1)) if packs else ()
        told = {"packing": packed, "few_registers": few}
        return {**_Layout(call).context(lanes, high, wide, cut, self.parameter_names(call)[1]), **told}


@cache
def _best_tile(
    rows: int, columns: int, row_stride: int, column_stride: int, kernel: tuple[int, int], registers: int
) -> tuple[int, int]:
    """Rows and columns of results per tile: as few loads of x per result as registers allow. Compilers keep inputs that
    several results need in registers as well: room for them is what makes tiles fast, and their code small."""
    room = registers * 9 // 16

    def effort(tile: tuple[int, int]) -> float:
        high, wide = tile
        total = 0.0
        for height, downs in ((high, rows // high), (1, rows % high)):
            for width, acrosses in ((wide, columns // wide), (columns % wide, 1)):
                if height and width and downs and acrosses:
                    loads = ((height - 1) * row_stride + kernel[0]) * ((width - 1) * column_stride + kernel[1])
                    work = max(height * width * prod(kernel), 8 * prod(kernel) ** 0.5)
                    total += downs * acrosses * (work + 0.5 * loads + 12 + 2 * height * width)
        return total

    candidates = [
        (high, wide)
        for high in range(1, min(rows, 4) + 1)
        for wide in range(1, min(columns, 14) + 1)
        if high * wide <= room
    ]
    return min(candidates, key=lambda tile: (effort(tile), tile))


class _Layout:
    """Loops and C of indices for one call. Counters: n batch, p0 rows, p1 columns, c channels, k0 taps of a column."""

    def __init__(self, call: Call) -> None:
        self.kind, self.call, self.dtype = call.of(Conv), call, computed_in(call)
        self.x, self.w, self.y = call.ins[0], call.ins[1], call.outs[0]
        self.extras = call.ins[2:]
        kind, kernel = self.kind, self.w.type.static_shape[2:]
        found = known(any_axes(self.y, self.x, (), self.extras, kernel, kind.strides, kind.dilations, kind.pads))
        single = Axis(1, 1, 1, 1, 1, 0, 0, 0, 0, (0,) * len(self.extras))
        self.axes = [*[single] * (3 - len(found)), *found]
        self.depth, self.rows, self.columns = self.axes
        self.channels = static(self.x.shape[1])
        self.batch = static(self.x.shape[0])
        around = ("d", "first2", "end2", "const float *packed")
        self.scope = (*(("n",) if self.batch != 1 else ()), *around)  # what lies around all rows

    @property
    def taps(self) -> int:
        return self.depth.kernel * self.rows.kernel * self.columns.kernel

    @property
    def at_depth(self) -> str:
        """C of the counter along the depth."""
        return "d" if self.depth.out != 1 else "0"

    @property
    def deep(self) -> bool:
        """Is there a loop over taps in depth?"""
        return self.depth.kernel > 1 or not self.depth.always_inside

    def outer(self) -> list[str]:
        """C of the loops around rows, the last with what lies inside of the volume in depth."""
        loops = [Range("n", self.batch), Range("d", self.depth.out)]
        found = [loop.header for loop in loops if loop.extent != 1]
        if self.deep and not self.depth.always_inside:
            lines = self.ends(2, self.depth, self.at_depth)
            found.append("\n".join(["{", *lines]))
        return found

    @staticmethod
    def ends(number: int, axis: Axis, position: str) -> list[str]:
        at = f"at{number}"
        return [
            f"const mcc_index {at} = {axis.origin(position)};",
            f"const mcc_index first{number} = {axis.first_tap(named(at))};",
            f"const mcc_index end{number} = {axis.end_tap(named(at))};",
        ]

    def blocks(self, target: Target) -> tuple[int, int, int, int]:
        """Lanes, rows and columns, and how the work is cut."""
        lanes = best_lanes(self.channels, target, self.dtype)
        rows, columns = self.rows, self.columns
        kernel = (rows.kernel, columns.kernel)
        registers = vector_registers(lanes, target)
        first, end = middle(columns)
        high, wide = _best_tile(rows.out, end - first, rows.stride, columns.stride, kernel, registers)
        if self.products(high, wide) > MOST_PRODUCTS:
            high, wide = BY_ITSELF, _best_tile(1, end - first, rows.stride, columns.stride, kernel, registers)[1]
        if self.call.workers == 1:
            return lanes, high, wide, NOT_CUT
        by_rows, by_channels = (slowest(self.units(lanes, high, c), self.call.workers) for c in (BY_ROWS, BY_CHANNELS))
        return lanes, high, wide, BY_ROWS if by_rows < by_channels * OF_OTHERS else BY_CHANNELS

    def units(self, lanes: int, high: int, cut: int) -> tuple[int, ...]:
        """What workers share: vectors of channels, or tiles of rows."""
        if cut == BY_CHANNELS:
            return (1,) * -(-self.channels // lanes)
        return tuple(run.count for run in self.row_runs(high) for _ in range(run.tiles))

    def row_runs(self, high: int) -> list[Run]:
        """Rows inside the image in tiles; those at its edges one by one, or in tiles if they are many. Those of windows
        that are too large to write out each by itself."""
        if high == BY_ITSELF:
            return [Run(0, 1, self.rows.out, True, True)]
        first, end = self.rows.interior
        tiles = (end - first) // high
        if tiles * high * 2 <= self.rows.out and self.rows.out <= 3 * high:
            return covering(self.rows, high)
        runs = [Run(0, 1, first, True, True)] if first else []
        if tiles:
            runs.append(Run(first, high, tiles, False))
        rest = first + tiles * high
        return [*runs, Run(rest, 1, self.rows.out - rest, True, True)] if rest < self.rows.out else runs

    def products(self, high: int, wide: int) -> int:
        """How many are unrolled."""
        columns = sum(run.count for run in edges_apart(self.columns, wide))
        height = sum(1 if run.bounded else run.count * self.rows.kernel for run in self.row_runs(high))
        return columns * height * self.columns.kernel

    def context(self, lanes: int, high: int, wide: int, cut: int, names: list[str]) -> dict[str, Any]:
        self.lanes, self.names, self.cut = lanes, names, cut
        units = Units() if cut == BY_ROWS else None
        stored, number = self.w.buffer.dtype.storage_c, self.dtype.storage_c
        vector, total = f"mcc_{self.dtype}x{lanes}", f"mcc_total_{self.dtype}x{lanes}"
        pointers = [f"const {stored} *wp", f"const {number} *xp", f"{vector} *acc", f"{total} *t", f"{vector} zero"]
        return {
            "outer": self.outer(),
            "batch": self.scope,
            "rows": [self.row(run, wide, units) for run in self.row_runs(high)],
            "taps": self.taps,
            "stored": stored,
            "narrow": narrow(self.w.buffer.dtype, self.dtype),
            "number": number,
            "vector": vector,
            "pointers": pointers,
            "of": f"{self.dtype}x{lanes}",
            "zero": "0.0f" if self.dtype is f32 else "0u",
        }

    def row(self, run: Run, wide: int, units: Units | None) -> Row:
        position, header = tiles_loop("p0", run)
        if units is not None:
            position, header = "p0", units.loop("p0", run.first, run.count, run.tiles, run.count)
        lines, taps = list[str](), list[str]()
        if self.deep:
            inside = () if self.depth.always_inside else (named("first2"), named("end2"))
            taps.append(Range("k2", self.depth.kernel, *inside).header)
        if run.bounded:
            lines = self.ends(0, self.rows, position)
            taps.append(Range("k0", self.rows.kernel, named("first0"), named("end0")).header)
        scope = (*self.scope, "p0", "first0", "end0")
        columns = tuple(self.column(run, position, across, scope) for across in edges_apart(self.columns, wide))
        return Row(header, tuple(lines), tuple(taps), scope, columns)

    def column(self, down: Run, row: str, across: Run, scope: tuple[str, ...]) -> Column:
        position, header = tiles_loop("p1", across)
        whole, found = self.channels // self.lanes * self.lanes, []
        units = Units() if self.cut == BY_CHANNELS else None
        if whole:
            loop = Range("c", whole, step=self.lanes).header
            one = loop if whole == self.lanes else f"MCC_VEC_ROLLED {loop}"
            if units is not None:
                one = units.loop("c", 0, self.lanes, whole // self.lanes, 1)
            found.append(self.part(one, down, across, row, position, 0))
        if self.channels > whole:
            one = f"{{\nconst mcc_index c = {whole};"
            if units is not None:
                one = units.loop("c", whole, self.lanes, 1, 1)
            found.append(self.part(one, down, across, row, position, self.channels - whole))
        return Column(header, (*scope, "p1"), tuple(found))

    def part(self, header: str, down: Run, across: Run, row: str, column: str, last: int) -> Channels:
        points = down.count * across.count

        def reference(view: View, name: str, steps: Sequence[int]) -> Reference:
            lane = 1 if name == "y" else min(static(view.strides[1]), 1) if view.shape[1] != 1 else 0
            index = self.place(view, [self.at_depth, row, column], steps, "c" if lane else "0")
            return Reference(name, index, steps[2], lane, steps[1], across.count, view.buffer.dtype)

        epilogue = epilogue_statements(
            self.kind.epilogue,
            self.lanes,
            points,
            1,
            last or self.lanes,
            reference(self.y, "y", [axis.y for axis in self.axes]),
            [
                reference(view, name, [axis.extras[number] for axis in self.axes])
                for number, (view, name) in enumerate(zip(self.extras, self.names[2:], strict=True))
            ],
            self.dtype,
            sums=True,
            long=True,
        )
        at = [axis.place(p) for axis, p in zip(self.axes, (self.at_depth, row, column), strict=True)]
        x_at = self.place(self.x, at, [axis.x for axis in self.axes], "c")
        totals = longest_run(self.taps, self.dtype) > 0
        taps = self.written(down, across)
        first = min((offset for tap in taps for _, offset in tap.products), default=0)
        products = [tuple((point, offset - first) for point, offset in tap.products) for tap in taps]
        taps = [replace(tap, products=each) for tap, each in zip(taps, products, strict=True)]
        row_tap, deep_tap = "k0" if down.bounded else "0", "k2" if self.deep else "0"
        steps = [axis.dilation * axis.x for axis in self.axes[:2]]
        x_at = index_c([1, *steps], [x_at, deep_tap, row_tap], first)
        row_w = self.columns.kernel * self.lanes
        w_at = index_c([self.taps, self.rows.kernel * row_w, row_w], ["c", deep_tap, row_tap])
        each = max(LINES // points, 1)
        runs = tuple(tuple(taps[first : first + each]) for first in range(0, len(taps), each))
        return Channels(header, x_at, w_at, points, runs, totals, last, epilogue)

    def place(self, view: View, counters: Sequence[str | Code], strides: Sequence[int], channel: str) -> str:
        return index_c([static(view.strides[0]), 1, *strides], ["n" if self.batch != 1 else "0", channel, *counters])

    def written(self, down: Run, across: Run) -> list[Tap]:
        found: list[Tap] = []
        wide = self.columns.kernel
        together = max(HALF_RUN // wide, 1) if longest_run(self.taps, self.dtype) else 0  # rows of a run
        for tap0 in range(1 if down.bounded else self.rows.kernel):
            for tap1 in range(wide):
                products = []
                for point in range(down.count * across.count):
                    y, x = divmod(point, across.count)
                    if is_inside(self.rows, down, y, tap0) and is_inside(self.columns, across, x, tap1):
                        products.append((point, self.x_offset(y, x, tap0, tap1)))
                if products:
                    found.append(Tap((tap0 * wide + tap1) * self.lanes, tuple(products)))
            if together and found and ((tap0 + 1) % together == 0 or tap0 == self.rows.kernel - 1 or down.bounded):
                found[-1] = replace(found[-1], ends=True)
        return found

    def x_offset(self, y: int, x: int, tap0: int, tap1: int) -> int:
        rows, columns = self.rows, self.columns
        down, across = y * rows.stride + tap0 * rows.dilation, x * columns.stride + tap1 * columns.dilation
        return down * rows.x + across * columns.x


def depthwise(channels: int, height: int, width: int) -> Case:
    kind, rows = replace(PADDED_CONV, group=channels), min(height, 3)  # more are long to compile
    return sized_conv(kind, (1, channels, rows, width), (channels, 1, 3, 3))


def _case(name: str, kind: Conv, x: tuple[int, ...], kernel: tuple[int, ...]) -> Case:
    return conv_case(name, replace(kind, group=x[1]), x, (x[1], 1, *kernel))
