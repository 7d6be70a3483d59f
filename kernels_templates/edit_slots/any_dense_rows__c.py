"""edit_slots in portable C: rows are moved as bytes, in place where the result may lie over x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import bool_, f16, f32, i8, i64
from mccompile.base.tensor import TensorType
from mccompile.expr.dims_c import dim_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.edit_slots import EditSlots


class EditRows(Kernel):
    kind = EditSlots

    def cases(self) -> Sequence[Case]:
        at = TensorType(i64, ())

        def case(name: str, x: TensorType, y: TensorType, row: int, *piece: TensorType) -> Case:
            return Case(name, EditSlots(), (x, at, *piece), (y,), values={1: np.array(row, np.int64)})

        five, four = TensorType(f32, (5, 6)), TensorType(f32, (4, 6))
        return [
            case("in_the_middle", four, five, 2, TensorType(f32, (2, 3))),
            case("at_the_end", four, five, 4, TensorType(f32, (2, 2))),
            case("first", TensorType(i8, (3, 2)), TensorType(i8, (4, 2)), 0, TensorType(i8, (2,))),
            case("too_far", TensorType(f16, (3, 1)), TensorType(f16, (4, 1)), 9, TensorType(f16, ())),
            case("take_out", five, five, 1),
            case("take_out_last", TensorType(bool_, (3, 2)), TensorType(bool_, (3, 2)), 2),
            case("take_out_only", TensorType(i64, (1, 3)), TensorType(i64, (1, 3)), -4),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if not reason and call.ins[0].buffer.dtype.is_packed:
            reason = "elements share bytes"
        if reason:
            return No(reason)
        dense = frozenset({0, *range(2, len(call.ins))})
        alias = {(0, 0): 0} if call.ins[0].is_dense and call.ins[0].offset == 0 else {}
        return Needs(dense=dense, dense_outs=frozenset({0}), alias=alias, symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.outs[0].type.count) * 0.5 * target.machine.element, code=120)

    def context(self, call: Call) -> Mapping[str, Any]:
        rows, size = call.outs[0].type.static_shape
        insert = len(call.ins) == 3
        count = call.ins[2].type.count if insert else 0
        return {
            "insert": insert,
            "last": min(call.ins[0].type.static_shape[0], rows - 1) if insert else rows - 1,
            "size": size,
            "count": dim_c(count),
            "rest": dim_c(size - count),
            "partly": count != size,
        }

    def label(self, call: Call) -> str:
        return "insert_row" if len(call.ins) == 3 else "erase_row"
