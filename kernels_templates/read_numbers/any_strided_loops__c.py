"""read_numbers in portable C: texts read one by one; those that are not numbers give 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dtypes import DTYPES, DType, bool_, string
from mccompile.base.tensor import TensorType
from mccompile.codegen.number_texts import NumberTexts
from mccompile.expr.scalar_c import store_c
from mccompile.kernels.api import Call, Case
from mccompile.kinds.read_numbers import ReadNumbers

_INFINITE = {"f64": 1024, "f32": 128, "f16": 16, "bf16": 128}  # exponents of the first number that is infinite


class ReadNumbersLoops(NumberTexts):
    kind = ReadNumbers
    numbers = 2
    floats = frozenset(_INFINITE)

    def cases(self) -> Sequence[Case]:
        def case(name: str, dtype: str, *texts: str) -> Case:
            shape = (len(texts),)
            outs = (TensorType(DTYPES[dtype], shape), TensorType(bool_, ()))
            return Case(name, ReadNumbers(), (TensorType(string, shape),), outs, values={0: np.array(texts, object)})

        floats = ["1.5", " -2e3 ", "+.5", "7.", "1e-400", "0", "-0", "1e39", "NaN", "-INF", "infinity", "0x1", "", "e5"]
        exact = ["0.1", "9007199254740993", "2.2250738585072011e-308", "1" * 50 + "e-50", "179769313486231580793e289"]
        return [
            case("f64", "f64", *floats, *exact),
            case("f32", "f32", *floats, "16777217", "1.00000017881393432617187499"),
            case("f16", "f16", "65519", "65520", "0.1"),
            case("i64", "i64", "-9223372036854775808", "9223372036854775807", "+12", " 7\n"),
            case("i8", "i8", "-128", "127", "128", "1.5"),
            case("u64", "u64", "18446744073709551615", "-0"),
            case("i4", "i4", "-8", "7"),
        ]

    def dtype(self, call: Call) -> DType:
        return call.outs[0].buffer.dtype

    def context(self, call: Call) -> Mapping[str, Any]:
        dtype, loops = self.dtype(call), self.loops(call)
        value = f"({dtype.compute_c})value"
        if not dtype.is_float:
            wide = "(sign ? (int64_t)(0u - magnitude) : (int64_t)magnitude)" if dtype.kind == "int" else "magnitude"
            value = f"({dtype.compute_c}){wide}"
        return {
            **super().context(call),
            "x": loops.index(1),
            "highest": _INFINITE.get(dtype.name, 0),
            "low": f"UINT64_C({0 if dtype.is_float else -int(dtype.low)})",
            "high": f"UINT64_C({0 if dtype.is_float else int(dtype.high)})",
            "store": store_c(dtype, "y0", loops.index(0), value),
        }
