"""random in portable C: MT19937, whose state is a workspace of the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import upper
from mccompile.base.dtypes import f16, f32, f64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import nest
from mccompile.expr.ir import apply, cast, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.random import Random

STATE_BYTES = 624 * 4 + 2 * 4 + 8  # of an mcc_random


class RandomTwister(Kernel):
    kind = Random

    def cases(self) -> Sequence[Case]:
        doubles = TensorType(f64, (3, 400))
        floats, halves = TensorType(f32, (5, 4, 3)), TensorType(f16, (7,))
        below = apply("less", operand(0, f64), operand(1, f64))
        return [
            Case("uniform", Random(False, 0), (), (doubles,)),
            Case("normal", Random(True, 4294967295), (), (doubles,)),
            Case("turned", Random(False, 7, cast(operand(0, f64), f32)), (), (floats,), permute_outs={0: (2, 0, 1)}),
            Case("halves", Random(True, 7, cast(operand(0, f64), f16)), (), (halves,)),
            Case("smaller", Random(False, 3, cast(below, f32)), (TensorType(f64, (5, 4, 3)),), (floats,)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        return No(reason) if reason else Needs(scratch=STATE_BYTES, symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost((5000 + upper(call.outs[0].type.count) * 10) * target.machine.element, code=700)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_random.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, y = call.kind, call.outs[0]
        assert isinstance(kind, Random)
        outs, names = self.parameter_names(call)
        loops = nest(y.shape, [y, *call.ins])
        loads = [
            load_c(view.buffer.dtype, name, loops.index(1 + number))
            for number, (view, name) in enumerate(zip(call.ins, names, strict=True))
        ]
        lines, value = ([], "drawn") if kind.epilogue is None else to_statements(kind.epilogue, ["drawn", *loads])
        return {
            "kind": kind,
            "loops": loops.loops,
            "stream": outs[-1],
            "lines": lines,
            "store": store_c(y.buffer.dtype, outs[0], loops.index(0), value),
        }

    def label(self, call: Call) -> str:
        return f"random_{'normal' if call.of(Random).normal else 'uniform'}"
