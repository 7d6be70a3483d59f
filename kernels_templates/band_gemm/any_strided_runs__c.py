"""band_gemm in portable C: for each row and column one sum over the column's run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f16, f32, f64, i8, i32, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, nest
from mccompile.codegen.rows import row_by_row
from mccompile.codegen.tiles import epilogue_alias, term_c
from mccompile.expr.ir import cast, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views, supports_types
from mccompile.kinds.band_gemm import BandGemm

TERMS = 4  # of a sum in one round of the loop


class Runs(Kernel):
    kind = BandGemm

    def cases(self) -> Sequence[Case]:
        half = BandGemm(f32, cast(operand(0, f32), f16))
        return [
            _case("filters", BandGemm(f32), (5, 40), 9, 7),
            _case("by_four", BandGemm(f32), (5, 40), 9, 8),
            _case("one", BandGemm(f32), (3, 12), 12, 1),
            _case("all", BandGemm(f32), (2, 6), 3, 6),
            _case("batches", BandGemm(f32), (2, 3, 20), 4, 5, permute={0: (1, 0, 2)}, permute_outs={0: (2, 0, 1)}),
            _case("epilogue", BandGemm(f32, RELU_OF_SUM), (3, 30), 8, 6, extras=1),
            _case("f16", half, (3, 30), 8, 6, f16),
            _case("f64", BandGemm(f64), (3, 30), 8, 9, f64),
            _case("bytes", BandGemm(f32), (3, 30), 8, 6, of=i8),
            _case("integers", BandGemm(i64), (3, 30), 8, 9, i64),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        rows = frozenset({len(call.outs[0].shape) - 2} if call.outs[0].shape[-2] != 0 else ())
        return Needs(alias=epilogue_alias(call, call.of(BandGemm).fixed), rows=rows)

    def cost(self, call: Call, target: Target) -> Cost:
        sums = static(call.outs[0].type.count)
        return Cost((static(call.macs) + 4 * sums) * 2 * target.machine.mac, code=200)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind = call.of(BandGemm)
        by_rows = row_by_row(call, *self.parameter_names(call), whole=(1, 2))
        (y,), (a, first, b, *extras) = by_rows.outs, by_rows.ins
        names, total = by_rows.in_names, kind.accumulator
        last = len(y.shape) - 1
        around = nest(y.shape[:last], [y, a, *extras], prefix="n")
        run = static(b.shape[1])
        together = TERMS if run % TERMS == 0 else 1

        def term(number: int) -> tuple[str, str]:
            at = index_c([1, a.strides[-1]], ["a_at", "k"], number * a.strides[-1])
            weight = index_c([b.strides[0], b.strides[1]], ["j", "k"], number * b.strides[1])
            left = term_c(a.buffer.dtype, names[0], at, total)
            return left, term_c(b.buffer.dtype, names[2], weight, total)

        def of_result(number: int, stride: Any) -> str:
            return index_c([1, stride], [around.index(number), "j"])

        loads = [
            load_c(view.buffer.dtype, name, of_result(number + 2, view.strides[-1]))
            for number, (view, name) in enumerate(zip(extras, names[3:], strict=True))
        ]
        lines, value = to_statements(kind.epilogue or operand(0, total), ["total", *loads])
        start = f"{names[1]}[{index_c([first.strides[0]], ['j'])}]"
        return {
            "by_rows": call.rows is not None,
            "pointers": by_rows.pointers,
            "loops": around.loops,
            "columns": static(y.shape[-1]),
            "run": run,
            "together": together,
            "type": total.compute_c,
            "exact": "" if total.is_float else total.name,
            "a_at": f"{around.index(1)} + (mcc_index){start} * {a.strides[-1]}",
            "terms": [term(number) for number in range(together)],
            "lines": lines,
            "store": store_c(y.buffer.dtype, by_rows.out_names[0], of_result(0, y.strides[-1]), value),
        }

    def label(self, call: Call) -> str:
        a, b = call.ins[0], call.ins[2]
        return f"band_gemm_{a.shape[-2]}x{a.shape[-1]}x{b.shape[0]}_{b.shape[1]}"


def _case(
    name: str,
    kind: BandGemm,
    a: tuple[int, ...],
    columns: int,
    run: int,
    dtype: DType = f32,
    extras: int = 0,
    of: DType | None = None,
    **options: Any,
) -> Case:
    out = TensorType(dtype, (*a[:-1], columns))
    ins = (TensorType(dtype, a), TensorType(i32, (columns,)), TensorType(of or dtype, (columns, run)), *[out] * extras)
    first = np.linspace(a[-1] - run, 0, columns).astype(np.int32)
    return Case(name, kind, ins, (out,), constant=frozenset({1, 2}), values={1: first}, **options)
