"""scan_axis in portable C: a loop nest over the other axes, one loop along the axis inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import f16, f32, f64, i32
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import beside, index_c
from mccompile.expr.ir import apply, operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, supports_types
from mccompile.kinds.scan_axis import ScanAxis


class StridedLoops(Kernel):
    kind = ScanAxis

    def cases(self) -> Sequence[Case]:
        t, half, long = TensorType(f32, (2, 5, 3)), TensorType(f16, (9,)), TensorType(i32, (3, 7))
        return [
            Case("sums", ScanAxis(1, "add", f32), (t,), (t,)),
            Case("exclusive", ScanAxis(2, "add", f32, True), (t,), (t,), permute={0: (2, 1, 0)}),
            Case("products", ScanAxis(0, "mul", f64), (TensorType(f64, (6, 2)),), (TensorType(f64, (6, 2)),)),
            Case("wrap", ScanAxis(1, "mul", i32, True), (long,), (long,), ranges={0: (-90000, 90000)}),
            Case("halves", ScanAxis(0, "add", f32), (half,), (half,)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if reason:
            return No(reason)
        return Needs(alias={(0, 0): 0} if elementwise_alias(call, 0) else {})

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * 2 * target.machine.element, code=120)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, out = call.of(ScanAxis), call.ins[0], call.outs[0]
        outs, ins = self.parameter_names(call)
        outer = beside(kind.axis, out, x)
        counters = [loop.counter for loop in outer.loops] + ["r"]
        place = index_c([*outer.strides[0], out.strides[kind.axis]], counters)
        source = index_c([*outer.strides[1], x.strides[kind.axis]], counters)
        joined = apply(kind.combine, operand(0, kind.accumulator), operand(1, kind.accumulator))
        return {
            "outer": outer.loops,
            "type": kind.accumulator.compute_c,
            "identity": literal_c(0 if kind.combine == "add" else 1, kind.accumulator),
            "extent": x.shape[kind.axis],
            "load": load_c(x.buffer.dtype, ins[0], source),
            "joined": to_statements(joined, ["total", "value"])[1],
            "exclusive": kind.exclusive,
            "store": store_c(out.buffer.dtype, outs[0], place, "total"),
        }

    def label(self, call: Call) -> str:
        return f"scan_{call.of(ScanAxis).combine}"
