"""change_case in portable C: a walk to count bytes, and one to write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import bool_, i32, string, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import nest
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kinds.change_case import ChangeCase


class ChangeCaseLoops(Kernel):
    kind = ChangeCase

    def cases(self) -> Sequence[Case]:
        x = TensorType(string, (3, 5))
        upper_case = np.array([[97, 122, 1, -32], [0xE0, 0xF6, 1, -32]], np.int32)
        outs = (x, TensorType(u8, (400,)), TensorType(bool_, ()))
        return [
            Case("turned", ChangeCase(), (x, TensorType(i32, (2, 4))), outs, {0: (1, 0)}, values={1: upper_case}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        return Needs(symbols=True) if call.ins[1].is_dense else No("rows of the table are not contiguous")

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 100 * target.machine.element, code=500)

    def context(self, call: Call) -> Mapping[str, Any]:
        y, x = call.outs[0], call.ins[0]
        loops = nest(y.shape, [y, x])
        rows, room = static(call.ins[1].shape[0]), static(call.outs[1].shape[0])
        return {"loops": loops.loops, "room": room, "rows": rows, "y": loops.index(0), "x": loops.index(1)}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_text.h"})
