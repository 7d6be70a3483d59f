"""gemm of 8-bit integers with constant weights, for cores that multiply 32 bits, once at a time: two rows of a are laid
out beside each other, so that one multiplication serves both; a single one is read where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.kernels.api import Call, Cost, Needs, No, Target, viewed
from mccompile.kernels.dot import numbers, pack_unsigned, without_zero
from mccompile.kernels.patch_gemm import PatchGemm, depth_of, rescaling_of


class Rows(PatchGemm):
    isa = "scalar"

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = self.refusal(call, range(32))
        if reason:
            return No(reason)
        a, y, found = call.ins[0], call.outs[0], rescaling_of(call)
        rows, outs = y.type.static_shape[-2:]
        lanes = min(rows, 2)
        return Needs(
            constant=frozenset({1, *found.tables}),
            align={found.bias: 4},
            slack={0: depth_of(call) - static(a.shape[-1])} if lanes == 1 else {},
            scratch=(depth_of(call) * 4 if lanes == 2 else 0) + (lanes * outs if found.rest else 0),
            scratch_align=4,
            blocks=(lanes,),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        macs = static(call.kind.macs([v.type for v in call.ins], [v.type for v in call.outs]))
        return Cost(macs * 1e-10, code=300)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        found, columns = rescaling_of(call), static(call.outs[0].shape[-1])
        b = viewed(call.ins[1], constants[1])
        rows = b.reshape(b.shape[-2:]).T
        values = numbers(call, constants, found, columns)
        if call.blocks == (2,):
            values = without_zero(values, rows, 0, call.ins[0].buffer.dtype)
        return {1: pack_unsigned(rows), **dict.fromkeys(found.tables, np.ascontiguousarray(values.T))}

    def packing(self, call: Call) -> Mapping[int, str]:
        table = "table_channels_less_zero" if call.blocks == (2,) else "table_channels"
        return {1: "scalar", **dict.fromkeys(rescaling_of(call).tables, table)}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_scalar.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        a, found = call.ins[0], rescaling_of(call)
        return {
            **self.rest(call),
            "type": a.buffer.dtype.name,
            "y_type": found.dtype.name,
            "y_c_type": found.dtype.storage_c,
            "shift": found.shift,
            "several": call.blocks == (2,),
        }
