"""write_numbers in portable C: each number into a few bytes on the stack, and from there to where texts lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import DTYPES, DType, bool_, string, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.number_texts import NumberTexts
from mccompile.expr.scalar_c import load_c
from mccompile.kernels.api import Call, Case
from mccompile.kinds.write_numbers import WriteNumbers


class WriteNumbersLoops(NumberTexts):
    kind = WriteNumbers
    numbers = 5

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

    def dtype(self, call: Call) -> DType:
        return call.ins[0].buffer.dtype

    def context(self, call: Call) -> Mapping[str, Any]:
        dtype, loops = self.dtype(call), self.loops(call)
        return {
            **super().context(call),
            "room": static(call.outs[1].shape[0]),
            "y": loops.index(0),
            "load": load_c(dtype, "x", loops.index(1)),
            "is_bool": dtype is bool_,
            "is_signed": dtype.kind == "int",
        }
