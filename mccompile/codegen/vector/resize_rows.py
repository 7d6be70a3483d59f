"""Loops and C of a resize of rows: rows of x are added up to one row of sums, whose elements are then added up to
results.

Floats are in vectors all the way. Other types become floats as rows are added up, in loops over lanes (lanes.py), and
an epilogue that vectors cannot compute goes in such loops over what is added up.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

from ...base.dims import static
from ...base.dtypes import DType, f32
from ...base.records import dataclass
from ...expr.ir import Index, operand, walk
from ...expr.scalar_c import cast_c, load_c, store_c, to_statements
from ...expr.vector_c import NARROW, refusals, to_vector_statements
from ...kinds.resize import Resize
from ...program.ir import Call, View
from ..lanes import LANES, TYPES, cuts, each_lane, lane_pieces, without_branches
from ..loops import Nest, index_c, nest
from ..tiles import Range
from ..windows import ring_row, ring_rows
from .vector_loops import SHORTEST, Chunk, chunks

MOST_TAPS = 36  # rows that are added up to one
BLOCK = 4
KNOWN = (*TYPES, *NARROW)


@dataclass(frozen=True)
class Part:
    """A loop over vectors, and what is done with each."""

    header: str
    lines: tuple[str, ...]


class ResizeRows:
    """Loops and C of indices for one call. Counters: i0.. the axes around rows, p along the result's row, i and c
    vectors along what is added up and inside of a position."""

    def __init__(self, call: Call, names: Sequence[str]) -> None:
        self.call, self.kind, self.names = call, call.of(Resize), names
        self.x, self.y, self.extras = call.ins[0], call.outs[0], call.ins[self.kind.fixed :]
        shape, strides = self.y.type.static_shape, self.y.strides
        order = sorted(range(len(shape)), key=lambda axis: (shape[axis] != 1, -abs(static(strides[axis]))))
        place = max(order.index(axis) for axis in self.kind.axes)
        self.axis, self.around, self.inner = order[place], order[:place], order[place + 1 :]
        self.others = [axis for axis in self.around if axis in self.kind.axes]
        self.width, self.out = static(self.x.shape[self.axis]), shape[self.axis]
        self.taps = self.kind.taps[self.kind.axes.index(self.axis)]
        self.run = prod(shape[axis] for axis in self.inner)
        self.products = prod(self.kind.taps[self.kind.axes.index(axis)] for axis in self.others)
        self.stored = self.x.buffer.dtype
        self.adds = bool(self.others) or self.stored is not f32  # are rows of x added up to rows of floats?
        self.step = self.run if self.adds else static(self.x.strides[self.axis])  # from position to position
        dtypes = [view.buffer.dtype for view in (*self.extras, self.y)]
        known = all(dtype in (f32, *NARROW) for dtype in dtypes)
        self.in_lanes = not known or bool(refusals(self.kind.expressions(), f32, NARROW))  # the epilogue
        self.outer = [self._around(axis, shape[axis]) for axis in self.around if shape[axis] > 1]

    def _around(self, axis: int, extent: int) -> Range:
        loop = Range(f"i{axis}", extent)
        return replace(loop, begin="begin", end="end") if axis == self.call.rows else loop

    @cached_property
    def inside(self) -> Nest:
        """What lies inside of a position, in the result, x and the operands of the epilogue."""
        return nest([self.y.shape[axis] for axis in self.inner], self._seen((self.y, self.x, *self.extras), self.inner))

    @cached_property
    def row(self) -> Nest:
        """A row of results."""
        axes = [self.axis, *self.inner]
        return nest([self.y.shape[axis] for axis in axes], self._seen((self.y, *self.extras), axes))

    @staticmethod
    def _seen(views: Sequence[View], axes: Sequence[int]) -> list[View]:
        return [
            replace(v, shape=tuple(v.shape[a] for a in axes), strides=tuple(v.strides[a] for a in axes)) for v in views
        ]

    @cached_property
    def flat(self) -> bool:
        """Are elements computed one by one, and rows finished as a whole?"""
        return (
            self.run < SHORTEST and len(self.row.loops) <= 1 and all(s[-1:] in ((), (1,)) for s in self.row.strides[:1])
        )

    @property
    def refusal(self) -> str:
        if len(self.inside.loops) > 1 or any(steps[-1:] not in ((), (1,)) for steps in self.inside.strides[:2]):
            return "axes inside the resized ones are not contiguous in x and the result"
        if self.products > MOST_TAPS or self.taps > MOST_TAPS:
            return "the sum has too many elements to unroll"
        if not self.flat and self.run == 1:
            return "results of a row are not contiguous, or operands of the epilogue differ in layout"
        if self.kind.accumulator is not f32 or any(view.buffer.dtype not in KNOWN for view in self.views):
            return "only for sums of floats of 32 bits"
        if any(isinstance(node, Index) for expr in self.kind.expressions() for node in walk(expr)):
            return "the epilogue needs positions"
        if self.width == 1 and not self.adds:
            return "each result is of one element"
        if self.adds and not self.together and self.run < SHORTEST:
            return "rows of x are not contiguous"
        return ""

    @property
    def views(self) -> tuple[View, ...]:
        return (self.x, *self.extras, self.y)

    @property
    def loops_over_lanes(self) -> bool:
        """Is something left to the compiler of the C?"""
        return self.in_lanes or self.stored not in (f32, *NARROW)

    @property
    def together(self) -> bool:
        """Are rows of x without gaps?"""
        return self.width == 1 or self.x.strides[self.axis] == self.run

    @property
    def summed(self) -> int:
        """Floats of a row of sums, which begins on a boundary for what follows."""
        return -(-self.width * self.run // 16) * 16 if self.adds else 0

    @property
    def made(self) -> int:
        """Floats of a row, or of a position, that wait for the epilogue."""
        if self.flat:
            return self.out * self.run if self.kind.epilogue is not None else 0
        return self.run if self.in_lanes else 0

    @property
    def floats(self) -> int:
        return self.block * (self.summed + self.made)

    def counter(self, axis: int, line: int = 0) -> str:
        """C of the position along an axis, `line` positions further along that of the block."""
        name = f"i{axis}" if static(self.y.shape[axis]) > 1 else "0"
        return f"({name} + {line})" if line and name == self.outer[-1].counter else name

    @property
    def block(self) -> int:
        """Rows that are computed together where elements are computed one by one: the tables are read once for all."""
        together = self.flat and self.outer and self.outer[-1].extent >= BLOCK and self.call.rows is None
        return BLOCK if together else 1

    def at(self, view: View, axes: Sequence[int], line: int) -> str:
        """C of the index of an element of a view."""
        counters = [self.counter(axis, line) for axis in axes]
        if self.call.rows is not None and self.call.rows in axes:
            counters[axes.index(self.call.rows)] = ring_row(self.counter(self.call.rows, line), view.lines)
        return index_c([view.strides[axis] for axis in axes], counters)

    def tables(self, axis: int) -> tuple[int, int]:
        """The operands that are the tables of an axis."""
        return 1 + 2 * self.kind.axes.index(axis), 2 + 2 * self.kind.axes.index(axis)

    def entry(self, operand: int, counter: str, tap: int) -> str:
        """C that reads a table."""
        return f"{self.names[operand]}[{index_c([self.call.ins[operand].strides[0]], [counter], tap)}]"

    def context(self, y: str) -> dict[str, Any]:
        outer = list(self.outer)
        if self.call.workers > 1 and self.call.rows is None:
            longest = max(range(len(outer)), key=lambda n: (outer[n].extent, -n))
            outer[longest] = replace(outer[longest], begin="begin", end="end")
        workspace = ["float *const row = (float *)(void *)scratch;"] if self.summed else []
        if self.made:
            start = f" + {self.block * self.summed}" if self.summed else ""
            workspace.append(f"float *const made = (float *)(void *)scratch{start};")
        rings = [self.y, *self.extras, *([] if self.call.rows in self.others else [self.x])]
        return {
            "rings": [] if self.call.rows is None else ring_rows(self.counter(self.call.rows), rings),
            "workspace": workspace,
            "outer": outer[:-1] if self.block > 1 else outer,
            "bodies": [self.body(y, 1)] if self.block == 1 else self.blocks(y, outer[-1]),
            "across": Range("p", self.out).header,
        }

    def blocks(self, y: str, along: Range) -> list[dict[str, Any]]:
        """Rows a few at a time, then those that are left over, if there are any."""
        counter, end = along.counter, along.limit
        loop = f"for (; {counter} + {self.block} <= {end}; {counter} += {self.block}) {{"
        first = f"mcc_index {counter} = {along.begin};\n{loop}"
        found = [{**self.body(y, self.block), "header": first}]
        if along.begin != "0" or along.extent % self.block:
            found.append({**self.body(y, 1), "header": f"for (; {counter} < {end}; ++{counter}) {{"})
        return found

    def body(self, y: str, lines: int) -> dict[str, Any]:
        """So many rows of results."""
        lanes, wide = self.call.blocks
        found: dict[str, Any] = {"header": "", "rows": [], "elements": [], "finish": [], "results": []}
        if self.adds:
            found["rows"] = [self.summed_row(line, wide) for line in range(lines)]
        sources = [f"row + {line * self.summed}" if line else "row" for line in range(lines)]
        if not self.adds:
            sources = [f"x + {self.x_at(line)}" for line in range(lines)]
        found["taps"] = list(self.places(sources[0]))
        if not self.flat:
            return {**found, "results": self.results(y, lanes)}
        for line, source in enumerate(sources):
            target = f"made + {line * self.out * self.run}" if self.made else f"{y} + {self.y_at(line)}"
            found["elements"] += self.elements(source, target)
        if self.made:
            found["finish"] = [part for line in range(lines) for part in self.finish(y, wide, line)]
        return found

    def y_at(self, line: int) -> str:
        return self.at(self.y, self.around, line)

    def x_at(self, line: int) -> str:
        return self.at(self.x, [axis for axis in self.around if axis not in self.others], line)

    def summed_row(self, line: int, wide: int) -> dict[str, Any]:
        """Rows of x, and the loops that add them up to one."""
        down, parts = self.sums(wide, line)
        return {"setup": list(self.rows(line)), "down": down, "sums": parts}

    def rows(self, line: int) -> Iterator[str]:
        """Which rows of x are added up, and their factors."""
        taps = {axis: self.kind.taps[self.kind.axes.index(axis)] for axis in self.others}
        for axis, count in taps.items():
            positions, weights = self.tables(axis)
            for tap in range(count):
                place = f"(mcc_index){self.entry(positions, self.counter(axis, line), tap)}"
                if axis == self.call.rows and self.x.lines:
                    place = f"({place} % {self.x.lines})"
                yield f"const mcc_index at{axis}_{tap} = {place} * {static(self.x.strides[axis])};"
                yield f"const float r{axis}_{tap} = {self.entry(weights, self.counter(axis, line), tap)};"
        wide, x_at = self.call.blocks[1], self.x_at(line)
        for number, chosen in enumerate(itertools.product(*(range(count) for count in taps.values()))):
            pairs = list(zip(taps, chosen, strict=True))
            place = " + ".join([*([x_at] if x_at != "0" else []), *(f"at{axis}_{tap}" for axis, tap in pairs)])
            yield f"const {self.stored.storage_c} *const x{number} = x + {place or '0'};"
            factor = " * ".join(f"r{axis}_{tap}" for axis, tap in pairs)
            if not factor:
                continue
            if self.stored in (f32, *NARROW):
                yield f"const mcc_f32x{wide} d{number} = mcc_set_f32x{wide}({factor});"
            else:
                yield f"const float d{number} = {factor};"

    def sums(self, wide: int, line: int) -> tuple[list[str], list[Part]]:
        """Loops around vectors where rows have gaps, and one row of sums in vectors."""
        if self.together:
            around, extent, x, row = [], self.width * self.run, "i", "i"
        else:
            step = static(self.x.strides[self.axis])
            around, extent = [Range("q", self.width).header], self.run
            x, row = f"q * {step} + i", f"q * {self.run} + i"
        row += f" + {line * self.summed}" if line else ""
        if self.stored not in (f32, *NARROW):
            return around, self.sums_of_lanes(extent, x, row)
        parts, terms = [], [(f"d{n}" if self.others else "", f"x{n}", x) for n in range(self.products)]
        for chunk in chunks("i", extent, wide):
            lines = self.added(chunk, wide, terms, self.stored)
            parts.append(Part(chunk.header, (*lines, chunk.store(wide, "row", row, "sum"))))
        return around, parts

    def sums_of_lanes(self, extent: int, x: str, row: str) -> list[Part]:
        """The same of numbers that are not floats."""
        parts = []
        for chunk in chunks("i", extent, LANES):
            lines: list[str] = []
            for begin, many in lane_pieces(chunk.lanes):
                at = f" + {begin} + lane" if begin else " + lane"
                loads = [load_c(self.stored, f"x{n}", x + at) for n in range(self.products)]
                values = [cast_c(load, self.stored, f32) for load in loads]
                terms = [f"d{n} * {value}" if self.others else value for n, value in enumerate(values)]
                lines += each_lane(many, [f"row[{row}{at}] = {' + '.join(terms)};"])
            parts.append(Part(chunk.header, tuple(lines)))
        return parts

    @staticmethod
    def added(chunk: Chunk, lanes: int, terms: Sequence[tuple[str, str, str]], stored: DType = f32) -> list[str]:
        """`sum`, of factors, if there are any, and of what lies at an index behind a pointer."""
        lines = []
        for number, (factor, pointer, index) in enumerate(terms):
            value = chunk.load(lanes, pointer, index, 1, stored)
            if not factor:
                lines.append(f"const mcc_f32x{lanes} sum = {value};")
            elif number == 0:
                lines.append(f"mcc_f32x{lanes} sum = mcc_mul_f32x{lanes}({factor}, {value});")
            else:
                lines.append(f"sum = mcc_fma_f32x{lanes}({factor}, {value}, sum);")
        return lines

    def places(self, source: str) -> Iterator[str]:
        """Where the elements lie that make a result, and their factors."""
        positions, weights = self.tables(self.axis)
        lanes = self.call.blocks[0]
        for tap in range(self.taps):
            place = index_c([self.step], [f"(mcc_index){self.entry(positions, 'p', tap)}"])
            weight = self.entry(weights, "p", tap)
            if self.flat:
                yield f"const mcc_index s{tap} = {place};"
                yield f"const float f{tap} = {weight};"
            else:
                yield f"const float *const s{tap} = {source} + {place};"
                yield f"const mcc_f32x{lanes} f{tap} = mcc_set_f32x{lanes}({weight});"

    def elements(self, source: str, target: str) -> Iterator[str]:
        """Those of one position, one by one."""
        for number in range(self.run):
            more = f" + {number}" if number else ""
            total = " + ".join(f"f{tap} * ({source})[s{tap}{more}]" for tap in range(self.taps))
            yield f"({target})[{index_c([self.run], ['p'], number)}] = {total};"

    def finish(self, y: str, wide: int, line: int) -> list[Part]:
        """The epilogue over a row."""
        if self.in_lanes:
            place = index_c([1, 1], [self.y_at(line), "i"])
            made = f"i + {line * self.out * self.run}" if line else "i"
            extras = []
            for view, steps in zip(self.extras, self.row.strides[1:], strict=True):
                step = static(steps[-1]) if steps else 0
                extras.append((self.at(view, self.around, line), step))
            return self.finished("i", self.out * self.run, made, place, extras)
        parts = []
        for chunk in chunks("i", self.out * self.run, wide):
            loads = [chunk.load(wide, "made", f"i + {line * self.out * self.run}" if line else "i", 1)]
            for view, name, steps in zip(self.extras, self.names[self.kind.fixed :], self.row.strides[1:], strict=True):
                step = static(steps[-1]) if steps else 0
                index = index_c([1, step], [self.at(view, self.around, line), "i"])
                loads.append(chunk.load(wide, name, index, step, view.buffer.dtype))
            parts.append(self.ended(chunk, wide, loads, y, index_c([1, 1], [self.y_at(line), "i"])))
        return parts

    def results(self, y: str, lanes: int) -> list[Part]:
        """Those of one position in vectors."""
        parts = []
        for chunk in chunks("c", self.run, lanes):
            lines = self.added(chunk, lanes, [(f"f{tap}", f"s{tap}", "c") for tap in range(self.taps)])
            if self.in_lanes:
                parts.append(Part(chunk.header, (*lines, chunk.store(lanes, "made", "c", "sum"))))
                continue
            loads = ["sum"]
            extras = zip(self.extras, self.names[self.kind.fixed :], self.inside.strides[2:], strict=True)
            for view, name, steps in extras:
                step = static(steps[-1]) if steps else 0
                steps = view.strides[self.axis], step
                index = index_c([1, *steps], [self.at(view, self.around, 0), "p", "c"])
                loads.append(chunk.load(lanes, name, index, step, view.buffer.dtype))
            place = index_c([1, self.y.strides[self.axis], 1], [self.y_at(0), "p", "c"])
            part = self.ended(chunk, lanes, loads, y, place)
            parts.append(replace(part, lines=(*lines, *part.lines)))
        if not self.in_lanes:
            return parts
        inner = [static(each[-1]) if each else 0 for each in self.inside.strides[2:]]
        places = [f"{self.at(view, self.around, 0)} + p * {static(view.strides[self.axis])}" for view in self.extras]
        place = f"{self.y_at(0)} + p * {static(self.y.strides[self.axis])} + c"
        return [*parts, *self.finished("c", self.run, "c", place, list(zip(places, inner, strict=True)))]

    def finished(self, counter: str, extent: int, made: str, y: str, extras: Sequence[tuple[str, int]]) -> list[Part]:
        """The epilogue over what was made, in loops over lanes. Of each operand: where it begins, its step."""
        names, parts = self.names[self.kind.fixed :], []
        expr = without_branches(self.kind.epilogue or operand(0, f32))
        for chunk in chunks(counter, extent, LANES):
            before, lines = [], list[str]()
            for view, name, (place, step) in zip(self.extras, names, extras, strict=True):
                dtype = view.buffer.dtype
                if not step:
                    before.append(f"const {dtype.compute_c} of_{name} = {load_c(dtype, name, place)};")
            for begin, many in lane_pieces(chunk.lanes):
                at = f" + {begin} + lane" if begin else " + lane"
                loads = [
                    load_c(view.buffer.dtype, name, index_c([1, step], [place, f"({counter}{at})"]))
                    if step
                    else f"of_{name}"
                    for view, name, (place, step) in zip(self.extras, names, extras, strict=True)
                ]
                made_lines, value = to_statements(expr, [f"made[{made}{at}]", *loads], local="v")
                store = store_c(self.y.buffer.dtype, "y", f"{y}{at}", value)
                lines += each_lane(many, [*made_lines, store], cuts(expr))
            parts.append(Part(chunk.header, (*before, *lines)))
        return parts

    def ended(self, chunk: Chunk, lanes: int, loads: list[str], y: str, index: str) -> Part:
        lines, value = to_vector_statements(self.kind.epilogue or operand(0, f32), loads, lanes)
        store = chunk.store(lanes, y, index, value, 1, self.y.buffer.dtype)
        return Part(chunk.header, (*lines, store))
