"""Prints an expression over integers as C over vectors of sums (mcc_dot.h): what is made of dot products.

Lanes are i32 (int8 and uint8 widened), and i64 on the way; bytes among them may be made of floats. `integer_refusal`
says why something else cannot be printed.
Invariant: every lane gets the bits that scalar C would give.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..base.dtypes import DType, f32, i8, i32, i64, u8
from ..base.marked import called, plain
from .ir import Apply, Cast, Expr, Literal, Operand, operand, rebuild, uses, walk
from .itself import asked_once
from .scalar_c import literal_c
from .vector_c import refusal, to_vector_statements

_LANES = (i8, u8, i32)
_OF_I32 = frozenset({"add", "sub", "mul", "max", "min", "high_sum", "saturate_i8", "saturate_u8"})
_OF_I64 = frozenset({"add"})
_BYTES = {u8: "{{1}} & mcc_set_{0}(255)", i8: "{{1}} << 24 >> 24"}  # what is left of vectors of i32


@asked_once
def integer_refusal(expr: Expr) -> str:
    """Why vectors of sums cannot compute the expression and store it as int8, uint8 or float, or nothing."""
    expr, made = _bytes_of_floats(expr)
    if made:
        return next(filter(None, map(integer_refusal, (expr, *made))), "")
    of_floats = _of_floats(expr)
    if of_floats is not None:
        floats, inner = _floats(of_floats)
        return refusal(floats) or next(filter(None, map(_refusal, (n for e in inner for n in walk(e)))), "")
    if expr.dtype not in (i8, u8):
        return f"vectors of sums are not stored as {expr.dtype}"
    return next(filter(None, map(_refusal, walk(expr))), "")


def _of_floats(expr: Expr) -> Expr | None:
    """The float that is stored, maybe as a byte."""
    if isinstance(expr, Cast) and expr.dtype in (i8, u8) and expr.argument.dtype is f32:
        return expr.argument
    return expr if expr.dtype is f32 else None


def _first_free(expr: Expr) -> int:
    """The number of an operand that the expression does not have."""
    return 1 + max((node.index for node in walk(expr) if isinstance(node, Operand)), default=-1)


def _bytes_of_floats(expr: Expr) -> tuple[Expr, list[Expr]]:
    """What is computed where bytes that are made of floats on the way are further operands; and those bytes."""
    made: list[Expr] = []
    first = _first_free(expr)

    def as_operand(node: Expr) -> Expr | None:
        if node is expr or not isinstance(node, Cast) or node.dtype not in _BYTES or node.argument.dtype is not f32:
            return None
        if node not in made:
            made.append(node)
        return operand(first + made.index(node), node.dtype)

    return rebuild(expr, as_operand), made


def _floats(expr: Expr) -> tuple[Expr, list[Expr]]:
    """What is computed of floats, where integers that become floats are further operands; and those integers."""
    inner: list[Expr] = []
    first = _first_free(expr)

    def as_operand(node: Expr) -> Expr | None:
        if not isinstance(node, Cast) or node.dtype is not f32 or node.argument.dtype not in _LANES:
            return None
        if node.argument not in inner:
            inner.append(node.argument)
        return operand(first + inner.index(node.argument), f32)

    return rebuild(expr, as_operand), inner


def _refusal(node: Expr) -> str:
    match node:
        case Operand() | Literal() if node.dtype in (*_LANES, i64):
            return ""
        case Cast() if node.dtype in (i8, u8) and node.argument.dtype in _LANES:
            low, high = _reach(node.argument)
            fits = node.dtype.low <= low and high <= node.dtype.high
            return "" if fits else f"values that overflow {node.dtype} are not wrapped in SIMD"
        case Cast() if node.dtype is i32 and node.argument.dtype in (*_LANES, i64):
            return ""
        case Apply(function="shift_right" | "shift_even") if node.dtype in (i32, i64):
            return "" if isinstance(node.arguments[1], Literal) else "shifts by computed numbers have no vector form"
        case Apply(function="fixed_product" | "fixed_round"):
            return ""
        case Apply() if node.dtype is i32 and node.function in _OF_I32:
            return ""
        case Apply() if node.dtype is i64 and node.function in _OF_I64:
            return ""
    return f"{node} has no vector form"


def _reach(node: Expr) -> tuple[float, float]:
    """The lowest and the highest value, as far as it can be told."""
    match node:
        case Literal():
            return float(node.value), float(node.value)
        case Cast() if node.argument.dtype in (i8, u8):
            return _reach(node.argument)
        case Apply(function="saturate_i8"):
            return i8.low, i8.high
        case Apply(function="saturate_u8"):
            return u8.low, u8.high
        case Apply(function="max" | "min"):
            choose = max if node.function == "max" else min
            (a, b), (c, d) = (_reach(argument) for argument in node.arguments)
            return choose(a, c), choose(b, d)
    return node.dtype.low, node.dtype.high


def to_integer_statements(
    expr: Expr, operands: Sequence[str], lanes: int, store: str, local: str = "t", of: str = ""
) -> list[str]:
    """C statements that compute the value and store it. `store` has places for the function ({0}) and the value ({1}),
    operands are given as C of vectors; `of` is what names of functions call these, where they are not mcc_dot.h's."""
    are_names = tuple(plain(text).isidentifier() for text in operands)
    lines, how, value = _form(expr, are_names, lanes, of or f"i32x{lanes}")
    texts = {str(number): text for number, text in enumerate(operands)} | {"local": local}
    filled = _PLACE.sub(lambda place: texts[place[1]], "\n".join((*lines, value))).split("\n")
    return [*filled[:-1], store.format(how, filled[-1])]


_LOCAL, _PLACE = "ªlocalª", re.compile(r"ª(\w+?)\.?ª")  # of what a form leaves open


@asked_once
def _form(expr: Expr, are_names: tuple[bool, ...], lanes: int, of: str) -> tuple[tuple[str, ...], str, str]:
    """Statements, the function that stores and the value, for all tiles that compute the expression: operands and the
    beginning of the names of locals are left open."""
    operands = [f"ª{number}ª" if is_name else f"ª{number}.ª" for number, is_name in enumerate(are_names)]
    lines, how, value = _printed(expr, operands, lanes, _LOCAL, of)
    return tuple(lines), how, value


def _printed(expr: Expr, operands: Sequence[str], lanes: int, local: str, of: str) -> tuple[list[str], str, str]:
    before: list[str] = []
    rest, made = _bytes_of_floats(expr)
    loads = [*operands, *[""] * _first_free(expr)][: _first_free(expr)]
    if made:
        for number, byte in enumerate(made):
            name = f"{local}b{number}"
            lines, how, value = _printed(byte, operands, lanes, f"{name}_", of)
            kept = f"const mcc_{of} {name} = {_BYTES[byte.dtype].format(of)};"
            before += [*lines, kept.format(how, value)]
            loads.append(name)
        lines, how, value = _printed(rest, loads, lanes, local, of)
        return [*before, *lines], how, value
    of_floats = _of_floats(expr)
    if of_floats is not None:
        floats, inner = _floats(of_floats)
        for number, integer in enumerate(inner):
            printer = _Printer(integer, operands, lanes, f"{local}{number}_", of)
            loads.append(f"mcc_i32_to_f32x{lanes}({printer.text(integer)})")
            before += printer.lines
        lines, text = to_vector_statements(floats, loads, lanes, f"{local}f")
        if expr.dtype is f32:
            return [*before, *lines], f"f32x{lanes}", text
        return [*before, *lines], f"{expr.dtype}_{of}", f"mcc_f32_to_i32x{lanes}({text})"
    printer = _Printer(expr, operands, lanes, local, of)
    stored, how = expr, f"{expr.dtype}_{of}"
    if isinstance(expr, Cast):
        stored = expr.argument
        if isinstance(stored, Apply) and stored.function == f"saturate_{expr.dtype}":
            stored, how = stored.arguments[0], f"saturated_{how}"
    text = printer.text(stored)
    return printer.lines, how, text


class _Printer:
    def __init__(self, expr: Expr, operands: Sequence[str], lanes: int, local: str, of: str) -> None:
        self.operands, self.local = operands, local
        self.i32, self.i64 = of, f"i64x{lanes}"
        self.uses = uses(expr)
        self.names: dict[Expr, str] = {}
        self.lines: list[str] = []

    def of(self, dtype: DType) -> str:
        return self.i64 if dtype is i64 else self.i32

    def text(self, node: Expr) -> str:
        if node in self.names:
            return self.names[node]
        text = self.printed(node)
        if self.uses[node] == 1 or isinstance(node, Literal) or plain(text).isidentifier():
            return text
        name = self.names[node] = f"{self.local}{len(self.names)}"
        self.lines.append(f"const mcc_{self.of(node.dtype)} {name} = {text};")
        return name

    def printed(self, node: Expr) -> str:
        match node:
            case Operand():
                return self.operands[node.index]
            case Literal():
                wide = i64 if node.dtype is i64 else i32
                return f"mcc_set_{self.of(node.dtype)}({literal_c(node.value, wide)})"
            case Cast():
                inner = self.text(node.argument)
                return f"mcc_narrow_{self.i64}({inner})" if node.argument.dtype is i64 else inner
            case Apply(function="shift_right" | "shift_even" as name):
                bits = node.arguments[1]
                assert isinstance(bits, Literal)
                return called(f"mcc_{name}_{self.of(node.dtype)}", (self.text(node.arguments[0]), str(int(bits.value))))
            case Apply():
                of = self.of(node.arguments[0].dtype)
                return called(f"mcc_{node.function}_{of}", map(self.text, node.arguments))
        raise TypeError(f"not for vectors of sums: {node}")
