"""unique in portable C: indices of rows are merged in order, in the room of the results; equal rows then meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import DType, f32, f64, i64, string
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.expr.scalar_c import load_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.unique import Unique


class UniqueMerges(Kernel):
    kind = Unique

    def cases(self) -> Sequence[Case]:
        # random rows all differ, so that all of the results is written; tests/ops/test_data_dependent.py has others
        draws = np.random.default_rng(0).permutation(21)

        def case(name: str, kind: Unique, dtype: DType, shape: tuple[int, int], **options: Any) -> Case:
            each = TensorType(i64, shape[:1])
            return Case(name, kind, (TensorType(dtype, shape),), (each, each, each, TensorType(i64, (1,))), **options)

        return [
            case("ascending", Unique(), f32, (9, 3)),
            case("as_they_come", Unique(False), f64, (5, 2), permute={0: (1, 0)}),
            case("two_columns", Unique(), i64, (21, 2), values={0: np.stack([draws % 3, draws], 1)}),
            case("one_column", Unique(), f32, (19, 1)),
            case("one", Unique(), f32, (1, 1)),
            case("strings", Unique(), string, (4, 1), values={0: np.array([["b"], [""], ["ab"], ["a"]], object)}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        return No(reason) if reason else Needs(dense_outs=frozenset(range(4)))

    def cost(self, call: Call, target: Target) -> Cost:
        rows = upper(call.ins[0].shape[0])
        return Cost(rows * (rows.bit_length() + 2) * target.machine.element, code=400)

    def context(self, call: Call) -> Mapping[str, Any]:
        x = call.ins[0]
        dtype = x.buffer.dtype
        rows, columns = x.shape

        def element(row: str, column: str) -> str:
            return load_c(dtype, "x", index_c(x.strides, [row, column]))

        return {
            "rows": rows,
            "columns": columns,
            "type": dtype.compute_c,
            "element": element,
            "is_string": dtype is string,
            "is_float": dtype.is_float,
            "ascending": call.of(Unique).ascending,
        }
