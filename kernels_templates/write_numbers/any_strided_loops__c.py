"""write_numbers in portable C: each number into a few bytes on the stack, and from there to where texts lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import DTYPES, bool_, string, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import nest
from mccompile.expr.scalar_c import load_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.write_numbers import WriteNumbers


class WriteNumbersLoops(Kernel):
    kind = WriteNumbers

    def cases(self) -> Sequence[Case]:
        def case(name: str, *numbers: float, **options: Any) -> Case:
            dtype = DTYPES[name]
            values = {0: np.array(numbers).astype(dtype.numpy)}
            shape = (len(numbers),)
            outs = (TensorType(string, shape), TensorType(u8, (32 * len(numbers),)), TensorType(bool_, ()))
            return Case(name, WriteNumbers(), (TensorType(dtype, shape),), outs, values=values, **options)

        return [
            case("f64", 0.1, 1e-5, -1.5e200, 100, 5e-324, -0.0, float("inf"), float("nan"), 9999999999999998.0, 1e16),
            case("f32", 0.1, 1e-5, 3.25, 2**-149, -0.0, float("-inf"), float("nan"), 16777216),
            case("f16", 0.1, 0.00010002, -2, 2**-24, 3.140625),
            case("i64", 0, -(2**63), 2**62, -1),
            case("u64", 0, 2**63, 10),
            case("i8", -128, 127, 0),
            case("i4", -8, 7, 0),
            case("bool", True, False),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call, strings=True)
        if not reason and call.ins[0].buffer.dtype.is_float and call.ins[0].buffer.dtype.name not in _FLOATS:
            reason = f"numbers of type {call.ins[0].buffer.dtype}"
        scratch = 5 * _BIG if call.ins[0].buffer.dtype.is_float else 0
        return No(reason) if reason else Needs(symbols=True, scratch=scratch)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 1000 * target.machine.element, code=3000, stack=200)

    def context(self, call: Call) -> Mapping[str, Any]:
        y, x = call.outs[0], call.ins[0]
        dtype = x.buffer.dtype
        loops = nest(y.shape, [y, x])
        bits, lowest = _FLOATS.get(dtype.name, (0, 0))
        return {
            "loops": loops.loops,
            "room": static(call.outs[1].shape[0]),
            "y": loops.index(0),
            "load": load_c(dtype, "x", loops.index(1)),
            "is_bool": dtype is bool_,
            "is_signed": dtype.kind == "int",
            "bits": bits,
            "lowest": lowest,
        }

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_digits.h"})


_BIG = 516  # bytes of a number of mcc_digits.h
_FLOATS = {  # bits of the significand, exponent of the smallest number
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
