"""int8 pooling sums, for cores with DSP instructions: four channels at a time, in 16 bits as long as
they hold the sum. Operand and result lie channels-last; windows lie inside the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, i8, i32, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.expr.code import Code
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, static_views, supports_types
from mccompile.kinds.pool import Pool

MOST = 128  # elements of 8 bits whose sum 16 bits hold


class Sums(Kernel):
    kind = Pool
    branches = ""

    def cases(self) -> Sequence[Case]:
        return [
            _case("whole", (1, 8, 5, 7), (5, 7), (1, 1)),
            _case("large", (1, 4, 25, 9), (25, 9), (1, 1)),
            _case("large_u8", (2, 4, 17, 16), (17, 16), (1, 1), u8),
            _case("windows", (1, 12, 6, 9), (3, 3), (2, 2)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, x, y = call.of(Pool), call.ins[0], call.outs[0]
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        if kind.algorithm != "sum" or x.buffer.dtype not in (i8, u8) or kind.accumulator is not i32:
            return No("this is no sum of 8-bit integers")
        if len(kind.kernel) != 2 or any(kind.pads) or kind.dilations != (1, 1) or y.type.count == 0:
            return No("windows have gaps, or lie over the edge")
        reach = [(static(n) - 1) * s + k for n, s, k in zip(y.shape[2:], kind.strides, kind.kernel, strict=True)]
        if any(r > static(size) for r, size in zip(reach, x.shape[2:], strict=True)):
            return No("windows lie over the edge")
        if x.strides[1] != 1 or static(x.shape[1]) % 4 or kind.kernel[1] > MOST:
            return No("x does not lie channels-last, or channels do not come in fours")
        return Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.outs[0].type.count) * _count(call) * target.machine.short_mac, code=250)

    def label(self, call: Call) -> str:
        return f"sum_pool_{'x'.join(map(str, call.of(Pool).kernel))}_{'x'.join(map(str, call.ins[0].shape[1:]))}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y = call.of(Pool), call.ins[0], call.outs[0]
        picture = "n" if x.shape[0] != 1 else "0"
        position = ["0" if size == 1 else name for size, name in zip(y.shape[2:], ("p0", "p1"), strict=True)]

        def place(view: View) -> str:
            strides = [static(stride) for stride in view.strides]
            return index_c(strides, [picture, Code("c + lane", loose=True), *position])

        loads = [load_c(view.buffer.dtype, f"e{number}", place(view)) for number, view in enumerate(call.ins[1:])]
        lines, value = to_statements(kind.epilogue or operand(0, i32), ["totals[lane]", *loads], local="v")
        batch, _, row, column = (static(stride) for stride in x.strides)
        return {
            "type": x.buffer.dtype.name,
            "c_type": x.buffer.dtype.storage_c,
            "batch": static(x.shape[0]),
            "channels": static(x.shape[1]),
            "height": static(y.shape[2]),
            "width": static(y.shape[3]),
            "x_at": index_c([batch, row * kind.strides[0], column * kind.strides[1], 1], [picture, *position, "c"]),
            "row": row,
            "column": column,
            "rows": kind.kernel[0],
            "columns": kind.kernel[1],
            "long": _count(call) > MOST,
            "lines": lines,
            "store": store_c(y.buffer.dtype, "y", place(y), value),
        }


def _count(call: Call) -> int:
    kernel = call.of(Pool).kernel
    return kernel[0] * kernel[1]


def _case(name: str, x: tuple[int, ...], kernel: tuple[int, int], strides: tuple[int, int], dtype: DType = i8) -> Case:
    space = tuple((size - k) // s + 1 for size, k, s in zip(x[2:], kernel, strides, strict=True))
    mean = apply("shift_right", apply("add", operand(0, i32), operand(1, i32)), literal(6, i32))
    bounded = apply("min", apply("max", mean, literal(dtype.low, i32)), literal(dtype.high, i32))
    kind = Pool("sum", kernel, strides, (1, 1), (0,) * 4, space, i32, epilogue=cast(bounded, dtype))
    out = TensorType(dtype, (*x[:2], *space))
    ins = (TensorType(dtype, x), TensorType(i32, out.shape))
    last = (0, 2, 3, 1)
    return Case(name, kind, ins, (out,), permute={0: last}, permute_outs={0: last}, ranges={0: (dtype.low, dtype.high)})
