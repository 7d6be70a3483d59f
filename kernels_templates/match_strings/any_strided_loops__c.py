"""match_strings in portable C: one step through the table of the automaton for every byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import bool_, string, u8, u16
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import nest
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kinds.match_strings import MatchStrings


class MatchStringsLoops(Kernel):
    kind = MatchStrings

    def cases(self) -> Sequence[Case]:
        classes = np.zeros(256, np.uint8)  # (ab)*
        classes[ord("a")], classes[ord("b")] = 1, 2
        following = np.array([[0, 0, 0], [0, 2, 0], [0, 0, 1]], np.uint16)
        texts = np.array([["", "ab", "aba"], ["abab", "b", "abx"]], object)
        ins = (TensorType(string, (2, 3)), TensorType(u8, (256,)), TensorType(u16, (3, 3)), TensorType(bool_, (3,)))
        values = {0: texts, 1: classes, 2: following, 3: np.array([False, True, False])}
        return [Case("turned", MatchStrings(), ins, (TensorType(bool_, (2, 3)),), {0: (1, 0)}, values=values)]

    def match(self, call: Call, target: Target) -> No | Needs:
        dense = all(view.is_dense for view in call.ins[1:])
        return Needs(symbols=True) if dense else No("the automaton is not contiguous")

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 100 * target.machine.element, code=100)

    def context(self, call: Call) -> Mapping[str, Any]:
        y, x = call.outs[0], call.ins[0]
        loops = nest(y.shape, [y, x])
        columns = static(call.ins[2].shape[1])
        return {"loops": loops.loops, "y": loops.index(0), "x": loops.index(1), "columns": columns}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_text.h"})
