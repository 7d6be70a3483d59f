"""byte_softmax in portable C: three passes over each group; the result may lie over the operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import product, upper
from mccompile.base.dtypes import i8, u8
from mccompile.codegen.byte_softmax_cases import byte_softmax_case
from mccompile.codegen.loops import index_c, size_name
from mccompile.codegen.sums import grouped
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, static_views
from mccompile.kinds.byte_softmax import ByteSoftmax


class StridedTable(Kernel):
    kind = ByteSoftmax
    branches = "looks for the largest number, and divides"

    def cases(self) -> Sequence[Case]:
        return [
            byte_softmax_case("i8", (2, 10), (1,), i8, i8, 0.1),
            byte_softmax_case("u8", (3, 17), (1,), u8, u8, 0.02),
            byte_softmax_case("mixed", (2, 3, 5), (2,), u8, i8, 0.3),
            byte_softmax_case("channels", (2, 7, 3, 2), (1,), i8, u8, 0.05, permute={0: (0, 2, 3, 1)}),
            byte_softmax_case("two_axes", (2, 3, 4, 5), (2, 3), i8, i8, 0.05),
            byte_softmax_case("flat", (1, 700), (1,), i8, i8, 1e-4),
            byte_softmax_case("steep", (5, 9), (1,), i8, i8, 3.0),
            byte_softmax_case("coarse", (5, 9), (1,), i8, i8, 0.1, scale=0.3),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call, *call.ins[1:])
        if reason:
            return No(reason)
        alias = {(0, 0): 0} if elementwise_alias(call, 0) else {}
        return Needs(alias=alias, dense=frozenset({1}), symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * 5 * target.machine.element, code=300)

    def context(self, call: Call) -> Mapping[str, Any]:
        x, y = call.ins[0], call.outs[0]
        _, outer, inner = grouped(call.of(ByteSoftmax).axes, (y, x), x)
        counters = [loop.counter for loop in (*outer.loops, *inner.loops)]
        at = [index_c([*outer.strides[i], *inner.strides[i]], counters) for i in range(2)]
        kept = y.buffer.dtype
        return {
            "outer": outer.loops,
            "inner": inner.loops,
            "lowest": int(x.buffer.dtype.low),
            "x": f"x[{at[1]}]",
            "store": f"y[{at[0]}] = ({kept.storage_c})mcc_saturate_{kept}(mcc_add_i32((int32_t)quotient, zero[0]));",
        }

    def label(self, call: Call) -> str:
        return f"softmax_{size_name(product(call.ins[0].shape[axis] for axis in call.of(ByteSoftmax).axes))}"
