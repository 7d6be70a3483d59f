"""gemm of 8-bit integers with constant weights, for cores with Helium: two rows of a at a time, or twice the only one,
are multiplied with all columns of b, where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import i8
from mccompile.codegen.int8.dot import FARTHEST, SHORT_SHIFTS, numbers, pack_fours, rescaling_of, table_of_vectors
from mccompile.codegen.int8.rates import Rates
from mccompile.codegen.int8.rows_gemm import RowsGemm
from mccompile.kernels.api import Call, Case, Needs, No, Prefer, Target

ONE, TWO = Rates(0.22, 0.0, 6.2, 4.0, window=50.0), Rates(0.112, 0.0, 3.4, 7.1, window=24.0)  # rows at once


class RowPairs(RowsGemm):
    raises = True
    block = 16

    def cases(self) -> Sequence[Case]:
        return [case for case in super().cases() if case.ins[0].dtype is i8]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, SHORT_SHIFTS)
        if reason:
            return No(reason)
        y, found = call.outs[0], rescaling_of(call)
        if call.ins[0].buffer.dtype is not i8:
            return No("a is not signed")
        if static(y.strides[-2]) + 4 > FARTHEST:
            return No("the stride between rows of the result is too large")
        results = 2 * (static(y.shape[-1]) + 4) if found.rest else 0
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: 15},
            scratch=results,
            scratch_align=4,
            blocks=(2 if static(y.shape[-2]) > 1 else 1, int(target.prefer == Prefer.FLASH)),
        )

    def rates(self, call: Call) -> Rates:
        return TWO if call.blocks[0] == 2 else ONE

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, columns = rescaling_of(call), static(call.outs[0].shape[-1])
        rows = self.columns(call, constants)
        values = numbers(call, constants, found, columns)
        return {1: pack_fours(rows, 4, 16), **dict.fromkeys(found.tables, table_of_vectors(values, found.shift))}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: "helium_4x16", **dict.fromkeys(rescaling_of(call).tables, "table_vectors_less_half")}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_helium.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        y, found = call.outs[0], rescaling_of(call)
        rows, outs = y.type.static_shape[-2:]
        lanes, small = call.blocks
        return {
            **self.rest(call),
            **found.told,
            "lanes": lanes,
            "several": rows > 1,
            "again": lanes == 2 and (rows % 2 == 1 or bool(small)),
            "whole": outs % 4 == 0 and not small,
            "few": outs < 4 and not small,
        }

    def sizes(self, call: Call) -> Mapping[str, int]:
        return {name: size for name, size in super().sizes(call).items() if name != "inputs"}
