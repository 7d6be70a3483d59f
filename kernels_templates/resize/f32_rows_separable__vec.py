"""resize in vectors, one axis after the other: rows of x are added up to one row of sums, whose elements are then added
up to results.

The innermost resized axis is that of the rows; all others are done first, in vectors along whole rows, whatever lies
inside of them (channels, or nothing in a planar picture). Along the rows vectors lie on what is inside; where that is
less than a vector, elements are computed one by one, and only the epilogue is in vectors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32, i32
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM, with_picture
from mccompile.codegen.loops import Nest, index_c, nest
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.vector_loops import SHORTEST, Chunk, chunks
from mccompile.codegen.vector.vector_tiles import best_lanes, lanes_of, vector_headers, vector_refusal
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.ir import operand
from mccompile.expr.vector_c import refusals, to_vector_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, View, static_views
from mccompile.kinds.resize import Resize

MOST_TAPS = 36  # rows that are added up to one
BLOCK = 4


@dataclass(frozen=True)
class Part:
    """A loop over vectors, and what is done with each."""

    header: str
    lines: tuple[str, ...]


class Separable(Kernel):
    kind = Resize

    def cases(self) -> Sequence[Case]:
        linear, cubic = Resize((2, 3), (2, 2), f32), Resize((2, 3), (4, 4), f32)
        cases = [_case(f"channels_{c}", linear, (2, c, 4, 5), (7, 3)) for c in (1, 2, 3, 5, 15, 16, 17, 33, 70)]
        cases += [
            _case("cubic", cubic, (1, 19, 5, 6), (7, 11)),
            _case("planar", linear, (2, 3, 4, 17), (9, 33), last=False),
            _case("planar_cubic", cubic, (1, 2, 5, 9), (3, 21), last=False),
            _case("planar_columns", Resize((3,), (2,), f32), (2, 3, 4, 7), (15,), last=False),
            _case("planar_rows", Resize((2,), (3,), f32), (2, 3, 4, 21), (9,), last=False),
            _case("rows", Resize((2,), (2,), f32), (1, 5, 6, 4), (11,)),
            _case("columns", Resize((3,), (2,), f32), (1, 21, 6, 4), (11,)),
            _case("1d", Resize((2,), (2,), f32), (2, 9, 12), (31,)),
            _case("3d", Resize((2, 3, 4), (2, 2, 2), f32), (1, 6, 3, 4, 5), (5, 3, 8)),
            _case("3d_planar", Resize((2, 3, 4), (2, 2, 3), f32), (1, 2, 3, 4, 5), (5, 3, 18), last=False),
            _case("planar_doubled", linear, (1, 1, 160, 320), (320, 640), last=False),
            _case("from_one", linear, (1, 6, 1, 1), (3, 5)),
            _case("to_one", linear, (1, 6, 4, 5), (1, 1)),
            _case("batch", Resize((0, 2, 3), (2, 2, 2), f32), (2, 6, 4, 5), (3, 2, 6)),
        ]
        for name, channels, last, repeated in [
            ("bias", 19, True, (0, 2, 3)),
            ("few_channels", 3, True, (0, 2, 3)),
            ("planar_bias", 3, False, (0, 2, 3)),
            ("planar_residual", 3, False, ()),
            ("residual", 19, True, ()),
            ("other_layout", 6, True, ()),
        ]:
            kind = replace(linear, epilogue=RELU_OF_SUM)
            case = _case(f"epilogue_{name}", kind, (1, channels, 4, 5), (7, 18), last=last)
            extra = len(case.ins)
            permute = dict(case.permute) | ({extra: (0, 2, 3, 1)} if last and name != "other_layout" else {})
            cases.append(replace(case, ins=(*case.ins, case.outs[0]), permute=permute, repeated={extra: repeated}))
        return cases

    def sized_cases(self) -> Sequence[SizedCase]:
        return [resize, resize_planar]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Resize)
        tables = range(1, kind.fixed)
        reason = vector_refusal(target) or static_views(call) or refusals(kind.expressions())
        if reason:
            return No(reason)
        if any(view.buffer.dtype is not f32 for view in (call.ins[0], *call.ins[kind.fixed :], *call.outs)):
            return No("only for 32-bit floats")
        if any(0 in view.shape for view in (*call.ins, *call.outs)):
            return No("there is nothing to compute")
        if any(call.ins[table].strides[1] != 1 and call.ins[table].shape[1] != 1 for table in tables):
            return No("taps do not lie side by side in the tables")
        layout = _Layout(call, self.parameter_names(call)[1])
        if layout.refusal:
            return No(layout.refusal)
        alias = epilogue_alias(call, kind.fixed)
        blocks = (best_lanes(layout.run, target), lanes_of(target))
        scratch = layout.floats * 4
        rows = frozenset(axis for axis in layout.around if call.outs[0].shape[axis] != 1)
        return Needs(alias=alias, numeric="ulp", blocks=blocks, scratch=scratch, scratch_align=64, rows=rows)

    def cost(self, call: Call, target: Target) -> Cost:
        layout, wide = _Layout(call, self.parameter_names(call)[1]), lanes_of(target)
        lanes = best_lanes(layout.run, target)
        down = -(-layout.width * layout.run // wide) * (layout.products + 2) if layout.others else 0
        if layout.flat:
            across = layout.out * layout.run * (layout.taps + 4.0 / layout.block) + layout.made / wide * 4
        else:
            across = layout.out * (2 * layout.taps + -(-layout.run // lanes) * (layout.taps + 2.0))
        rows = prod(loop.extent for loop in layout.outer)
        return Cost(rows * (down + across + 20), code=600 + 30 * (layout.products + layout.taps))

    def label(self, call: Call) -> str:
        return "resize_" + "x".join(map(str, call.of(Resize).taps)) + "_rows"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def unpassed(self, call: Call) -> frozenset[str]:
        """An axis of one element of x has one position."""
        names, x = self.parameter_names(call)[1], call.ins[0]
        layout = _Layout(call, names)
        still = [axis for axis in layout.others if x.strides[axis] == 0]
        return frozenset(names[layout.tables(axis)[0]] for axis in still)

    def units(self, call: Call) -> Sequence[int]:
        """Positions along the longest of the loops around rows, or those rows of the result."""
        if call.rows is not None:
            return super().units(call)
        outer = _Layout(call, self.parameter_names(call)[1]).outer
        return (1,) * max((loop.extent for loop in outer), default=0)

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.parameter_names(call)[1]).context(self.parameter_names(call)[0][0])


class _Layout:
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
        self.step = self.run if self.others else static(self.x.strides[self.axis])  # from position to position
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
            return "what lies inside of the resized axes is no row of elements side by side in x and the result"
        if self.products > MOST_TAPS or self.taps > MOST_TAPS:
            return "too many elements are added up to write them out"
        if not self.flat and self.run == 1:
            return "results of a row do not lie side by side, or operands of the epilogue differ in layout"
        if self.width == 1 and not self.others:
            return "each result is of one element"
        if self.others and not self.together and self.run < SHORTEST:
            return "rows of x do not lie side by side"
        return ""

    @property
    def together(self) -> bool:
        """Are rows of x without gaps?"""
        return self.width == 1 or self.x.strides[self.axis] == self.run

    @property
    def summed(self) -> int:
        """Floats of a row of sums, which begins on a boundary for what follows."""
        return -(-self.width * self.run // 16) * 16 if self.others else 0

    @property
    def made(self) -> int:
        """Floats of a row that waits for the epilogue."""
        return self.out * self.run if self.flat and self.kind.epilogue is not None else 0

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
        if self.others:
            found["rows"] = [self.summed_row(line, wide) for line in range(lines)]
        sources = [f"row + {line * self.summed}" if line else "row" for line in range(lines)]
        if not self.others:
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
            yield f"const float *const x{number} = x + {place};"
            factor = " * ".join(f"r{axis}_{tap}" for axis, tap in pairs)
            yield f"const mcc_f32x{wide} d{number} = mcc_set_f32x{wide}({factor});"

    def sums(self, wide: int, line: int) -> tuple[list[str], list[Part]]:
        """Loops around vectors where rows have gaps, and one row of sums in vectors."""
        if self.together:
            around, extent, x, row = [], self.width * self.run, "i", "i"
        else:
            step = static(self.x.strides[self.axis])
            around, extent = [Range("q", self.width).header], self.run
            x, row = f"q * {step} + i", f"q * {self.run} + i"
        row += f" + {line * self.summed}" if line else ""
        parts = []
        for chunk in chunks("i", extent, wide):
            lines = self.added(chunk, wide, [(f"d{n}", f"x{n}", x) for n in range(self.products)])
            parts.append(Part(chunk.header, (*lines, chunk.store(wide, "row", row, "sum"))))
        return around, parts

    @staticmethod
    def added(chunk: Chunk, lanes: int, terms: Sequence[tuple[str, str, str]]) -> list[str]:
        """`sum`, of factors and of what lies at an index behind a pointer."""
        lines = []
        for number, (factor, pointer, index) in enumerate(terms):
            value = chunk.load(lanes, pointer, index, 1)
            if number == 0:
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
        parts = []
        for chunk in chunks("i", self.out * self.run, wide):
            loads = [chunk.load(wide, "made", f"i + {line * self.out * self.run}" if line else "i", 1)]
            for view, name, steps in zip(self.extras, self.names[self.kind.fixed :], self.row.strides[1:], strict=True):
                step = static(steps[-1]) if steps else 0
                index = index_c([1, step], [self.at(view, self.around, line), "i"])
                loads.append(chunk.load(wide, name, index, step))
            parts.append(self.stored(chunk, wide, loads, y, index_c([1, 1], [self.y_at(line), "i"])))
        return parts

    def results(self, y: str, lanes: int) -> list[Part]:
        """Those of one position in vectors."""
        parts = []
        for chunk in chunks("c", self.run, lanes):
            lines = self.added(chunk, lanes, [(f"f{tap}", f"s{tap}", "c") for tap in range(self.taps)])
            loads = ["sum"]
            extras = zip(self.extras, self.names[self.kind.fixed :], self.inside.strides[2:], strict=True)
            for view, name, steps in extras:
                step = static(steps[-1]) if steps else 0
                steps = view.strides[self.axis], step
                index = index_c([1, *steps], [self.at(view, self.around, 0), "p", "c"])
                loads.append(chunk.load(lanes, name, index, step))
            place = index_c([1, self.y.strides[self.axis], 1], [self.y_at(0), "p", "c"])
            part = self.stored(chunk, lanes, loads, y, place)
            parts.append(replace(part, lines=(*lines, *part.lines)))
        return parts

    def stored(self, chunk: Chunk, lanes: int, loads: list[str], y: str, index: str) -> Part:
        lines, value = to_vector_statements(self.kind.epilogue or operand(0, f32), loads, lanes)
        return Part(chunk.header, (*lines, chunk.store(lanes, y, index, value)))


def resize(channels: int, width: int, wanted: int) -> Case:
    return with_picture(_higher(channels, width, wanted, last=True))


def resize_planar(channels: int, width: int, wanted: int) -> Case:
    case = _higher(channels, width, wanted, last=False)
    return replace(case, ins=(*case.ins, *case.outs))


def _higher(channels: int, width: int, wanted: int, last: bool) -> Case:
    """Cubic along the rows, linear along the columns; the height is multiplied by one and a half."""
    kind = Resize((2, 3), (2, 4), f32, RELU_OF_SUM)
    return _case(f"{channels}_{width}_{wanted}", kind, (1, channels, 2, width), (3, wanted), last)


def _case(name: str, kind: Resize, x: tuple[int, ...], sizes: tuple[int, ...], last: bool = True) -> Case:
    shape, ranges = list(x), {}
    tables: list[TensorType] = []
    for axis, size, taps in zip(kind.axes, sizes, kind.taps, strict=True):
        ranges[1 + len(tables)] = (0.0, x[axis] - 1.0)
        tables += [TensorType(i32, (size, taps)), TensorType(f32, (size, taps))]
        shape[axis] = size
    order = {0: (0, *range(2, len(x)), 1)} if last else {}
    out = TensorType(f32, tuple(shape))
    return Case(name, kind, (TensorType(f32, x), *tables), (out,), permute=order, permute_outs=order, ranges=ranges)
