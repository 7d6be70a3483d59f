"""Prints an expression as scalar C99.

Invariant: the value printed for a node has exactly the node's type in C (`compute_c`), whatever C's promotions do on
the way: integer arithmetic goes through functions with defined overflow, narrow floats are rounded after every
operation. The result is warning-free under -Wconversion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..base.dtypes import DType, bool_, string
from .dims_c import dim_c
from .functions import FUNCTIONS
from .ir import Apply, Cast, Expr, Index, Literal, Operand, Size


def literal_c(value: int | float | bool, dtype: DType) -> str:
    """A C literal of the type; floats with as many digits as they need to come back the same."""
    if dtype.is_float:
        number = float(value)
        narrow = dtype.compute_c == "float"
        if math.isnan(number):
            return "NAN" if narrow else "(double)NAN"
        if math.isinf(number):
            name = "INFINITY" if narrow else "(double)INFINITY"
            return name if number > 0 else f"(-{name})"
        text = f"{number:.9g}" if narrow else f"{number:.17g}"
        if not any(c in text for c in ".e"):
            text += ".0"
        text += "f" if narrow else ""
        return f"({text})" if number < 0 or text.startswith("-") else text
    if dtype is string:
        return "mcc_string_empty()"  # no other is a literal
    number = int(value)
    if dtype is bool_:
        return "1" if number else "0"
    if dtype.bits == 64:
        if dtype.kind == "int":
            return "INT64_MIN" if number == dtype.low else f"INT64_C({number})"
        return f"UINT64_C({number})"
    if dtype.bits == 32:
        if dtype.kind == "int":
            return "INT32_MIN" if number == dtype.low else f"INT32_C({number})"
        return f"UINT32_C({number})"
    return f"({dtype.compute_c})({number})" if number < 0 else f"({dtype.compute_c}){number}"


def _print(expr: Expr, operands: Sequence[str], indices: Sequence[str]) -> str:
    match expr:
        case Operand():
            return operands[expr.index]
        case Index():
            return f"(int64_t)({indices[expr.axis]})"
        case Literal():
            return literal_c(expr.value, expr.dtype)
        case Size():
            return f"(int64_t)({dim_c(expr.dim)})"
        case Cast():
            return cast_c(_print(expr.argument, operands, indices), expr.argument.dtype, expr.dtype, expr.saturate)
        case Apply():
            args = [_print(arg, operands, indices) for arg in expr.arguments]
            return _apply(expr, args)
    raise TypeError(f"not an expression: {expr!r}")


def _apply(expr: Apply, args: list[str]) -> str:
    function = FUNCTIONS[expr.function]
    of = expr.arguments[-1].dtype
    spelling = function.spelling(of)
    if spelling is None:
        raise TypeError(f"{expr.function} has no C form for {of}")
    narrow = of.compute_c == "float"
    text = spelling.format(
        *args,
        f="f" if narrow else "",
        T=("f32" if narrow else "f64") if of.is_float else of.name,
        C=of.compute_c,
        MAX="FLT_MAX" if narrow else "DBL_MAX",
    )
    if expr.dtype is bool_ and function.shape in ("compare", "logic", "test"):
        return f"(uint8_t)({text})"
    if not _is_call(text):
        text = f"({text})"
    if function.shape == "select" and of.bits < 32 and not of.is_float:
        text = f"({of.compute_c}){text}"  # C promotes both branches to int
    return round_c(text, of) if of.is_narrow_float and function.shape == "same" else text


def round_c(text: str, dtype: DType) -> str:
    """A float in C rounded to the values that a narrow float type has."""
    return f"mcc_{dtype}_to_f32(mcc_f32_to_{dtype}({_unwrap(text)}))"


def cast_c(text: str, source: DType, target: DType, saturate: bool = True) -> str:
    if source is target:
        return text
    if target is bool_:
        return f"(uint8_t)({text} != 0)"
    text = _unwrap(text)
    if target.is_narrow_float:
        suffix = "_sat" if saturate and target.bits == 8 and target.name.startswith(("f8e4", "f8e5")) else ""
        if source is bool_ or source.is_integer or source.compute_c == "double":
            kind = "f64" if source.compute_c == "double" or source.bits >= 32 else "f32"
            c = "double" if kind == "f64" else "float"
            return f"mcc_{target}_to_f32(mcc_{kind}_to_{target}{suffix}(({c})({text})))"
        return f"mcc_{target}_to_f32(mcc_f32_to_{target}{suffix}({text}))"
    if source.is_float and target.is_packed:
        return _wrap_packed(f"mcc_{'f64' if source.compute_c == 'double' else 'f32'}_to_i32({text})", target)
    if source.is_float and not target.is_float:
        return f"mcc_{'f64' if source.compute_c == 'double' else 'f32'}_to_{target}({text})"
    if target.is_integer and source.is_integer and target.is_packed:
        return _wrap_packed(text, target)
    return f"({target.compute_c})({text})"


def _wrap_packed(text: str, target: DType) -> str:
    """The low bits of an integer as a 4-bit or 2-bit one: what a store and a load would make of it."""
    mask = (1 << target.bits) - 1
    if target.kind == "uint":
        return f"(uint8_t)((uint64_t)({text}) & {mask}u)"
    sign = 1 << (target.bits - 1)
    return f"(int8_t)((int)(((uint64_t)({text}) & {mask}u) ^ {sign}u) - {sign})"


def _wrapped(text: str) -> bool:
    """Is the whole text inside one pair of parentheses?"""
    if not text.startswith("(") or not text.endswith(")"):
        return False
    depth = 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return position == len(text) - 1
    return False


def _is_call(text: str) -> bool:
    """Is the whole text one function call? `a + f(b)` and `f(a) + f(b)` are not."""
    name = text.partition("(")[0]
    return name.isidentifier() and _wrapped(text[len(name) :])


def _unwrap(text: str) -> str:
    return text[1:-1] if _wrapped(text) else text


def load_c(dtype: DType, pointer: str, index: str) -> str:
    """C that reads element `index` as a value of the computed type."""
    if dtype.is_packed and dtype.is_float:
        return f"mcc_{dtype}_to_f32(mcc_load_u{dtype.bits}({pointer}, {index}))"
    if dtype.is_packed:
        return f"mcc_load_{dtype}({pointer}, {index})"
    element = f"{pointer}[{index}]"
    return f"mcc_{dtype}_to_f32({element})" if dtype.is_narrow_float else element


def store_c(dtype: DType, pointer: str, index: str, value: str) -> str:
    """A C statement that writes a value of the computed type to element `index`."""
    if dtype.is_packed and dtype.is_float:
        return f"mcc_store_u{dtype.bits}({pointer}, {index}, mcc_f32_to_{dtype}({value}));"
    if dtype.is_packed:
        return f"mcc_store_{dtype}({pointer}, {index}, {value});"
    if dtype.is_narrow_float:
        value = f"mcc_f32_to_{dtype}({value})"
    return f"{pointer}[{index}] = {value};"


def to_statements(
    expr: Expr, operands: Sequence[str], indices: Sequence[str] = (), local: str = "t"
) -> tuple[list[str], str]:
    """C statements that define locals for whatever is used more than once, and the C of the value itself."""
    seen: dict[Expr, int] = {}

    def count(node: Expr) -> None:
        seen[node] = seen.get(node, 0) + 1
        if seen[node] == 1:
            for arg in node.args:
                count(arg)

    count(expr)
    lines: list[str] = []
    names: dict[Expr, str] = {}

    def printed(node: Expr) -> str:
        if node in names:
            return names[node]
        match node:
            case Apply():
                text = _apply(node, [printed(arg) for arg in node.arguments])
            case Cast():
                text = cast_c(printed(node.argument), node.argument.dtype, node.dtype, node.saturate)
            case _:
                text = _print(node, operands, indices)
        simple = isinstance(node, Literal | Index) or text.isidentifier()
        if seen[node] > 1 and not simple:
            names[node] = f"{local}{len(names)}"
            lines.append(f"const {node.dtype.compute_c} {names[node]} = {_unwrap(text)};")
            return names[node]
        return text

    value = printed(expr)
    return lines, _unwrap(value)
