"""map in vectors where operands lie across the result: square tiles are transposed in registers.

Lanes of the result lie along one axis (I), those of some operands along another one (J). A tile of such an operand is
loaded along J and transposed; where all operands can be loaded along J, everything is computed so, and the tile of the
result is transposed instead, unless vectors along J would be half empty and the expression is long. Two rows that
become every other element of one (channels that are shuffled, pixels that make room for others) are woven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.across import Across
from mccompile.codegen.loops import index_c
from mccompile.codegen.map_label import map_label
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import in_vectors, one_by_one, operations
from mccompile.codegen.vector.vector_loops import Chunk, chunks, ordered_nest
from mccompile.codegen.vector.vector_tiles import lanes_of, vector_headers, vector_refusal
from mccompile.expr.ir import Operand, apply, literal, operand
from mccompile.expr.vector_c import refusals, stages, to_vector_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    SizedCase,
    Target,
    elementwise_alias,
    static_views,
)
from mccompile.kernels.work import Units
from mccompile.kinds.map import Map

OPERANDS, RESULT, WOVEN = range(3)  # what is transposed
SHORTEST = 2
FEW = 4  # elements along J, which fill half of a vector
LONG = 8  # operations of an expression


class TransposedTiles(Kernel):
    kind = Map
    branches = ""

    def cases(self) -> Sequence[Case]:
        x, y = operand(0, f32), operand(1, f32)
        copy, add, relu = Map(x), Map(apply("add", x, y)), Map(apply("max", x, literal(0, f32)))
        sizes = [(4, 4), (2, 8), (8, 3), (7, 15), (16, 16), (17, 31), (33, 5), (8, 64)]
        cases = [_case(f"{m}x{n}", copy, (m, n), {0: (1, 0)}) for m, n in sizes]
        cases += [_case(f"woven_{n}", copy, (3, n, 2), {0: (0, 2, 1)}) for n in (4, 7, 16, 19, 33)]
        cases += [_case(f"add_{m}x{n}", add, (m, n), {0: (1, 0)}, 2) for m, n in sizes]
        both = {0: (1, 0), 1: (1, 0)}
        shape = (2, 5, 9, 7)
        silu = apply("div", x, apply("add", literal(1, f32), apply("exp", apply("neg", x))))
        cases += [_case(f"both_{m}x{n}", add, (m, n), both, 2) for m, n in ((9, 17), (16, 8))]
        return [
            *cases,
            _case("channels_first", relu, shape, {0: (0, 2, 3, 1)}),
            replace(_case("channels_last", relu, shape, {}), permute_outs={0: (0, 2, 3, 1)}),
            replace(_case("bias", add, shape, {0: (0, 2, 3, 1)}, 2), repeated={1: (0, 2, 3)}),
            replace(_case("one_for_all", add, shape, {0: (0, 2, 3, 1)}, 2), repeated={1: (0, 1, 2, 3)}),
            _case("heads", copy, (2, 6, 3, 8), {0: (0, 2, 3, 1)}),
            _case("apart", add, (5, 6, 7), {0: (2, 1, 0), 1: (2, 0, 1)}, 2),
            _case("silu", Map(silu), (13, 9), {0: (1, 0)}),
            _case("in_turns", Map(apply("exp", apply("neg", apply("tanh", x)))), (13, 9), {0: (1, 0)}),
            *(_case(f"few_{m}x{n}", Map(silu), (m, n), {0: (1, 0)}) for m, n in ((3, 19), (4, 16), (2, 7))),
            _case("woven_sum", add, (2, 17, 2), {0: (0, 2, 1), 1: (2, 0, 1)}, 2),
            _case("pixels", relu, (6, 2, 9, 2), {0: (1, 3, 0, 2)}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [transposed]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = vector_refusal(target) or static_views(call) or refusals(call.kind.expressions())
        if reason:
            return No(reason)
        if any(view.buffer.dtype is not f32 for view in (*call.ins, *call.outs)):
            return No("only for 32-bit floats")
        if call.outs[0].type.count == 0:
            return No("the result is empty")
        layout = _layout(call)
        if layout is None:
            return No("no operand is transposed against the result, or its rows are too short")
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i)}
        if layout.is_long:
            return Needs(alias=alias, numeric="ulp", blocks=(min(8, lanes_of(target)),))
        short = min(loop.extent for loop in (layout.i, layout.j) if layout.transposed != WOVEN or loop is layout.j) <= 4
        lanes = 4 if short else min(8, lanes_of(target))
        return Needs(alias=alias, numeric="ulp", blocks=(lanes,))

    def cost(self, call: Call, target: Target) -> Cost:
        # Vectors that are groups of registers take longer to transpose than their elements to move one by one.
        if target.option("register_bytes", target.vector_bytes) < target.vector_bytes:
            return Cost(1.5 * one_by_one(call, target), code=800)
        layout, lanes = _layout(call), call.blocks[0]
        assert layout is not None
        wide = 1 if layout.transposed == WOVEN else -(-layout.i.extent // lanes)
        tiles = prod(layout.nest.loops[number].extent for number in layout.around)
        tiles *= -(-layout.j.extent // lanes) * wide
        across = sum(map(layout.across, range(1, 1 + len(call.ins)))) if layout.transposed == OPERANDS else 1
        vectors = 2 if layout.transposed == WOVEN else lanes
        shuffles = across * vectors * (vectors.bit_length() - 1)
        if layout.is_long:
            vectors = layout.j.extent
        return Cost(in_vectors(call, tiles, vectors, lanes, target, shuffles), code=800)

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        """The outermost loop, or tiles along J."""
        layout = _layout(call)
        assert layout is not None
        if layout.around:
            return (1,) * layout.nest.loops[layout.around[0]].extent
        units = Units()
        chunks(layout.j.counter, layout.j.extent, call.blocks[0], units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        layout = _layout(call)
        assert layout is not None
        return _Printer(call, layout, self.parameter_names(call)).context()

    def label(self, call: Call) -> str:
        return map_label(call, copy="transpose")


@dataclass(frozen=True)
class _Layout(Across):
    transposed: int  # what is
    is_long: bool = False  # are operands transposed since what is computed of a vector takes longer?

    def steps(self, view: int) -> tuple[int, int]:
        """From element to element of a view along I and J."""
        strides = self.nest.strides[view]
        return static(strides[self.at_i]), static(strides[self.at_j])

    def across(self, view: int) -> bool:
        along_i, along_j = self.steps(view)
        return along_i not in (0, 1) and along_j == 1


def _layout(call: Call) -> _Layout | None:
    loops = ordered_nest([*call.outs, *call.ins])
    at_i = len(loops.loops) - 1
    if at_i < 1 or loops.strides[0][at_i] != 1:
        return None
    views = range(1, 1 + len(call.ins))
    for at_j in range(at_i):
        found = _Layout(loops, at_i, at_j, OPERANDS)
        if not any(map(found.across, views)) or min(found.i.extent, found.j.extent) < SHORTEST:
            continue
        if all(found.steps(view)[1] in (0, 1) for view in views):
            if found.j.extent <= FEW < found.i.extent and sum(map(operations, call.kind.expressions())) >= LONG:
                return replace(found, is_long=True)
            woven = found.i.extent == 2 and found.steps(0)[1] == 2
            found = replace(found, transposed=WOVEN if woven else RESULT)
        if max(found.i.extent, found.j.extent) >= 4:
            return found
    return None


class _Printer:
    def __init__(self, call: Call, layout: _Layout, names: tuple[list[str], list[str]]) -> None:
        self.call, self.layout, self.lanes = call, layout, call.blocks[0]
        (self.y,), self.names = names
        self.of = f"f32x{self.lanes}"

    def context(self) -> dict[str, Any]:
        layout = self.layout
        loops = layout.nest.loops
        around = [Range(loops[number].counter, loops[number].extent) for number in layout.around]
        shared = self.call.workers > 1
        units = Units() if shared and not around else None
        if shared and around:
            around[0] = replace(around[0], begin="begin", end="end")
        down = chunks(layout.j.counter, layout.j.extent, self.lanes, units)
        across = chunks(layout.i.counter, layout.i.extent, self.lanes)
        if layout.transposed == WOVEN:
            across = [Chunk("{", 2)]
        tiles = [
            {
                "header": high.header,
                "parts": [{"header": wide.header, "lines": self.tile(high.lanes, wide.lanes)} for wide in across],
            }
            for high in down
        ]
        return {"around": around, "tiles": tiles}

    def place(self, view: int, i: str, j: str) -> str:
        """C of an index `i` and `j` after the first element of the tile."""
        layout = self.layout
        strides = list(layout.nest.strides[view])
        counters = [loop.counter for loop in layout.nest.loops]
        if layout.transposed == WOVEN:
            counters[layout.at_i] = "0"
        along_i, along_j = layout.steps(view)
        return index_c([*strides, along_i, along_j], [*counters, i, j])

    def tile(self, high: int, wide: int) -> list[str]:
        """One of `high` elements along J and `wide` along I."""
        if self.layout.transposed == OPERANDS:
            return self.with_operands_transposed(high, wide)
        chunk = Chunk("", high)
        lines = [f"mcc_{self.of} tile[{max(self.lanes, wide)}];"]
        single = self.layout.transposed == WOVEN or self.is_copy
        for i in range(wide) if single else [0]:
            at = str(i) if single else "column"
            loads = [
                chunk.load(self.lanes, name, self.place(view, at, "0"), self.layout.steps(view)[1])
                for view, name in enumerate(self.names, 1)
            ]
            for expr in [self.expr] if single else stages(self.expr):
                made, value = to_vector_statements(expr, loads, self.lanes)
                body = ["{", *made, f"tile[{at}] = {value};", "}"] if made else [f"tile[{at}] = {value};"]
                lines += body if single else [self.counted("column", wide), *body, "}"]
                loads = [f"tile[{at}]"]
        if self.layout.transposed == WOVEN:
            return [*lines, *self.woven(high)]
        lines += [f"tile[{i}] = mcc_set_{self.of}(0.0f);" for i in range(wide, self.lanes)]
        rows = Chunk("", wide)
        return [
            *lines,
            f"mcc_transpose_{self.of}(tile);",
            *(rows.store(self.lanes, self.y, self.place(0, "0", str(j)), f"tile[{j}]") for j in range(high)),
        ]

    def woven(self, high: int) -> list[str]:
        """Two vectors become every other element of two that follow each other."""
        lines = [f"mcc_weave_{self.of}(tile);"]
        for half in range(2):
            count = min(self.lanes, 2 * high - half * self.lanes)
            if count > 0:
                index = self.place(0, str(half * self.lanes), "0")
                lines.append(Chunk("", count).store(self.lanes, self.y, index, f"tile[{half}]"))
        return lines

    def with_operands_transposed(self, high: int, wide: int) -> list[str]:
        lines, loads = [], []
        along = Chunk("", wide)
        row = "row" if not self.is_copy else ""
        for view, name in enumerate(self.names, 1):
            if not self.layout.across(view):
                loads.append(along.load(self.lanes, name, self.place(view, "0", row), self.layout.steps(view)[0]))
                continue
            tile = f"{name}_tile"
            lines.append(f"mcc_{self.of} {tile}[{self.lanes}];")
            lines += [
                f"{tile}[{i}] = {Chunk('', high).load(self.lanes, name, self.place(view, str(i), '0'), 1)};"
                for i in range(wide)
            ]
            lines += [f"{tile}[{i}] = mcc_set_{self.of}(0.0f);" for i in range(wide, self.lanes)]
            lines.append(f"mcc_transpose_{self.of}({tile});")
            loads.append(f"{tile}[row]")
        made, value = to_vector_statements(self.expr, loads, self.lanes)
        store = along.store(self.lanes, self.y, self.place(0, "0", "row"), value)
        return [*lines, self.counted("row", high), *made, store, "}"]

    @staticmethod
    def counted(counter: str, many: int) -> str:
        return f"for (mcc_index {counter} = 0; {counter} < {many}; ++{counter}) {{"

    @property
    def expr(self) -> Any:
        return self.call.kind.expressions()[0]

    @property
    def is_copy(self) -> bool:
        return isinstance(self.expr, Operand)


def transposed(first: int, second: int, last: int) -> Case:
    """An operand lies across the result."""
    kind = Map(apply("add", operand(0, f32), operand(1, f32)))
    return _case(f"{first}_{second}_{last}", kind, (first, second, last), {1: (0, 2, 1)}, 2)


def _case(
    name: str, kind: Map, shape: tuple[int, ...], permute: Mapping[int, tuple[int, ...]], operands: int = 1
) -> Case:
    t = TensorType(f32, shape)
    return Case(name, kind, (t,) * operands, (t,), permute=permute)
