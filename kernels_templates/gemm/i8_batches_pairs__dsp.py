"""gemm of two 8-bit matrices that are computed, and of several, for cores with DSP instructions or Helium: two columns
of b are made 16 bits wide in the workspace, less their zero points, and multiplied with two rows of a at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import i8, i32, u8
from mccompile.codegen.int8.batch_cases import batches_case, with_floats
from mccompile.codegen.int8.rates import INSTRUCTION
from mccompile.codegen.loops import Nest, index_c, nest
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.expr.ir import operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types
from mccompile.kinds.gemm import Gemm

FARTHEST = 65535 // 7  # elements from one to the next of a column, as offsets are of 16 bits
# Instructions for a product, an element that is packed, and a result
IN_PAIRS, IN_VECTORS = (1.4, 5.0, 25.0), (0.3, 2.0, 22.0)


class BatchPairs(Kernel):
    kind = Gemm

    def cases(self) -> Sequence[Case]:
        sizes = [(1, 1, 1), (3, 7, 5), (4, 8, 6), (2, 16, 1), (5, 33, 4)]
        return [
            *(batches_case(f"{rows}x{depth}x{columns}", rows, depth, columns) for rows, depth, columns in sizes),
            batches_case("transposed", 6, 18, 9, turned=True),
            batches_case("heads", 5, 16, 7, heads=True),
            *(batches_case(f"zeros_{a}_{b}", 5, 12, 7, a, b, zeros="each") for a in (i8, u8) for b in (i8, u8)),
            batches_case("zeros_transposed", 3, 22, 4, u8, i8, zeros="each", turned=True),
            with_floats(batches_case("floats", 4, 9, 5)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, (a, b) = call.of(Gemm), call.ins[:2]
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        if a.buffer.dtype not in (i8, u8) or b.buffer.dtype not in (i8, u8) or kind.accumulator is not i32:
            return No("operands are not 8-bit integers")
        if 0 in (*a.shape, *b.shape):
            return No("it multiplies no elements")
        if a.strides[-1] != 1 and a.shape[-1] != 1:
            return No("rows of a are not contiguous")
        if static(b.strides[-2]) > FARTHEST:
            return No("the stride of columns is too large")
        beyond = _beyond(call, target)
        return Needs(
            scratch=(static(a.shape[-1]) + beyond) * 4,
            scratch_align=4,
            slack={0: beyond} if beyond else {},
            alias=epilogue_alias(call, kind.fixed),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        *batches, rows, columns = call.outs[0].type.static_shape
        depth = static(call.ins[0].shape[-1]) + _beyond(call, target)
        rows, columns = rows + rows % 2, columns + columns % 2
        rates = IN_VECTORS if "helium" in target.isas else IN_PAIRS
        product, packed, result = rates
        each = rows * columns * (depth * product + result) + columns * depth * packed
        return Cost(int(np.prod(batches)) * each * INSTRUCTION * target.machine.short_mac, code=500)

    def label(self, call: Call) -> str:
        a, y = call.ins[0], call.outs[0]
        return "_".join(["gemm", *map(str, y.shape[:-2]), f"{a.shape[-2]}x{a.shape[-1]}x{y.shape[-1]}"])

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp_products.h"})

    def sizes(self, call: Call) -> Mapping[str, int]:
        (a, b), (rows, columns) = call.ins[:2], call.outs[0].type.static_shape[-2:]
        return {
            "rows": rows,
            "columns": columns,
            "depth": static(a.shape[-1]),
            **({"a_row": static(a.strides[-2])} if rows > 1 else {}),
            "down": static(b.strides[-2]),
            **({"along": static(b.strides[-1])} if columns > 1 else {}),
        }

    def context(self, call: Call) -> Mapping[str, Any]:
        (result,), names = self.parameter_names(call)
        kind, (rows, columns) = call.of(Gemm), call.outs[0].type.static_shape[-2:]
        batches = _batches(call)
        views = [call.outs[0], *call.ins]

        def at(number: int, row: str, column: str) -> str:
            strides = views[number].strides[-2:]
            return index_c([1, *strides], [batches.index(number), row, column])

        def zero(number: int, of: str) -> str:
            stride = views[number].strides[-1]
            return f"{names[number - 1]}[{index_c([1, stride], [batches.index(number), of])}]"

        extras = range(kind.fixed, len(call.ins))
        loads = [load_c(call.ins[i].buffer.dtype, names[i], at(i + 1, "row", "column")) for i in extras]
        lines, value = to_statements(kind.epilogue or operand(0, i32), ["total", *loads], local="v")
        return {
            "batches": [Range.over(loop.counter, loop.count).header for loop in batches.loops],
            "type": call.ins[0].buffer.dtype.name,
            "b_type": call.ins[1].buffer.dtype.name,
            "a_at": index_c([1, 1], [batches.index(1), "i * a_row"]) if rows > 1 else batches.index(1),
            "b_at": index_c([1, 1], [batches.index(2), "j * along"]) if columns > 1 else batches.index(2),
            "a_zero": zero(3, "row") if kind.a_zero else "",
            "b_zeros": [zero(3 + kind.a_zero, of) for of in ("j", "j + lanes - 1")] if kind.b_zero else ["0", "0"],
            "several_rows": rows > 1,
            "several_columns": columns > 1,
            "lines": lines,
            "store": store_c(call.outs[0].buffer.dtype, result, at(0, "row", "column"), value),
        }


def _beyond(call: Call, target: Target) -> int:
    """Elements that fill the last step of a row of a (MCC_DSP_DEPTH)."""
    return -static(call.ins[0].shape[-1]) % (8 if "helium" in target.isas else 4)


def _batches(call: Call) -> Nest:
    return nest(call.outs[0].shape[:-2], [call.outs[0], *call.ins], prefix="n")
