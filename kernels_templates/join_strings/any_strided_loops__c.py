"""join_strings in portable C: both texts copied behind the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import bool_, string, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import nest
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, Target
from mccompile.kinds.join_strings import JoinStrings


class JoinStringsLoops(Kernel):
    kind = JoinStrings

    def cases(self) -> Sequence[Case]:
        x = TensorType(string, (3, 5))
        outs = (x, TensorType(u8, (400,)), TensorType(bool_, ()))
        return [
            Case("turned", JoinStrings(), (x, x), outs, permute={1: (1, 0)}),
            Case("repeated", JoinStrings(), (x, x), outs, repeated={0: (1,)}),
        ]

    def match(self, call: Call, target: Target) -> Needs:
        return Needs(symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 20 * target.machine.element, code=200)

    def context(self, call: Call) -> Mapping[str, Any]:
        y, a, b = call.outs[0], *call.ins
        loops = nest(y.shape, [y, a, b])
        places = {name: loops.index(number) for number, name in enumerate("yab")}
        return {"loops": loops.loops, "room": static(call.outs[1].shape[0]), **places}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_text.h"})
