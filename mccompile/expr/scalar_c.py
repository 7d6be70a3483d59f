"""Prints an expression as scalar C99.

Invariant: the value printed for a node has exactly the node's type in C (`compute_c`), whatever C's promotions do on
the way: integer arithmetic goes through functions with defined overflow, narrow floats are rounded after every
operation. The result is warning-free under -Wconversion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..base.dtypes import DType, bool_, string
from ..base.marked import called, including, marked_name, plain
from .code import Code
from .dims_c import dim_c
from .functions import FUNCTIONS, Called
from .ir import Apply, Cast, Expr, Index, Literal, Operand, Size, uses
from .nearest import nearest


def call_c(function: Called, arguments: Sequence[str], **names: str) -> str:
    """C of a call; the names are what the function's name is made of."""
    return including(function.header) + called(function.name.format(**names), (*arguments, *function.last))


def math_c(name: str, *arguments: str) -> str:
    """C of a call of a function of mcc_math.h."""
    return call_c(Called(name), arguments)


def literal_c(value: int | float | bool, dtype: DType) -> str:
    """A C literal of the type; floats with as many digits as they need to come back the same."""
    return _literal(value, dtype).text


def _literal(value: int | float | bool, dtype: DType) -> Code:
    if dtype.is_float:
        number = float(value)
        narrow = dtype.compute_c == "float"
        cast, sign = "" if narrow else "(double)", "-" if number < 0 else ""
        if math.isnan(number):
            return Code(f"{including('math.h')}{cast}NAN")
        if math.isinf(number):
            return Code(f"{including('math.h')}{sign}{cast}INFINITY", number < 0)
        text = f"{number:.9g}" if narrow else f"{number:.17g}"
        if not any(c in text for c in ".e"):
            text += ".0"
        return Code(text + ("f" if narrow else ""), text.startswith("-"))
    if dtype is string:
        return Code(call_c(Called("mcc_string_empty", "mcc_string.h"), ()))  # no other is a literal
    return Code(_integer(int(value), dtype))


def _integer(number: int, dtype: DType) -> str:
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


def _apply(expr: Apply, args: Sequence[Code]) -> Code:
    function = FUNCTIONS[expr.function]
    of = expr.arguments[-1].dtype
    spelling = function.spelling(of)
    if spelling is None:
        raise TypeError(f"{expr.function} has no C form for {of}")
    narrow = of.compute_c == "float"
    if function.shape in ("logic", "select"):  # conditions are ints in C: no cast of them is needed
        args = [Code(_condition(arg.text), arg.loose) if of is bool_ or arg is args[0] else arg for arg in args]
    names = {"f": "f" if narrow else "", "T": ("f32" if narrow else "f64") if of.is_float else of.name}
    if isinstance(spelling, Called):
        code = Code(call_c(spelling, [arg.text for arg in args], **names))
    else:
        most = f"{including('float.h')}{'FLT_MAX' if narrow else 'DBL_MAX'}"
        code = Code(spelling.format(*(arg.operand for arg in args), C=of.compute_c, MAX=most), loose=True)
    if expr.dtype is bool_ and function.shape in ("compare", "logic", "test"):
        return Code(f"(uint8_t)({code.text})")
    if function.shape == "select" and of.bits < 32 and not of.is_float:
        return Code(f"({of.compute_c})({code.text})")  # C promotes both branches to int
    return Code(round_c(code.text, of)) if of.is_narrow_float and function.shape == "same" else code


def round_c(text: str, dtype: DType) -> str:
    """A float in C rounded to the values that a narrow float type has."""
    return math_c(f"mcc_{dtype}_to_f32", f"mcc_f32_to_{dtype}({text})")


def cast_c(text: str, source: DType, target: DType, saturate: bool = True) -> str:
    """C of a value as another type; the value is a whole operand."""
    return _cast(Code(text), source, target, saturate).text


def _cast(value: Code, source: DType, target: DType, saturate: bool = True) -> Code:
    if source is target:
        return value
    if target is bool_:
        return Code(f"(uint8_t)({value.operand} != 0)")
    text = value.text
    if source is bool_ and text != _condition(text) and not target.is_narrow_float and not target.is_packed:
        return Code(f"({target.compute_c}){_condition(text)}")
    if target.is_narrow_float:
        suffix = "_sat" if saturate and target.bits == 8 and target.name.startswith(("f8e4", "f8e5")) else ""
        if source is bool_ or source.is_integer or source.compute_c == "double":
            kind = "f64" if source.compute_c == "double" or source.bits >= 32 else "f32"
            c = "double" if kind == "f64" else "float"
            return Code(math_c(f"mcc_{target}_to_f32", f"mcc_{kind}_to_{target}{suffix}(({c})({text}))"))
        return Code(math_c(f"mcc_{target}_to_f32", f"mcc_f32_to_{target}{suffix}({text})"))
    if source.is_float and not target.is_float:
        whole = f"mcc_{'f64' if source.compute_c == 'double' else 'f32'}_to_{'i32' if target.is_packed else target}"
        text = math_c(whole, text)
        return Code(_wrap_packed(text, target) if target.is_packed else text)
    if target.is_integer and source.is_integer and target.is_packed:
        return Code(_wrap_packed(text, target))
    return Code(f"({target.compute_c})({text})")


def _condition(text: str) -> str:
    """A bool as C computes it, an int, without the cast to the type that stores it."""
    return text.removeprefix("(uint8_t)")


def _wrap_packed(text: str, target: DType) -> str:
    """The low bits of an integer as a 4-bit or 2-bit one: what a store and a load would make of it."""
    mask = (1 << target.bits) - 1
    if target.kind == "uint":
        return f"(uint8_t)((uint64_t)({text}) & {mask}u)"
    sign = 1 << (target.bits - 1)
    return f"(int8_t)((int)(((uint64_t)({text}) & {mask}u) ^ {sign}u) - {sign})"


def load_c(dtype: DType, pointer: str, index: str) -> str:
    """C that reads element `index` as a value of the computed type."""
    pointer = marked_name(pointer)
    if dtype.is_packed and dtype.is_float:
        return math_c(f"mcc_{dtype}_to_f32", f"mcc_load_u{dtype.bits}({pointer}, {index})")
    if dtype.is_packed:
        return math_c(f"mcc_load_{dtype}", pointer, index)
    element = f"{pointer}[{index}]"
    return math_c(f"mcc_{dtype}_to_f32", element) if dtype.is_narrow_float else element


def store_c(dtype: DType, pointer: str, index: str, value: str) -> str:
    """A C statement that writes a value of the computed type to element `index`."""
    pointer = marked_name(pointer)
    if dtype.is_packed and dtype.is_float:
        return math_c(f"mcc_store_u{dtype.bits}", pointer, index, f"mcc_f32_to_{dtype}({value})") + ";"
    if dtype.is_packed:
        return math_c(f"mcc_store_{dtype}", pointer, index, value) + ";"
    if dtype.is_narrow_float:
        value = math_c(f"mcc_f32_to_{dtype}", value)
    return f"{pointer}[{index}] = {value};"


def to_statements(
    expr: Expr, operands: Sequence[str], indices: Sequence[str] = (), local: str = "t"
) -> tuple[list[str], str]:
    """C statements that define locals for whatever is used more than once, and the C of the value itself. Operands are
    given as C that needs no brackets."""
    seen = uses(expr)
    lines: list[str] = []
    names: dict[Expr, str] = {}

    def coded(node: Expr) -> Code:
        match node:
            case Operand():
                return Code(operands[node.index])
            case Index():
                return Code(f"(int64_t)({indices[node.axis]})")
            case Literal():
                return _literal(node.value, node.dtype)
            case Size():
                return Code(f"(int64_t)({dim_c(node.dim)})")
            case Cast() if (near := nearest(node)) and all(seen[step] == 1 for step in near[2]):
                return Code(math_c(f"mcc_f32_near_{node.dtype}", printed(near[0]).text, printed(near[1]).text))
            case Cast():
                return _cast(printed(node.argument), node.argument.dtype, node.dtype, node.saturate)
            case Apply():
                return _apply(node, [printed(arg) for arg in node.arguments])
        raise TypeError(f"not an expression: {node!r}")

    def printed(node: Expr) -> Code:
        if node in names:
            return Code(names[node])
        code = coded(node)
        simple = isinstance(node, Literal | Index) or plain(code.text).isidentifier()
        if not simple and seen[node] > 1:
            names[node] = f"{local}{len(names)}"
            lines.append(f"const {node.dtype.compute_c} {names[node]} = {code.text};")
            return Code(names[node])
        return code

    return lines, printed(expr).text
