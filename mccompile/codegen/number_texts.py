"""What the kernels that read and write numbers as text share: the functions of mcc_digits.h, which compute exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..base.dims import upper
from ..base.dtypes import DType
from ..kernels.api import Call, Cost, Kernel, Needs, No, Target, supports_types
from .loops import Nest, nest

BIG = 516  # bytes of a number of mcc_digits.h
FLOATS = {  # bits of the significand, exponent of the smallest number
    "f64": (53, -1074),
    "f32": (24, -149),
    "f16": (11, -24),
    "bf16": (8, -133),
    "f8e4m3fn": (4, -9),
    "f8e4m3fnuz": (4, -10),
    "f8e5m2": (3, -16),
    "f8e5m2fnuz": (3, -17),
    "f4e2m1": (2, -1),
}


class NumberTexts(Kernel):
    numbers: ClassVar[int]  # of mcc_digits.h that a float needs in scratch memory
    floats: ClassVar[frozenset[str]] = frozenset(FLOATS)

    def dtype(self, call: Call) -> DType:
        """Of the numbers."""
        raise NotImplementedError

    def match(self, call: Call, target: Target) -> No | Needs:
        dtype = self.dtype(call)
        reason = supports_types(call, strings=True)
        if not reason and dtype.is_float and dtype.name not in self.floats:
            reason = f"numbers of type {dtype}"
        return No(reason) if reason else Needs(symbols=True, scratch=self.numbers * BIG if dtype.is_float else 0)

    def loops(self, call: Call) -> Nest:
        """Over the result, operand 0, and the operand."""
        return nest(call.outs[0].shape, [call.outs[0], call.ins[0]])

    def context(self, call: Call) -> Mapping[str, Any]:
        bits, lowest = FLOATS.get(self.dtype(call).name, (0, 0))
        return {"loops": self.loops(call).loops, "bits": bits, "lowest": lowest}

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 1000 * target.machine.element, code=3000, stack=200)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_digits.h"})
