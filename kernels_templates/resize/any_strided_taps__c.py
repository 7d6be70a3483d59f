"""resize in portable C: for every element, the taps of each resized axis, written out where there are few, else in a
nest of loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f16, f32, f64, i32, u8
from mccompile.base.marked import named, summed
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, memory_order, nest
from mccompile.codegen.moves import along
from mccompile.codegen.traffic import AROUND, functions_called, has_traffic
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.ir import Index, apply, cast, index, operand, walk
from mccompile.expr.scalar_c import cast_c, literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.resize import Resize

WRITTEN_OUT = 8  # taps of an element, at most
EACH = 7  # instructions of a tap: its place, its factor, the element, the sum, the loop


class ResizeTaps(Kernel):
    kind = Resize

    def cases(self) -> Sequence[Case]:
        def case(
            name: str, kind: Resize, x: TensorType, sizes: tuple[int, ...], *extra: TensorType, **options: Any
        ) -> Case:
            shape = list(x.shape)
            tables: list[TensorType] = []
            ranges = {}
            for axis, size, taps in zip(kind.axes, sizes, kind.taps, strict=True):
                ranges[1 + len(tables)] = (0.0, static(shape[axis]) - 1.0)
                tables += [TensorType(i32, (size, taps)), TensorType(kind.accumulator, (size, taps))]
                shape[axis] = size
            dtype = kind.epilogue.dtype if kind.epilogue else x.dtype
            return Case(name, kind, (x, *tables, *extra), (TensorType(dtype, tuple(shape)),), ranges=ranges, **options)

        image = TensorType(f32, (2, 3, 4, 5))
        last = {0: (0, 2, 3, 1)}
        plus = apply("add", operand(0, f32), operand(1, f32))
        counted = apply("add", operand(0, f32), cast(index(1), f32))
        return [
            case("bilinear", Resize((2, 3), (2, 2), f32), image, (7, 3)),
            case("channels_last", Resize((2, 3), (2, 2), f32), image, (5, 8), permute=last, permute_outs=last),
            case("cubic_1d", Resize((2,), (4,), f64), TensorType(f64, (1, 2, 5)), (9,)),
            case("three_axes", Resize((0, 1, 2), (2, 3, 1), f32), TensorType(f32, (2, 3, 4)), (3, 2, 5)),
            case("u8", Resize((1,), (2,), f32, cast(operand(0, f32), u8)), TensorType(u8, (3, 4)), (6,)),
            case("f16", Resize((0,), (2,), f32, cast(operand(0, f32), f16)), TensorType(f16, (4, 3)), (6,)),
            case("positions", Resize((1,), (2,), f32, counted), image, (6,), permute_outs=last),
            case("of_one", Resize((1,), (2,), f32), TensorType(f32, (3, 1)), (4,)),
            case("epilogue", Resize((1,), (2,), f32, plus), TensorType(f32, (3, 4)), (6,), TensorType(f32, (3, 6))),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        return No(reason) if reason else Needs(rows=frozenset(range(len(call.outs[0].shape))))

    def cost(self, call: Call, target: Target) -> Cost:
        if has_traffic(target):
            each = AROUND / 2 + len(call.ins) + functions_called(call)
            instructions = upper(call.macs) * EACH + upper(call.outs[0].type.count) * each
            return Cost(instructions / target.machine.issue, code=300)
        return Cost(upper(call.macs) * 0.5 * target.machine.element, code=300)

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(self.context(call)["unread"])

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call, self.parameter_names(call)).context()

    def label(self, call: Call) -> str:
        return "resize_" + "x".join(map(str, call.of(Resize).taps))


class _Printer:
    """Works out the loops and the text of every index for one call. Few taps are written out: places and weights of an
    axis are then read once for each of its positions, outside of the loops over other axes."""

    def __init__(self, call: Call, names: tuple[list[str], list[str]]) -> None:
        self.kind, self.rows, (self.y_name,), self.names = call.of(Resize), call.rows, *names
        self.x, self.y, self.extras = call.ins[0], call.outs[0], call.ins[self.kind.fixed :]
        self.tables = _tables(call)
        shape, axes = self.y.shape, self.kind.axes
        self.direct = along(self.x, [-1 if axis in axes else axis for axis in range(len(shape))], shape)
        rows = [along(table, (axis, -1), shape) for axis, *pair in self.tables for table in pair]
        self.whole = (self.y, self.direct, *rows, *self.extras)
        order = self.order()
        indexed = any(isinstance(node, Index) for expr in self.kind.expressions() for node in walk(expr))
        views = [view.permuted(order) for view in self.whole]
        self.loops = nest(views[0].shape, views, keep_axes=indexed)
        self.places = ["row" if axis == call.rows else self.loops.axes[order.index(axis)] for axis in range(len(shape))]
        self.written_out = math.prod(self.kind.taps) <= WRITTEN_OUT
        self.unread: list[str] = []  # tables of positions on axes of one element

    def order(self) -> list[int]:
        """The axes from the outermost loop to the innermost one: as the result lies, or as x does where neighbours in
        that one share places and weights, and neighbours in the result do not."""
        mine, its = ([a for a in memory_order(view) if a != self.rows] for view in (self.y, self.x))
        apart = [bool(order) and order[-1] not in self.kind.axes for order in (mine, its)]
        return its if apart == [False, True] else mine

    def at(self, number: int) -> str:
        if self.rows is None:
            return self.loops.index(number)
        line = ring_row("row", self.whole[number].lines)
        return index_c([self.whole[number].strides[self.rows], 1], [line, self.loops.index(number)])

    def place(self, level: int, tap: str) -> str:
        """How far into x the element of a tap lies along the axis."""
        axis, positions, _ = self.tables[level]
        table = self.names[1 + 2 * level]
        line = f"(mcc_index){table}[{index_c((1, positions.strides[1]), (self.at(2 + 2 * level), tap))}]"
        ring = self.x.lines if axis == self.rows else 0
        step = index_c((self.x.strides[axis],), (f"({line} % {ring})" if ring else line,))
        if step == "0" and table not in self.unread:
            self.unread.append(table)
        return step

    def weight(self, level: int, tap: str) -> str:
        weights = self.tables[level][2]
        return f"{self.names[2 + 2 * level]}[{index_c((1, weights.strides[1]), (self.at(3 + 2 * level), tap))}]"

    def element(self, place: str) -> str:
        return cast_c(load_c(self.x.buffer.dtype, self.names[0], place), self.x.buffer.dtype, self.kind.accumulator)

    def nested_sums(self) -> list[dict[str, Any]]:
        """Per axis what a loop over its taps prints."""
        sums, before = [], self.at(1)
        for level, taps in enumerate(self.kind.taps):
            tap = f"t{level}"
            place = f"{before} + {self.place(level, tap)}".removeprefix("0 + ")
            sums.append(
                {"sum": f"s{level}", "tap": tap, "taps": taps, "offset": f"o{level}", "place": place}
                | {"weight": self.weight(level, tap)}
            )
            before = f"o{level}"
        return sums

    def depth(self, level: int) -> int:
        """The loops outside of which places and weights of the axis do not change."""
        moving = [self.loops.strides[2 + 2 * level], self.loops.strides[3 + 2 * level]]
        return max(
            (number + 1 for number in range(len(self.loops.loops)) if any(s[number] != 0 for s in moving)), default=0
        )

    def read_outside(self) -> list[list[str]]:
        """What is read around all loops, or once per row, and at the beginning of each loop."""
        lines: list[list[str]] = [[] for _ in range(len(self.loops.loops) + 1)]
        for level, taps in enumerate(self.kind.taps):
            for tap in range(taps):
                into, place = lines[self.depth(level)], self.place(level, str(tap))
                if place != "0":
                    into.append(f"const mcc_index a{level}_{tap} = {place};")
                weight = self.weight(level, str(tap))
                into.append(f"const {self.kind.accumulator.compute_c} w{level}_{tap} = {weight};")
        return lines

    def terms(self, level: int, before: str, name: str) -> list[str]:
        """Statements that define `name`: the sum over the taps of an axis, and of those behind it."""
        lines, products = [], []
        for tap in range(self.kind.taps[level]):
            read = self.place(level, str(tap)) != "0"
            place = f"{before} + {named(f'a{level}_{tap}')}".removeprefix("0 + ") if read else before
            inner = f"{name}_{tap}"
            if level + 1 < len(self.tables):
                lines += self.terms(level + 1, place, inner)
            value = named(inner) if level + 1 < len(self.tables) else self.element(place)
            products.append(f"{named(f'w{level}_{tap}')} * {value}")
        return [*lines, f"const {self.kind.accumulator.compute_c} {name} = {summed(products)};"]

    def context(self) -> dict[str, Any]:
        kind = self.kind
        sums = [] if self.written_out else self.nested_sums()
        outside = self.read_outside() if self.written_out else [[] for _ in range(len(self.loops.loops) + 1)]
        written = self.terms(0, self.at(1), "s0") if self.written_out else []
        lines: list[str] = []
        value = "s0"
        if kind.epilogue is not None:
            start = len(self.whole) - len(self.extras)
            names = self.names[kind.fixed :]
            loads = [load_c(v.buffer.dtype, names[i], self.at(start + i)) for i, v in enumerate(self.extras)]
            lines, value = to_statements(kind.epilogue, ["s0", *loads], self.places)
        kept = [] if self.rows in kind.axes else [self.direct]
        return {
            "by_rows": self.rows is not None,
            "rings": [*ring_rows("row", [self.y, *self.extras, *kept]), *outside[0]],
            "before": [] if self.rows is not None else outside[0],
            "loops": list(zip(self.loops.loops, outside[1:], strict=True)),
            "sums": sums,
            "unread": self.unread,
            "type": kind.accumulator.compute_c,
            "zero": literal_c(0, kind.accumulator),
            "element": self.element(f"o{len(self.tables) - 1}"),
            "lines": [*written, *lines],
            "store": store_c(self.y.buffer.dtype, self.y_name, self.at(0), value),
        }


def _tables(call: Call) -> list[tuple[int, Any, Any]]:
    """Per resized axis: its number, the view of positions and that of weights."""
    return [(axis, call.ins[1 + 2 * n], call.ins[2 + 2 * n]) for n, axis in enumerate(call.of(Resize).axes)]
