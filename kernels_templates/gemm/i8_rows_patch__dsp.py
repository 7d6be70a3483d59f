"""gemm of 8-bit integers with constant weights, for cores with DSP instructions: rows of a are widened into a patch,
four at a time where there are so many, and multiplied with all columns of b."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.kernels.api import Call, Cost, Needs, No, Target, viewed
from mccompile.kernels.dot import numbers, pack_fours, pack_pairs, rescaling_of, table_of_fours, table_of_pairs
from mccompile.kernels.patch_gemm import PatchGemm


class Rows(PatchGemm):
    isa = "dsp"
    raises = True

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, range(1, 9))
        if reason:
            return No(reason)
        a, y, found = call.ins[0], call.outs[0], rescaling_of(call)
        depth, lanes = self.depth(call), _lanes(call)
        results = lanes * static(y.shape[-1]) if found.rest else 0
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={1: 4, found.bias: 4},
            slack={0: depth - static(a.shape[-1])},
            scratch=lanes * depth * 2 + results,
            scratch_align=4,
            blocks=(lanes, int(target.prefer == "flash")),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.macs) * 1e-10, code=300)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, columns = rescaling_of(call), static(call.outs[0].shape[-1])
        b = viewed(call.ins[1], constants[1])
        rows = b.reshape(b.shape[-2:]).T
        values = numbers(call, constants, found, columns)
        four = call.blocks[0] == 4
        table = table_of_pairs(values) if four else table_of_fours(values)
        return {1: pack_pairs(rows) if four else pack_fours(rows), **dict.fromkeys(found.tables, table)}

    def packing(self, call: Call) -> Mapping[int, str]:
        form = "4x2" if call.blocks[0] == 4 else "1x4"
        return {1: f"dsp_{form}", **dict.fromkeys(rescaling_of(call).tables, f"table_{form}")}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp_dots.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        a, y, found = call.ins[0], call.outs[0], rescaling_of(call)
        rows, outs = y.type.static_shape[-2:]
        lanes, small = call.blocks
        return {
            **self.rest(call),
            "type": a.buffer.dtype.name,
            "y_type": found.dtype.name,
            "y_c_type": found.dtype.storage_c,
            "form": found.form,
            "table_rows": len(found.tables),
            "lanes": lanes,
            "several": rows > 1,
            "one_more": lanes == 4 and rows % 4 == 1 and not small,
            "again": lanes == 4 and (rows % 4 > 1 or bool(small)),
            "whole": outs % 4 == 0 and not small,
            "few": outs < 4 and not small,
        }


def _lanes(call: Call) -> int:
    rows, columns = call.outs[0].type.static_shape[-2:]
    return 4 if rows >= 4 and columns % 2 == 0 else 1
