"""require in portable C: the first element that is not true ends the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import bool_
from mccompile.base.tensor import TensorType
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views
from mccompile.kernels.loops import nest
from mccompile.kinds.require import Require


class RequireTrue(Kernel):
    kind = Require
    isa = "c"
    may_fail = True

    def cases(self) -> Sequence[Case]:
        # no result to compare; tests/ops/test_at_run_time.py has runs that end
        return [Case("flags", Require(), (TensorType(bool_, (2, 3)),), (), permute={0: (1, 0)})]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call)
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.ins[0].type.count) * 1e-9, code=40)

    def context(self, call: Call) -> Mapping[str, Any]:
        loops = nest(call.ins[0].type.static_shape, call.ins)
        return {"loops": loops.loops, "element": f"x[{loops.index(0)}]"}
