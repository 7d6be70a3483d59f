"""The scalar functions: signature, C spelling, and meaning in numpy, each in one row.

C spellings: `c_float` for float types, `c_int` for integers. Each is a `Called` function, or a format over the
arguments, where C has operators. `{T}` is the type's short name (functions `mcc_add_i32` of mcc_math.h define overflow
and division by zero), `{f}` libm's `f` for float and nothing for double. Comparisons give bool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.dtypes import DType, bool_, f64, i32, i64, u8, u64
from ..base.records import dataclass

_FIXED_POINT = {
    "high": ((i32, i32, i32), i32),
    "product": ((i32, i64), i64),
    "round": ((i64, u8), i32),
    "even": ((i32, i32), i32),
    "bytes": ((i32,), i32),
    "whole": ((u64,), f64),
}


@dataclass(frozen=True)
class Called:
    """A function of C, the header that declares it, and arguments that are always the same, behind the others."""

    name: str
    header: str = "mcc_math.h"
    last: tuple[str, ...] = ()


Spelling = str | Called


def _between(operator: str) -> str:
    return f"{{0}} {operator} {{1}}"


_CHOICE = "{0} ? {1} : {2}"
_OF_STRINGS: dict[str, Spelling] = {
    "equal": Called("mcc_string_equal", "mcc_string.h"),
    "select": _CHOICE,
}


@dataclass(frozen=True)
class Function:
    name: str
    arity: int
    shape: str  # "same": T,T->T; "compare": T,T->bool; "logic": bools; "select": bool,T,T->T; "test": float->bool;
    # or one of _FIXED_POINT
    c_float: Spelling | None
    c_int: Spelling | None
    numpy: Callable[..., Any]

    def result(self, types: tuple[DType, ...]) -> DType:
        if len(types) != self.arity:
            raise ValueError(f"takes {self.arity} arguments")
        if self.shape in _FIXED_POINT:
            taken, result = _FIXED_POINT[self.shape]
            if types != taken:
                raise ValueError(f"takes {' and '.join(map(str, taken))}")
            return result
        if self.shape == "select":
            if types[0] is not bool_ or types[1] is not types[2]:
                raise ValueError("takes a bool and two of one type")
            return types[1]
        if any(t is not types[0] for t in types):
            raise ValueError("takes arguments of one type")
        if self.spelling(types[0]) is None:
            raise ValueError("is not defined for this type")
        return bool_ if self.shape in ("compare", "logic", "test") else types[0]

    def spelling(self, dtype: DType) -> Spelling | None:
        if dtype.kind == "string":
            return _OF_STRINGS.get(self.name)
        return self.c_float if dtype.is_float else self.c_int


def _erf(x: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x, np.float64)).astype(np.asarray(x).dtype)


def _truncating_div(a: Any, b: Any) -> Any:
    if np.issubdtype(np.asarray(a).dtype, np.floating):
        return a / b
    safe = np.where(b == 0, 1, b)
    floor = a // safe
    quotient = floor + ((floor * safe != a) & ((np.asarray(a) < 0) != (safe < 0)))
    return np.where(b == 0, 0, quotient).astype(np.asarray(a).dtype)


def _shift(numpy_shift: Callable[..., Any]) -> Callable[..., Any]:
    def shift(a: Any, b: Any) -> Any:
        bits = np.asarray(a).dtype.itemsize * 8
        return np.where(b < bits, numpy_shift(a, np.minimum(b, bits - 1)), 0).astype(np.asarray(a).dtype)

    return shift


def _high_sum(total: Any, a: Any, b: Any) -> Any:
    return (total + (np.asarray(a, np.int64) * np.asarray(b, np.int64) >> 32)).astype(np.int32)


def _fixed_product(term: Any, multiplier: Any) -> Any:
    term, multiplier = np.asarray(term, np.int64), np.asarray(multiplier, np.int64)
    return term * (multiplier >> 32) + (term * (multiplier & 0xFFFFFFFF) >> 32)


def _fixed_round(total: Any, shift: Any) -> Any:
    bits = np.asarray(shift, np.int64) & 63
    whole, rest = total >> bits, total & ((np.int64(1) << bits) - 1)
    half = (np.asarray(shift) >= 64) & (rest <= 3)
    return np.where(half, whole - (whole & 1), whole)


def _shift_even(total: Any, bits: Any) -> Any:
    total = np.asarray(total, np.int32)
    return total + (total >> bits - 2 & 4) >> bits


def _exp_whole(n: Any) -> Any:
    return np.where(np.asarray(n) < 64, np.exp(-np.asarray(n, np.float64)), 0.0)


_Row = tuple[str, int, str, Spelling | None, Spelling | None, Callable[..., Any]]


def _powers_of_two() -> list[_Row]:
    """What Cast to f8e8m0 rounds a float to, by its round_mode; see mcc_narrow.h."""

    def rounded(mode: int, saturate: int) -> Callable[..., Any]:
        def power(x: Any) -> Any:
            bits = np.asarray(x, np.float32).view(np.uint32)
            exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
            near = (fraction & 0x400000 != 0) & ((fraction & 0x3FFFFF != 0) | (exponent > 0))
            up = (np.zeros_like(near), fraction != 0, near)[mode] & ~((exponent == 0xFE) & bool(saturate))
            code = np.where(up, exponent + 1, exponent).astype(np.uint32)
            found = np.where(code == 0, np.uint32(0x400000), code << 23)
            return np.where(exponent == 0xFF, np.uint32(0x7FC00000), found).astype(np.uint32).view(np.float32)

        return power

    return [
        (f"power_{name}", 1, "same", _power(mode, saturate), None, rounded(mode, saturate))
        for mode, direction in enumerate(("down", "up", "nearest"))
        for saturate, name in ((1, direction), (0, f"{direction}_wrap"))
    ]


def _power(mode: int, saturate: int) -> Called:
    return Called("mcc_power_of_two", last=(str(mode), str(saturate)))


def _of_lanes() -> list[_Row]:
    """The same without branches, where compilers make vectors of a loop: see mcc_lanes.h."""

    def spelled(name: str) -> Called:
        return Called(f"mcc_lane_{name}_{{T}}", "mcc_lanes.h")

    divisions = (("div", _truncating_div), ("mod", np.mod), ("fmod", np.fmod))
    rows: list[_Row] = [(f"lane_{name}", 2, "same", None, spelled(name), meant) for name, meant in divisions]
    return [
        *rows,
        ("lane_round_even", 1, "same", spelled("round_even"), None, np.rint),
        ("lane_fixed_product", 2, "product", None, Called("mcc_lane_fixed_product", "mcc_lanes.h"), _fixed_product),
        ("lane_fixed_round", 2, "round", None, Called("mcc_lane_fixed_round", "mcc_lanes.h"), _fixed_round),
        ("lane_and", 2, "logic", None, _between("&"), np.logical_and),
        ("lane_or", 2, "logic", None, _between("|"), np.logical_or),
    ]


# in mcc_libm.h, as not every library has them, or they take other times for other numbers
_OWN_SOMEWHERE = {"exp", "expm1", "log", "log1p", "asinh", "acosh", "atanh", "erf", "tanh", "sin", "cos"}


def _table() -> dict[str, Function]:
    def libm(name: str) -> Called:
        return Called(name + "{f}", "mcc_libm.h" if name in _OWN_SOMEWHERE else "math.h")

    rows: list[_Row] = [
        ("add", 2, "same", _between("+"), Called("mcc_add_{T}"), np.add),
        ("sub", 2, "same", _between("-"), Called("mcc_sub_{T}"), np.subtract),
        ("mul", 2, "same", _between("*"), Called("mcc_mul_{T}"), np.multiply),
        ("div", 2, "same", _between("/"), Called("mcc_div_{T}"), _truncating_div),
        ("neg", 1, "same", "-{0}", Called("mcc_neg_{T}"), np.negative),
        ("abs", 1, "same", libm("fabs"), Called("mcc_abs_{T}"), np.abs),
        ("min", 2, "same", Called("mcc_min_{T}"), Called("mcc_min_{T}"), np.minimum),
        ("max", 2, "same", Called("mcc_max_{T}"), Called("mcc_max_{T}"), np.maximum),
        ("mod", 2, "same", Called("mcc_mod_{T}"), Called("mcc_mod_{T}"), np.mod),
        ("fmod", 2, "same", libm("fmod"), Called("mcc_fmod_{T}"), np.fmod),
        ("pow", 2, "same", libm("pow"), Called("mcc_pow_{T}"), np.power),
        ("sign", 1, "same", Called("mcc_sign_{T}"), Called("mcc_sign_{T}"), np.sign),
        ("sqrt", 1, "same", libm("sqrt"), None, np.sqrt),
        ("exp", 1, "same", libm("exp"), None, np.exp),
        ("log", 1, "same", libm("log"), None, np.log),
        ("log1p", 1, "same", libm("log1p"), None, np.log1p),
        ("expm1", 1, "same", libm("expm1"), None, np.expm1),
        ("erf", 1, "same", libm("erf"), None, _erf),
        ("sin", 1, "same", libm("sin"), None, np.sin),
        ("cos", 1, "same", libm("cos"), None, np.cos),
        ("tan", 1, "same", libm("tan"), None, np.tan),
        ("asin", 1, "same", libm("asin"), None, np.arcsin),
        ("acos", 1, "same", libm("acos"), None, np.arccos),
        ("atan", 1, "same", libm("atan"), None, np.arctan),
        ("sinh", 1, "same", libm("sinh"), None, np.sinh),
        ("cosh", 1, "same", libm("cosh"), None, np.cosh),
        ("tanh", 1, "same", libm("tanh"), None, np.tanh),
        ("asinh", 1, "same", libm("asinh"), None, np.arcsinh),
        ("acosh", 1, "same", libm("acosh"), None, np.arccosh),
        ("atanh", 1, "same", libm("atanh"), None, np.arctanh),
        ("floor", 1, "same", libm("floor"), None, np.floor),
        ("ceil", 1, "same", libm("ceil"), None, np.ceil),
        ("trunc", 1, "same", libm("trunc"), None, np.trunc),
        ("round_even", 1, "same", Called("mcc_round_even_{T}"), None, np.rint),
        ("bit_and", 2, "same", None, "({C})({0} & {1})", np.bitwise_and),
        ("bit_or", 2, "same", None, "({C})({0} | {1})", np.bitwise_or),
        ("bit_xor", 2, "same", None, "({C})({0} ^ {1})", np.bitwise_xor),
        ("bit_not", 1, "same", None, "({C})({0} ^ ({C})-1)", np.invert),  # gcc warns of ~ after a comparison
        ("shift_left", 2, "same", None, Called("mcc_shl_{T}"), _shift(np.left_shift)),
        ("shift_right", 2, "same", None, Called("mcc_shr_{T}"), _shift(np.right_shift)),
        ("and", 2, "logic", None, _between("&&"), np.logical_and),
        ("or", 2, "logic", None, _between("||"), np.logical_or),
        ("xor", 2, "logic", None, _between("!="), np.logical_xor),
        ("not", 1, "logic", None, "!{0}", np.logical_not),
        ("equal", 2, "compare", _between("=="), _between("=="), np.equal),
        ("less", 2, "compare", _between("<"), _between("<"), np.less),
        ("less_equal", 2, "compare", _between("<="), _between("<="), np.less_equal),
        ("greater", 2, "compare", _between(">"), _between(">"), np.greater),
        ("greater_equal", 2, "compare", _between(">="), _between(">="), np.greater_equal),
        ("is_nan", 1, "test", "{0} != {0}", None, np.isnan),
        ("is_positive_inf", 1, "test", "{0} > {MAX}", None, np.isposinf),
        ("is_negative_inf", 1, "test", "{0} < -{MAX}", None, np.isneginf),
        ("high_sum", 3, "high", None, Called("mcc_high_sum"), _high_sum),  # see mcc_quant.h
        *_powers_of_two(),
        ("fixed_product", 2, "product", None, Called("mcc_fixed_product"), _fixed_product),  # see mcc_quant.h
        ("fixed_round", 2, "round", None, Called("mcc_fixed_round"), _fixed_round),
        ("shift_even", 2, "even", None, Called("mcc_shift_even"), _shift_even),
        ("saturate_i8", 1, "bytes", None, Called("mcc_saturate_i8"), lambda a: np.clip(a, -128, 127)),
        ("saturate_u8", 1, "bytes", None, Called("mcc_saturate_u8"), lambda a: np.clip(a, 0, 255)),
        ("exp_whole", 1, "whole", None, Called("mcc_exp_whole", "mcc_exp_whole.h"), _exp_whole),
        *_of_lanes(),
        ("select", 3, "select", _CHOICE, _CHOICE, np.where),
    ]
    return {row[0]: Function(*row) for row in rows}


FUNCTIONS = _table()
