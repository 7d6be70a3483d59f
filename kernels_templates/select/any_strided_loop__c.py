"""select in portable C: one walk over the flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import bool_, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.expr.dims_c import dim_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kinds.select import Select


class SelectLoop(Kernel):
    kind = Select

    def cases(self) -> Sequence[Case]:
        # all true, so that all of the result is written; tests/ops/test_data_dependent.py has others
        x, y = TensorType(bool_, (7,)), TensorType(i64, (7,))
        return [Case("all", Select(), (x,), (y, TensorType(i64, (1,))), values={0: np.ones(7, np.bool_)})]

    def match(self, call: Call, target: Target) -> No | Needs:
        return Needs(symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * 2 * target.machine.element, code=60)

    def context(self, call: Call) -> Mapping[str, Any]:
        return {
            "room": "" if call.outs[0].shape == call.ins[0].shape else dim_c(call.outs[0].shape[0]),
            "count": dim_c(call.ins[0].shape[0]),
            "flag": f"x[{index_c(call.ins[0].strides, ['i'])}]",
            "position": f"y0[{index_c(call.outs[0].strides, ['found'])}]",
        }
