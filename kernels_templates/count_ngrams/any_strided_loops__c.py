"""count_ngrams in portable C: every sequence of a row is looked for among the known ones, which are in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f32, i32, i64, string
from mccompile.base.tensor import TensorType
from mccompile.expr.dims_c import dim_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kernels.loops import index_c
from mccompile.kinds.count_ngrams import CountNgrams


class CountNgramsLoops(Kernel):
    kind = CountNgrams
    isa = "c"

    def cases(self) -> Sequence[Case]:
        known = [1, 2, 3, 0, 1, 1, 2, 1, 3, 2, 2]  # three of one element, four of two
        columns = np.array([4, 0, 2, 3, 1, 1, 0], np.int32)

        def case(name: str, skips: int, texts: bool = False) -> Case:
            dtype = string if texts else i64
            values = {1: np.array([str(n) for n in known], object) if texts else np.array(known), 2: columns}
            ins = (TensorType(dtype, (3, 9)), TensorType(dtype, (11,)), TensorType(i32, (7,)))
            if texts:
                values[0] = np.array([list("123112301"), list("222222222"), list("010203987")], object)
            outs = (TensorType(f32, (3, 5)),)
            kind = CountNgrams(((1, 3), (2, 4)), skips)
            return Case(name, kind, ins, outs, {0: (1, 0)}, ranges={0: (0, 3)}, values=values)

        return [case("plain", 0), case("skipping", 3), case("texts", 1, texts=True)]

    def match(self, call: Call, target: Target) -> No | Needs:
        dense = all(view.is_dense for view in call.ins[1:])
        return Needs(symbols=True) if dense else No("the known sequences lie apart")

    def cost(self, call: Call, target: Target) -> Cost:
        assert isinstance(call.kind, CountNgrams)
        return Cost(upper(call.ins[0].type.count) * (1 + call.kind.skips) * 1e-7, code=300 * len(call.kind.groups))

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, x, y = call.kind, call.ins[0], call.outs[0]
        assert isinstance(kind, CountNgrams)
        groups, start, first = [], 0, 0
        for length, count in kind.groups:
            steps = 1 if length == 1 else kind.skips + 1
            groups.append({"length": length, "count": count, "start": start, "first": first, "steps": steps})
            start += length * count
            first += count
        dtype = x.buffer.dtype
        return {
            "rows": dim_c(x.shape[0]),
            "width": dim_c(x.shape[1]),
            "outputs": static(y.shape[1]),
            "groups": groups,
            "type": dtype.compute_c,
            "x": index_c(x.strides, ["row", "(start + n * step)"]),
            "y": index_c(y.strides, ["row", "k"]),
            "order": "mcc_string_order(a, b)" if dtype is string else "(a > b) - (a < b)",
        }
