"""map in portable C: a loop nest over strided operands, the expression inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f16, f32, i8, i32, i64, u8, u16
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, memory_order, nest
from mccompile.codegen.map_label import map_label
from mccompile.codegen.traffic import elementwise, has_traffic, one_by_one
from mccompile.codegen.windows import ring_row, ring_rows
from mccompile.expr.ir import Index, Operand, apply, cast, index, literal, operand, walk
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, elementwise_alias, supports_types
from mccompile.kinds.map import Map


class StridedLoops(Kernel):
    kind = Map
    branches = ""

    def cases(self) -> Sequence[Case]:
        x, y = operand(0, f32), operand(1, f32)
        relu = apply("max", x, literal(0, f32))
        below = cast(apply("less", x, literal(0, f32)), i64)
        shape = (2, 3, 5, 7)
        t = TensorType(f32, shape)
        return [
            Case("relu", Map(relu), (t,), (t,)),
            Case("add_transposed", Map(apply("add", x, y)), (t, t), (t,), permute={1: (3, 1, 0, 2)}),
            Case("copy_scalar", Map(x), (TensorType(f32, ()),), (TensorType(f32, ()),)),
            Case("positions", Map(cast(apply("add", index(1), index(2)), i8)), (), (TensorType(i8, shape),)),
            Case("positions_turned", Map(index(3)), (), (TensorType(i64, shape),), permute_outs={0: (0, 2, 3, 1)}),
            Case("shared", Map(apply("mul", relu, apply("exp", relu))), (t,), (t,)),
            Case("not_of_comparison", Map(apply("bit_not", below)), (t,), (TensorType(i64, shape),)),
            Case(
                "f16",
                Map(apply("mul", operand(0, f16), operand(0, f16))),
                (TensorType(f16, (9,)),),
                (TensorType(f16, (9,)),),
            ),
            Case("halves_moved", Map(operand(0, f16)), (TensorType(f16, shape),), (TensorType(f16, shape),)),
            Case(
                "wrap",
                Map(apply("mul", operand(0, i32), literal(2**30, i32))),
                (TensorType(i32, (5,)),),
                (TensorType(i32, (5,)),),
            ),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        if reason:
            return No(reason)
        order = self.order(call)
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i, order=order)}
        return Needs(symbols=True, alias=alias, rows=frozenset(range(len(call.outs[0].shape))))

    def cost(self, call: Call, target: Target) -> Cost:
        if has_traffic(target):
            return Cost(one_by_one(call, target), code=100)
        return Cost(elementwise(call, target), code=100)

    def order(self, call: Call) -> tuple[int, ...]:
        """The axes as its loops go over them; rows, where it runs by them, are the outermost."""
        order = memory_order(call.outs[0])
        return order if call.rows is None else (call.rows, *(axis for axis in order if axis != call.rows))

    def context(self, call: Call) -> Mapping[str, Any]:
        expr = call.kind.expressions()[0]
        out = call.outs[0]
        indexed = any(isinstance(node, Index) for node in walk(expr))
        order = self.order(call)
        inner = order if call.rows is None else order[1:]
        views = [view.permuted(inner) for view in (out, *call.ins)]
        loops = nest(views[0].shape, views, keep_axes=indexed)
        places = ["row" if axis == call.rows else loops.axes[inner.index(axis)] for axis in range(len(order))]
        outs, ins = self.parameter_names(call)

        def at(number: int, view: View) -> str:
            if call.rows is None:
                return loops.index(number)
            return index_c([static(view.strides[call.rows]), 1], [ring_row("row", view.lines), loops.index(number)])

        bits = _moved(call)
        loads = [load_c(bits or v.buffer.dtype, ins[i], at(i + 1, v)) for i, v in enumerate(call.ins)]
        lines, value = to_statements(expr, loads, places)
        return {
            "loops": loops.loops,
            "lines": lines,
            "by_rows": call.rows is not None,
            "rings": ring_rows("row", [out, *call.ins]),
            "store": store_c(bits or out.buffer.dtype, outs[0], at(0, out), value),
        }

    def label(self, call: Call) -> str:
        return map_label(call)


def _moved(call: Call) -> DType | None:
    """What a copy of 8-bit or 16-bit floats moves: their bits."""
    dtype, source = call.outs[0].buffer.dtype, call.kind.expressions()[0]
    if not isinstance(source, Operand) or not dtype.is_narrow_float or dtype.is_packed:
        return None
    if call.ins[source.index].buffer.dtype is not dtype:
        return None
    return {8: u8, 16: u16}[dtype.bits]
