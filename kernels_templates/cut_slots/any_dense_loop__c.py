"""cut_slots in portable C: a copy of bytes for each part and outer position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i16, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types
from mccompile.kinds.cut_slots import CutSlots


class CutRows(Kernel):
    kind = CutSlots

    def cases(self) -> Sequence[Case]:
        def case(name: str, dtype: DType, shape: tuple[int, int, int], *sizes: int) -> Case:
            ins = (TensorType(dtype, shape), TensorType(i64, (len(sizes),)))
            out = TensorType(dtype, (len(sizes), shape[0] * shape[1] * shape[2]))
            return Case(name, CutSlots(), ins, (out,), values={1: np.array(sizes, np.int64)})

        return [
            case("middle", f32, (2, 5, 3), 1, 0, 4),
            case("first_axis", i16, (1, 6, 2), 2, 2, 2),
            case("too_many", f32, (3, 4, 1), 3, 9, -1, 1),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call) or supports_types(call)
        if not reason and call.ins[0].buffer.dtype.is_packed:
            reason = "elements share bytes"
        return No(reason) if reason else Needs(dense=frozenset({0}), dense_outs=frozenset({0}))

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.outs[0].type.count) * 0.5 * target.machine.element, code=120)

    def context(self, call: Call) -> Mapping[str, Any]:
        outer, length, inner = call.ins[0].type.static_shape
        dtype = call.ins[0].buffer.dtype
        return {
            "parts": call.outs[0].type.static_shape[0],
            "size": outer * length * inner,
            "outer": outer,
            "length": length,
            "inner": inner,
            "type": dtype.storage_c,
            "asked": f"sizes[{index_c(call.ins[1].strides, ['i'])}]",
        }
