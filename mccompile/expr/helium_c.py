"""Prints an expression over integers as C over vectors of four 32-bit integers (mcc_helium.h).

Operands of 8 bits are widened when they are loaded; only the result is narrowed again, by its store. `refusal` says why
something else cannot be printed. Invariant: every lane gets what scalar C would give.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dtypes import i8, i32, u8
from .ir import Apply, Cast, Expr, Literal, Operand, walk
from .scalar_c import literal_c
from .vector_c import Printer

_PLAIN = frozenset({"add", "sub", "mul", "max", "min", "high_sum"})
_SATURATE = {"saturate_i8": i8, "saturate_u8": u8}
_BYTES = (i8, u8)


def refusal(expr: Expr) -> str:
    """Why vectors cannot compute the expression, or nothing."""
    for node in walk(expr):
        match node:
            case Operand() if node.dtype in (*_BYTES, i32):
                continue
            case Literal() if node.dtype is i32:
                continue
            case Cast() if node.dtype is i32 and isinstance(node.argument, Operand):
                continue
            case Cast() if node is expr and node.dtype in _BYTES and node.argument.dtype is i32:
                continue
            case Apply() if node.dtype is i32 and (node.function in _PLAIN or node.function in _SATURATE):
                continue
            case Apply() if node.dtype is i32 and _is_shift(node):
                continue
        return f"{node} has no form in vectors of 32-bit integers"
    return "" if isinstance(expr, Cast) else f"vectors of {expr.dtype} are not stored"


def to_vector_statements(expr: Expr, operands: Sequence[str], local: str = "t") -> tuple[list[str], str]:
    """C statements that define locals for whatever is used more than once, and the C of the value itself. Operands are
    given as C of vectors."""
    return _IntegerPrinter(expr, operands, local).run()


def _is_shift(node: Apply) -> bool:
    by = node.arguments[-1]
    return node.function == "shift_right" and isinstance(by, Literal) and 1 <= by.value <= 31


class _IntegerPrinter(Printer):
    def c_type(self, node: Expr) -> str:
        return "mcc_helium_i32"

    def printed(self, node: Expr) -> str:
        match node:
            case Operand():
                return self.operands[node.index]
            case Literal():
                return f"mcc_helium_all({literal_c(node.value, i32)})"
            case Cast():
                return self.narrowed(node) if node is self.expr else self.text(node.argument)
            case Apply() if node.function in _SATURATE:
                limits = _SATURATE[node.function]
                low, high = (f"mcc_helium_all({literal_c(bound, i32)})" for bound in (limits.low, limits.high))
                return f"mcc_helium_max(mcc_helium_min({self.text(node.arguments[0])}, {high}), {low})"
            case Apply() if _is_shift(node):
                by = node.arguments[1]
                assert isinstance(by, Literal)
                return f"mcc_helium_shift_right({self.text(node.arguments[0])}, {int(by.value)})"
            case Apply():
                return f"mcc_helium_{node.function}({', '.join(map(self.text, node.arguments))})"
        raise TypeError(f"not for vectors: {node}")

    def narrowed(self, node: Cast) -> str:
        """The result, of which the lowest byte of each lane is stored."""
        argument = node.argument
        if isinstance(argument, Apply) and _SATURATE.get(argument.function) is node.dtype:
            return f"mcc_helium_{argument.function}({self.text(argument.arguments[0])})"
        return self.text(argument)
