"""byte_softmax in portable C: three passes over each group; the result may lie over the operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import product, upper
from mccompile.base.dtypes import DType, i8, i64, u8, u32
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c, size_name
from mccompile.codegen.sums import grouped
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, static_views
from mccompile.kinds.byte_softmax import ByteSoftmax


class StridedTable(Kernel):
    kind = ByteSoftmax
    branches = "looks for the largest number, and divides"

    def cases(self) -> Sequence[Case]:
        return [
            _case("i8", (2, 10), (1,), i8, i8, 0.1),
            _case("u8", (3, 17), (1,), u8, u8, 0.02),
            _case("mixed", (2, 3, 5), (2,), u8, i8, 0.3),
            _case("channels", (2, 7, 3, 2), (1,), i8, u8, 0.05, permute={0: (0, 2, 3, 1)}),
            _case("two_axes", (2, 3, 4, 5), (2, 3), i8, i8, 0.05),
            _case("flat", (1, 700), (1,), i8, i8, 1e-4),
            _case("steep", (5, 9), (1,), i8, i8, 3.0),
            _case("coarse", (5, 9), (1,), i8, i8, 0.1, scale=0.3),
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


def _case(
    name: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    x: DType,
    y: DType,
    step: float,
    scale: float = 1 / 256,
    permute: Mapping[int, tuple[int, ...]] | None = None,
) -> Case:
    shift = 61 - int(np.ceil(np.log2(1 / scale)))
    types = (TensorType(x, shape), TensorType(u32, (256,)), TensorType(i64, ()), TensorType(u8, ()), TensorType(y, ()))
    values = {
        1: np.rint(np.exp(-step * np.arange(256)) * 2.0**30).astype(np.uint32),
        2: np.array(int(2.0**shift / scale), np.int64),
        3: np.array(shift, np.uint8),
        4: np.array(int(y.low) + 3, y.numpy),
    }
    ranges = {0: (float(x.low), float(x.high))}
    return Case(name, ByteSoftmax(axes), types, (TensorType(y, shape),), permute or {}, ranges=ranges, values=values)
