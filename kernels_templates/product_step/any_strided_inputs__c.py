"""product_step in portable C: a few inputs at a time. Their part of the weights' gradient is made in the workspace,
then the gradient of x is written for them, which may lie over x, and last their weights are moved, which may lie over
the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import bf16, f16, f32, f64
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Product, Range, Tile, cut_sum, moved, parts, term_c
from mccompile.expr.ir import Expr, apply, cast, literal, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    Target,
    View,
    elementwise_alias,
    static_views,
    supports_types,
)
from mccompile.kinds.product_step import ProductStep

HIGH = WIDE = 4  # of a tile of sums
ROOM = 16  # bytes that workspaces are aligned to

PLAIN = operand(0, f32)
MASKED = apply("select", apply("greater", operand(1, f32), literal(0, f32)), PLAIN, literal(0, f32))
MOVED = apply("sub", operand(1, f32), apply("mul", operand(2, f32), PLAIN))


@dataclass(frozen=True)
class Block:
    """What the template prints for the sums of a tile."""

    outer: str  # opens a loop over positions or outputs, or says where they start
    tile: Tile
    loads: tuple[tuple[str, str], ...]
    products: tuple[Product, ...]
    lines: tuple[str, ...]
    store: str


@dataclass(frozen=True)
class Columns:
    """Some inputs."""

    outer: str
    wide: int
    gradients: tuple[Block, ...]
    handed: tuple[Block, ...]
    lines: tuple[str, ...]
    store: str


class StridedInputs(Kernel):
    kind = ProductStep
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = ProductStep(f32, PLAIN, PLAIN, 0)
        masked = ProductStep(f32, MASKED, MOVED, 1)
        wide = ProductStep(f64, operand(0, f64), operand(0, f64), 0)
        halves = (replace(plain, hand=cast(PLAIN, dtype), move=cast(PLAIN, dtype)) for dtype in (f16, bf16))
        lying = {0: (1, 0), 1: (1, 0), 2: (1, 0)}
        cases = [
            _case("tiles", plain, 8, 4, 12),
            _case("odd", plain, 7, 5, 9),
            _case("one_position", plain, 1, 6, 5),
            _case("one", plain, 1, 1, 1),
            _case("few_inputs", plain, 9, 8, 3),
            _case("long_sums", plain, 1100, 5, 6),
            _case("many_outputs", plain, 3, 600, 5),
            _case("transposed", plain, 6, 7, 10, permute=lying, permute_outs={0: (1, 0), 1: (1, 0)}),
            _case("learns", masked, 10, 6, 9, repeated={5: (0, 1)}),
            _case("f64", wide, 5, 6, 7, dtype=f64),
        ]
        return [*cases, *(_case(kind.hand.dtype.name, kind, 5, 6, 7, dtype=kind.hand.dtype) for kind in halves)]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call) or supports_types(call)
        total = call.of(ProductStep).accumulator
        if reason or not total.is_float or call.outs[0].buffer.dtype.is_packed:
            return No(reason or "sums are not of floats")
        first = 3 + call.of(ProductStep).handed
        handed, moved_ = (1, *range(3, first)), (2, *range(first, len(call.ins)))
        alias = {(0, index): 0 for index in handed if elementwise_alias(call, index, 0)}
        alias |= {(1, index): 0 for index in moved_ if elementwise_alias(call, index, 1)}
        outputs, inputs = map(static, call.outs[1].shape)
        return Needs(alias=alias, scratch=max(total.nbytes(outputs * min(inputs, WIDE)), 1), scratch_align=ROOM)

    def cost(self, call: Call, target: Target) -> Cost:
        machine, results = target.machine, sum(static(view.type.count) for view in call.outs)
        return Cost(static(call.macs) * machine.mac + results * machine.element, code=1200)

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call, *self.parameter_names(call)).context()

    def label(self, call: Call) -> str:
        return "_".join(["product_step", "x".join(map(str, (*call.ins[0].shape, call.ins[1].shape[1])))])


class _Printer:
    """Counters: p position, o output, i input."""

    def __init__(self, call: Call, results: list[str], names: list[str]) -> None:
        self.call, self.kind, self.results, self.names = call, call.of(ProductStep), results, names
        self.total = self.kind.accumulator
        self.dy, self.x, self.w = call.ins[:3]
        self.positions, self.outputs = map(static, self.dy.shape)
        self.inputs = static(self.x.shape[1])

    def context(self) -> dict[str, Any]:
        over_positions = cut_sum([Range.over("p", self.positions)], self.total)
        over_outputs = cut_sum([Range.over("o", self.outputs)], self.total)
        return {
            "sum_type": self.total.compute_c,
            "columns": [self.columns(outer, wide) for outer, wide in parts("i", self.inputs, WIDE)],
            "over_positions": over_positions,
            "over_outputs": over_outputs,
            "all_outputs": Range.over("o", self.outputs).header,
            "dy_in": index_c(self.dy.strides, ["p", "o"]),
            "x_in": index_c(self.x.strides, ["p", "i"]),
            "w_in": index_c(self.w.strides, ["o", "i"]),
        }

    def columns(self, outer: str, wide: int) -> Columns:
        first = 3 + self.kind.handed
        lines, store = self.stored(1, range(first, len(self.call.ins)), self.kind.move, Tile(1, wide), "o")
        gradients = (self.block(opened, Tile(high, wide), 1) for opened, high in parts("o", self.outputs, HIGH))
        handed = (self.block(opened, Tile(high, wide), 0) for opened, high in parts("p", self.positions, HIGH))
        return Columns(outer, wide, tuple(gradients), tuple(handed), tuple(lines), store)

    def block(self, outer: str, tile: Tile, result: int) -> Block:
        """Sums of dy by x for outputs, or of dy by w for positions."""
        name, other = ("x", self.x) if result else ("w", self.w)
        step = self.dy.strides[1 if result else 0]
        loads = [(f"dy_{n}", self.term("dy", self.dy, n * step)) for n in range(tile.points)]
        loads += [(f"{name}_{n}", self.term(name, other, n * other.strides[1])) for n in range(tile.lanes)]
        products = [
            Product(tile.result(lane, point), f"dy_{point}", f"{name}_{lane}")
            for lane in range(tile.lanes)
            for point in range(tile.points)
        ]
        lines, store = (
            list[str](),
            f"sums[(o + {'point' if tile.points > 1 else '0'}) * {tile.lanes} + {_lane(tile)}] = total;",
        )
        if not result:
            lines, store = self.stored(0, range(3, 3 + self.kind.handed), self.kind.hand, tile, "p")
        return Block(outer, tile, tuple(loads), tuple(products), tuple(lines), store)

    def term(self, name: str, view: View, step: Any) -> str:
        return term_c(view.buffer.dtype, name, moved(f"{name}_in", step), self.total)

    def stored(self, result: int, numbers: range, expr: Expr, tile: Tile, row: str) -> tuple[list[str], str]:
        """Statements for one result of a tile, at `lane` and `point`."""
        counters = [row, "0" if tile.points == 1 else "point", "i", _lane(tile)]

        def at(view: View) -> str:
            down, right = view.strides
            return index_c([down, down, right, right], counters)

        views = [(self.names[number], self.call.ins[number]) for number in numbers]
        loads = [load_c(view.buffer.dtype, name, at(view)) for name, view in views]
        lines, value = to_statements(expr, ["total", *loads], local="v")
        out = self.call.outs[result]
        return lines, store_c(out.buffer.dtype, self.results[result], at(out), value)


def _lane(tile: Tile) -> str:
    return "lane" if tile.lanes > 1 else "0"


def _case(
    name: str, kind: ProductStep, positions: int, outputs: int, inputs: int, dtype: Any = f32, **more: Any
) -> Case:
    dy, x, w = (TensorType(dtype, s) for s in ((positions, outputs), (positions, inputs), (outputs, inputs)))
    moved_by = [w, w] if kind.handed else []
    return Case(name, kind, (dy, x, w, *[x] * kind.handed, *moved_by), (x, w), **more)
