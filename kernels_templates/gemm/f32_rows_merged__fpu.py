"""gemm of floats with a constant matrix, for cores whose FPU multiplies and adds one pair at a time: a row of the
result is made 16 or 8 columns at a time, whose weights are loaded eight by one instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f32
from mccompile.base.tensor import Shape
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, size_name
from mccompile.codegen.packed_lanes import pack_rows
from mccompile.codegen.tiles import Range, Tile, cut_sum, epilogue_alias, is_constant
from mccompile.expr.ir import operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types, viewed
from mccompile.kinds.gemm import Gemm

GROUP = 8  # weights that are loaded at once
QUICKER = 0.6  # than the portable kernel


class MergedRows(Kernel):
    kind = Gemm

    def cases(self) -> Sequence[Case]:
        plain = Gemm(f32)
        return [
            _case("vector", plain, (1, 40), (40, 48)),
            _case("eights", plain, (1, 7), (7, 24)),
            _case("rows", plain, (3, 9), (9, 16), permute={0: (1, 0)}),
            _case("long_sum", plain, (2, 1501), (1501, 16)),
            _case("one_term", plain, (2, 1), (1, 8)),
            _case("transposed", plain, (1, 17), (17, 16), permute={1: (1, 0)}),
            _case("epilogue", replace(plain, epilogue=RELU_OF_SUM), (2, 6), (6, 32), extras=1),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b), y = call.of(Gemm), call.ins[:2], call.outs[0]
        reason = supports_types(call) or static_views(call)
        if reason:
            return No(reason)
        if kind.accumulator is not f32 or kind.fixed != 2 or any(v.buffer.dtype is not f32 for v in (a, b)):
            return No("operands are not 32-bit floats")
        if not is_constant(b) or upper(y.type.count) == 0 or 0 in b.shape:
            return No("the matrix is computed, or there is nothing to compute")
        if any(dim != 1 for dim in y.shape[:-2]) or static(y.shape[-1]) % GROUP:
            return No("there are batches, or columns do not come in eights")
        return Needs(constant=frozenset({1}), align={1: 4}, alias=epilogue_alias(call, kind.fixed))

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.macs) * target.machine.mac * QUICKER, code=400)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        b = viewed(call.ins[1], constants[1])
        return {1: pack_rows(b.reshape(-1, *b.shape[-2:])[0], _lanes(call))}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"rows_of_{_lanes(call)}_columns"}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_fpu.h"})

    def label(self, call: Call) -> str:
        a, b = call.ins[:2]
        return "gemm_" + "x".join(map(size_name, (a.shape[-2], a.shape[-1], b.shape[-1])))

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, y, lanes = call.of(Gemm), call.outs[0], _lanes(call)
        (result,), names = self.parameter_names(call)
        rows, columns, depth = static(y.shape[-2]), static(y.shape[-1]), static(call.ins[0].shape[-1])
        around, inside = cut_sum([Range("k", depth)] if depth > 1 else [], f32)
        step, row = "k" if depth > 1 else "0", "i" if rows > 1 else "0"

        def at(strides: Shape, *counters: str) -> str:
            return index_c([*strides, *strides[-1:]][: len(counters)], list(counters))

        loads = [
            load_c(view.buffer.dtype, name, at(view.strides[-2:], row, "j", "lane"))
            for view, name in zip(call.ins[kind.fixed :], names[kind.fixed :], strict=True)
        ]
        expr = kind.epilogue or operand(0, f32)
        lines, value = to_statements(expr, ["total", *loads], local="v")
        return {
            "rows": [Range("i", rows)] if rows > 1 else [],
            "columns": Range("j", columns, step=lanes),
            "tile": Tile(1, lanes),
            "groups": range(0, lanes, GROUP),
            "around": around,
            "inside": inside,
            "a": f"{names[0]}[{at(call.ins[0].strides[-2:], row, step)}]",
            "b": f"{names[1]} + {index_c([depth, lanes], ['j', step])}",
            "lines": lines,
            "store": store_c(y.buffer.dtype, result, at(y.strides[-2:], row, "j", "lane"), value),
        }


def _lanes(call: Call) -> int:
    """Columns of a tile."""
    return 2 * GROUP if static(call.outs[0].shape[-1]) % (2 * GROUP) == 0 else GROUP


def _case(name: str, kind: Gemm, a: Shape, b: Shape, **more: Any) -> Case:
    return Case.of_one_type(name, kind, (a, b), (*a[:-1], b[-1]), constant=True, **more)
