"""read_numbers in portable C: texts read one by one; those that are no numbers give 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import upper
from mccompile.base.dtypes import DTYPES, bool_, string
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import nest
from mccompile.expr.scalar_c import store_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kinds.read_numbers import ReadNumbers


class ReadNumbersLoops(Kernel):
    kind = ReadNumbers

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

    def match(self, call: Call, target: Target) -> No | Needs:
        dtype = call.outs[0].buffer.dtype
        reason = supports_types(call, strings=True)
        if not reason and dtype.is_float and dtype.name not in _FLOATS:
            reason = f"numbers of type {dtype}"
        scratch = 2 * _BIG if call.outs[0].buffer.dtype.is_float else 0
        return No(reason) if reason else Needs(symbols=True, scratch=scratch)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.outs[0].type.count) * 1000 * target.machine.element, code=3000, stack=200)

    def context(self, call: Call) -> Mapping[str, Any]:
        y, x = call.outs[0], call.ins[0]
        dtype = y.buffer.dtype
        loops = nest(y.shape, [y, x])
        bits, lowest, highest = _FLOATS.get(dtype.name, (0, 0, 0))
        value = f"({dtype.compute_c})value"
        if not dtype.is_float:
            wide = "(sign ? (int64_t)(0u - magnitude) : (int64_t)magnitude)" if dtype.kind == "int" else "magnitude"
            value = f"({dtype.compute_c}){wide}"
        return {
            "loops": loops.loops,
            "x": loops.index(1),
            "bits": bits,
            "lowest": lowest,
            "highest": highest,
            "low": f"UINT64_C({0 if dtype.is_float else -int(dtype.low)})",
            "high": f"UINT64_C({0 if dtype.is_float else int(dtype.high)})",
            "store": store_c(dtype, "y0", loops.index(0), value),
        }

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_digits.h"})


_BIG = 516  # bytes of a number of mcc_digits.h
# bits of the significand, exponents of the smallest number and of the first one that is infinite
_FLOATS = {"f64": (53, -1074, 1024), "f32": (24, -149, 128), "f16": (11, -24, 16), "bf16": (8, -133, 128)}
