"""arg_reduce in portable C: a loop nest over the result, one loop along the axis inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import f16, f32, i64, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import beside, index_c
from mccompile.expr.scalar_c import load_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.arg_reduce import ArgReduce


class StridedLoops(Kernel):
    kind = ArgReduce
    branches = "each number is compared with the best one"

    def cases(self) -> Sequence[Case]:
        t, bytes_ = TensorType(f32, (2, 5, 3)), TensorType(u8, (6, 40))
        found = TensorType(i64, (1, 6))
        # Some columns begin with a NaN, some end with one, some have two.
        several = np.array([[0, 1, -1, 2], [-2, 0, 1, 3], [4, -4, 0, 1]], np.float32)[:, [0, 1, 2, 3, 0, 1]]
        several[0, :2] = several[1, 2] = several[2, 1:4] = several[1, 4] = np.nan
        nans: dict[str, Any] = {"ins": (TensorType(f32, (3, 6)),), "outs": (found,), "values": {0: several}}
        return [
            Case("largest", ArgReduce(1, True), (t,), (TensorType(i64, (2, 1, 3)),)),
            Case(
                "smallest_transposed", ArgReduce(1, False), (t,), (TensorType(i64, (2, 1, 3)),), permute={0: (2, 0, 1)}
            ),
            Case("last_of_equal", ArgReduce(1, True, True), (bytes_,), (TensorType(i64, (6, 1)),), ranges={0: (0, 4)}),
            Case("first_of_equal", ArgReduce(1, False), (bytes_,), (TensorType(i64, (6, 1)),), ranges={0: (0, 4)}),
            Case("only_numbers", ArgReduce(1, True, only_numbers=True), (t,), (TensorType(i64, (2, 1, 3)),)),
            Case("halves", ArgReduce(0, True), (TensorType(f16, (9,)),), (TensorType(i64, (1,)),)),
            Case("first_of_nan", ArgReduce(0, True), **nans),
            Case("last_of_nan", ArgReduce(0, True, True), **nans),
            Case("first_of_nan_smallest", ArgReduce(0, False), **nans),
            Case("one", ArgReduce(0, True), (TensorType(f32, (1, 2)),), (TensorType(i64, (1, 2)),)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if not reason and call.ins[0].shape[call.of(ArgReduce).axis] == 0:
            reason = "the axis is empty"
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * 2 * target.machine.element, code=150)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, out = call.of(ArgReduce), call.ins[0], call.outs[0]
        outer = beside(kind.axis, out, x)
        outs, ins = self.parameter_names(call)
        strides = [*outer.strides[1], x.strides[kind.axis]]
        counters = [loop.counter for loop in outer.loops]
        dtype = x.buffer.dtype
        return {
            "outer": outer.loops,
            "type": dtype.compute_c,
            "extent": x.shape[kind.axis],
            "first": load_c(dtype, ins[0], index_c(strides[:-1], counters)),
            "load": load_c(dtype, ins[0], index_c(strides, [*counters, "r"])),
            "comparison": (">" if kind.largest else "<") + ("=" if kind.last else ""),
            "opposite": "<=" if kind.largest else ">=",
            "last": kind.last,
            "is_float": dtype.is_float and not kind.only_numbers,
            "result": f"{outs[0]}[{outer.index(0)}]",
        }

    def label(self, call: Call) -> str:
        return "arg_max" if call.of(ArgReduce).largest else "arg_min"
