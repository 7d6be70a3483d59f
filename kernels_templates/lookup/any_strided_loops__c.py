"""lookup in portable C: a loop nest over strided operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DType, f32, i8, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, memory_order, nest
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.scalar_c import load_c, store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, static_views
from mccompile.kinds.lookup import Lookup

EACH = 0.5  # of an element of arithmetic, which is loaded, computed with and stored


class StridedLoops(Kernel):
    kind = Lookup

    def cases(self) -> Sequence[Case]:
        return [
            _case("i8", i8, i8, (2, 3, 5)),
            _case("u8", u8, u8, (9,)),
            _case("signed_to_float", i8, f32, (4, 7)),
            _case("turned", u8, i8, (2, 3, 4, 5), permute={0: (0, 2, 3, 1)}),
            _case("scalar", i8, u8, ()),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call, call.ins[1])
        if not reason and (call.ins[1].buffer.dtype.is_packed or call.ins[1].buffer.dtype.kind == "string"):
            reason = f"tables of {call.ins[1].buffer.dtype}"
        if reason:
            return No(reason)
        alias = {(0, 0): 0} if elementwise_alias(call, 0) else {}
        return Needs(alias=alias, rows=frozenset(range(len(call.outs[0].shape))))

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * EACH * target.machine.element, code=60)

    def context(self, call: Call) -> Mapping[str, Any]:
        x, table, y = call.ins[0], call.ins[1], call.outs[0]
        inner = [axis for axis in memory_order(y) if axis != call.rows]  # rows are the outermost loop
        views = [view.permuted(inner) for view in (y, x)]
        loops = nest(views[0].shape, views)

        def at(number: int) -> str:
            if call.rows is None:
                return loops.index(number)
            view = (y, x)[number]
            return index_c([static(view.strides[call.rows]), 1], [ring_row("row", view.lines), loops.index(number)])

        step = static(table.strides[0])
        entry = f"(uint8_t){load_c(x.buffer.dtype, 'x', at(1))}"
        return {
            "loops": loops.loops,
            "by_rows": call.rows is not None,
            "rings": ring_rows("row", [y, x]),
            "store": store_c(y.buffer.dtype, "y", at(0), load_c(table.buffer.dtype, "table", index_c([step], [entry]))),
        }

    def label(self, call: Call) -> str:
        return "lookup"

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        return ["y"], ["x", "table"]


def _case(
    name: str, x: DType, y: DType, shape: tuple[int, ...], permute: Mapping[int, tuple[int, ...]] | None = None
) -> Case:
    ins = (TensorType(x, shape), TensorType(y, (256,)))
    ranges = {0: (float(x.low), float(x.high)), 1: (0.0, 127.0)}
    return Case(name, Lookup(), ins, (TensorType(y, shape),), permute=permute or {}, ranges=ranges)
