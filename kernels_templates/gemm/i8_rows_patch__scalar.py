"""gemm of 8-bit integers with constant weights, for cores without SIMD: two rows of a are laid
out beside each other, so that one multiplication serves both; a single one is read where it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import u8
from mccompile.codegen.int8.dot import left_over, numbers, rescaling_in, without_zero
from mccompile.codegen.int8.rates import scalar_cycles
from mccompile.codegen.int8.rows_gemm import RowsGemm, totals_case
from mccompile.codegen.int8.scalar_sums import packed_sums, sums_context
from mccompile.codegen.int8.two_parts import saves
from mccompile.kernels.api import Call, Case, Cost, Needs, No, Prefer, Target

ALONE = 1.3  # of the time of a product, in the last of an odd number of rows, with which no other one shares weights
TOTALS_BYTES = 1024  # of scratch, where RAM is preferred


class Rows(RowsGemm):
    def cases(self) -> Sequence[Case]:
        totals = (totals_case("row_of_totals", 1, 13, 6), totals_case("rows_of_totals", 3, 13, 6, u8))
        return [*super().cases(), *totals]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, range(32), totals=True)
        if reason:
            return No(reason)
        a, y, found = call.ins[0], call.outs[0], rescaling_in(call)
        rows, outs = y.type.static_shape[-2:]
        lanes = min(rows, 2)
        results = lanes * outs * (1 if found else 4) if left_over(call) else 0
        if found is None and target.prefer == Prefer.RAM and results > TOTALS_BYTES:
            return No("its partial sums need too much memory")
        return Needs(
            constant=frozenset({1, *(found.tables if found else ())}),
            align={found.bias: 4} if found else {1: 4},
            slack={0: self.depth(call) - static(a.shape[-1])} if lanes == 1 else {},
            scratch=(self.depth(call) * 4 if lanes == 2 else 0) + results,
            scratch_align=4,
            blocks=(lanes, int(found is not None and lanes == 2 and saves(target))),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        rows = call.outs[0].type.static_shape[-2]
        product = 1 + (ALONE - 1) * (rows % 2) / max(1, rows)
        return Cost(scalar_cycles(self.work(call), call, target, product), code=self.code)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, columns = rescaling_in(call), static(call.outs[0].shape[-1])
        rows = self.columns(call, constants)
        values = numbers(call, constants, found, columns) if found else np.zeros((1, columns), np.int32)
        if call.blocks[0] == 2:
            values = without_zero(values, rows, 0, call.ins[0].buffer.dtype)
        return packed_sums(call, rows, values, call.blocks[1])

    def packing(self, call: Call) -> Mapping[int, str]:
        found, less = rescaling_in(call), "_less_zero" if call.blocks[0] == 2 else ""
        parts = "_parts" * call.blocks[1]
        if found is None:
            return {1: f"scalar_with_biases{less}"}
        return {1: "scalar", **dict.fromkeys(found.tables, f"table_channels{less}{parts}")}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_scalar.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        found = rescaling_in(call)
        return {
            **self.rest(call),
            **sums_context(call, call.blocks[1]),
            "table_rows": len(found.tables) if found else 1,
            "several": call.blocks[0] == 2,
        }
