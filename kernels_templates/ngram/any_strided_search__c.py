"""ngram in portable C: each n-gram of a row is looked for by halving the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import DType, f32, i32, i64, string
from mccompile.base.marked import including
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.expr.dims_c import dim_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, Target
from mccompile.kinds.ngram import Ngram

GRAMS = np.array([1, 2, 4, 1, 1, 1, 2, 2, 1, 4, 4, 1, 2, 1, 3, 1, 1], np.int64)

_ORDER_OF_STRINGS = f"{including('mcc_string.h')}mcc_string_order(gram[k], value)"


class NgramSearch(Kernel):
    kind = Ngram

    def cases(self) -> Sequence[Case]:
        def case(name: str, kind: Ngram, x: tuple[int, int], dtype: DType = i64, **options: Any) -> Case:
            count = sum(many for _, many in kind.lengths)
            ins = (
                TensorType(dtype, x),
                TensorType(string if dtype is string else i64, GRAMS.shape),
                TensorType(i64, (count,)),
                TensorType(f32, (count,)),
            )
            places = (np.arange(count) * 5 % kind.columns).astype(np.int64)
            result = TensorType(f32, (x[0], kind.columns))
            values = {1: GRAMS, 2: places}
            if dtype is string:
                texts = np.vectorize(str, otypes=[object])
                values |= {0: texts(np.random.default_rng(1).integers(0, 5, x)), 1: texts(GRAMS)}
            return Case(name, kind, ins, (result,), ranges={0: (0, 5)}, values=values, **options)

        lengths = ((1, 3), (2, 4), (3, 2))
        return [
            case("counts", Ngram(lengths, 0, False, 9), (3, 17)),
            case("skips", Ngram(lengths, 3, False, 9), (2, 30), i32, permute={0: (1, 0)}),
            case("once", Ngram(lengths, 1, True, 11), (2, 30)),
            case("texts", Ngram(lengths, 2, False, 9), (2, 30), string),
            case("short", Ngram(lengths, 2, False, 9), (1, 1)),
        ]

    def match(self, call: Call, target: Target) -> Needs:
        return Needs(dense=frozenset({1, 2, 3}), symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.ins[0].type.count) * 200 * target.machine.element, code=600)

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset() if self.context(call)["parts"] else frozenset(self.parameter_names(call)[1])

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y = call.kind, call.ins[0], call.outs[0]
        assert isinstance(kind, Ngram)
        rows, size = x.shape
        is_string = x.buffer.dtype is string
        parts, grams, first = [], 0, 0
        for length, many in kind.lengths:
            fitting = [] if length < 2 else range(kind.skips + 1)
            steps = [step + 1 for step in fitting if step * (length - 1) + length <= upper(size)] if length > 1 else [1]
            if many and length <= upper(size):
                parts.append({"n": length, "many": many, "grams": grams, "first": first, "steps": len(steps)})
            grams, first = grams + length * many, first + many
        return {
            "kind": kind,
            "rows": dim_c(rows),
            "size": dim_c(size),
            "parts": parts,
            "type": call.ins[1].buffer.dtype.compute_c,
            "order": _ORDER_OF_STRINGS if is_string else "(gram[k] > value) - (gram[k] < value)",
            "x": f"{'' if is_string else '(int64_t)'}x[{index_c(x.strides, ['row', '(at + k * step)'])}]",
            "zero": f"y[{index_c(y.strides, ['row', 'c'])}] = 0.0f;",
            "y": f"y[{index_c(y.strides, ['row', '(mcc_index)places[middle]'])}]",
        }
