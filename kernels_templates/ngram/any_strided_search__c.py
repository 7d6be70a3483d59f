"""ngram in portable C: each n-gram of a row is looked for by halving the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i32, i64
from mccompile.base.tensor import TensorType
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views
from mccompile.kernels.loops import index_c
from mccompile.kinds.ngram import Ngram

GRAMS = np.array([1, 2, 4, 1, 1, 1, 2, 2, 1, 4, 4, 1, 2, 1, 3, 1, 1], np.int64)


class NgramSearch(Kernel):
    kind = Ngram
    isa = "c"

    def cases(self) -> Sequence[Case]:
        def case(name: str, kind: Ngram, x: tuple[int, int], dtype: DType = i64, **options: Any) -> Case:
            count = sum(many for _, many in kind.lengths)
            ins = (
                TensorType(dtype, x),
                TensorType(i64, GRAMS.shape),
                TensorType(i64, (count,)),
                TensorType(f32, (count,)),
            )
            places = (np.arange(count) * 5 % kind.columns).astype(np.int64)
            result = TensorType(f32, (x[0], kind.columns))
            values = {1: GRAMS, 2: places}
            return Case(name, kind, ins, (result,), ranges={0: (0, 5)}, values=values, **options)

        lengths = ((1, 3), (2, 4), (3, 2))
        return [
            case("counts", Ngram(lengths, 0, False, 9), (3, 17)),
            case("skips", Ngram(lengths, 3, False, 9), (2, 30), i32, permute={0: (1, 0)}),
            case("once", Ngram(lengths, 1, True, 11), (2, 30)),
            case("short", Ngram(lengths, 2, False, 9), (1, 1)),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call)
        return No(reason) if reason else Needs(dense=frozenset({1, 2, 3}))

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.ins[0].type.count) * 200e-9, code=600)

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y = call.kind, call.ins[0], call.outs[0]
        assert isinstance(kind, Ngram)
        rows, size = x.type.static_shape
        parts, grams, first = [], 0, 0
        for length, many in kind.lengths:
            fitting = [] if length < 2 else range(kind.skips + 1)
            steps = [step + 1 for step in fitting if step * (length - 1) + length <= size] if length > 1 else [1]
            if many and length <= size:
                parts.append({"n": length, "many": many, "grams": grams, "first": first, "steps": len(steps)})
            grams, first = grams + length * many, first + many
        return {
            "kind": kind,
            "rows": rows,
            "size": size,
            "parts": parts,
            "x": f"(int64_t)x[{index_c(x.strides, ['row', '(at + k * step)'])}]",
            "zero": f"y[{index_c(y.strides, ['row', 'c'])}] = 0.0f;",
            "y": f"y[{index_c(y.strides, ['row', '(mcc_index)places[middle]'])}]",
        }
