"""string_table in portable C: one walk over the ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import string, u8, u32
from mccompile.base.tensor import TensorType
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, static_views
from mccompile.kinds.string_table import StringTable


class StringTableLoop(Kernel):
    kind = StringTable

    def cases(self) -> Sequence[Case]:
        ends = np.array([0, 3, 3, 10, 12, 16], np.uint32)
        texts = np.frombuffer("one, twö three ".encode(), np.uint8)
        types = (TensorType(u32, (6,)), TensorType(u8, (16,)))
        return [Case("matrix", StringTable(), types, (TensorType(string, (2, 3)),), values={0: ends, 1: texts})]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = static_views(call)
        if not reason and not all(view.is_dense for view in (*call.ins, *call.outs)):
            reason = "offsets, texts or the result are not contiguous"
        return No(reason) if reason else Needs()

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.outs[0].type.count) * 2 * target.machine.element, code=40)

    def context(self, call: Call) -> Mapping[str, Any]:
        return {"count": static(call.outs[0].type.count)}
