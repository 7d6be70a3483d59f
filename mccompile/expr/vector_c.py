"""Prints an expression as C over vectors of floats (mcc_vec.h, mcc_vecmath.h).

Only what vectors can do: 32-bit floats, and truth values that comparisons make on the way. `refusal` says why something
else cannot be printed, so that the portable kernel takes it. Invariant: every lane gets what scalar C would give, but
functions of mcc_vecmath.h may differ from libm's in the last places.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dtypes import bool_, f32
from .ir import Apply, Expr, Index, Literal, Operand, walk
from .scalar_c import literal_c

_ARITHMETIC = frozenset({"add", "sub", "mul", "neg"})
_COMPARISONS = frozenset({"equal", "less", "less_equal", "greater", "greater_equal"})
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_PLAIN = frozenset({"abs", "sqrt", "floor", "ceil", "trunc", "round_even", "select"})
_MATH = frozenset({"exp", "expm1", "log", "log1p", "tanh", "erf"})  # of mcc_vecmath.h
_BOUNDS = {"max": "at_least", "min": "at_most"}
_OTHERS = frozenset({"div", "not", "is_nan"})
_OF_MASKS = frozenset({*_LOGIC, "not", "equal"})  # what masks may be given to
_KNOWN = frozenset({*_LOGIC, *_BOUNDS}) | _ARITHMETIC | _COMPARISONS | _PLAIN | _MATH | _OTHERS


def refusal(expr: Expr) -> str:
    """Why vectors cannot compute the expression, or nothing."""
    for node in walk(expr):
        match node:
            case Operand() if node.dtype is not f32:
                return f"vectors of {node.dtype} are not supported"
            case Index():
                return "positions are not known in vectors"
            case Apply() if node.function not in _KNOWN:
                return f"{node.function} has no vector form"
            case Apply() if node.function not in _OF_MASKS and node.arguments[-1].dtype is bool_:
                return f"{node.function} of truth values has no vector form"
        if node.dtype not in (f32, bool_) or not isinstance(node, Operand | Literal | Apply):
            return f"{node.dtype} is not computed in vectors"
    return "" if expr.dtype is f32 else f"vectors of {expr.dtype} are not stored"


def refusals(expressions: Sequence[Expr]) -> str:
    """The first reason why vectors cannot compute all of these, or nothing."""
    return next(filter(None, map(refusal, expressions)), "")


def uses_math(expr: Expr) -> bool:
    """Does it need mcc_vecmath.h?"""
    return any(isinstance(node, Apply) and node.function in _MATH for node in walk(expr))


def to_vector_statements(
    expr: Expr, operands: Sequence[str], lanes: int, local: str = "t"
) -> tuple[list[str], str]:
    """C statements that define locals for whatever is used more than once, and the C of the value itself. Operands are
    given as C of vectors."""
    return _Printer(expr, operands, lanes, local).run()


class _Printer:
    def __init__(self, expr: Expr, operands: Sequence[str], lanes: int, local: str) -> None:
        self.expr, self.operands, self.local = expr, operands, local
        self.f32, self.i32 = f"f32x{lanes}", f"i32x{lanes}"
        self.uses: dict[Expr, int] = {}
        self.names: dict[Expr, str] = {}
        self.lines: list[str] = []

    def run(self) -> tuple[list[str], str]:
        self.count(self.expr)
        return self.lines, self.text(self.expr)

    def count(self, node: Expr) -> None:
        self.uses[node] = self.uses.get(node, 0) + 1
        if self.uses[node] == 1:
            for arg in node.args:
                self.count(arg)

    def text(self, node: Expr) -> str:
        if node in self.names:
            return self.names[node]
        text = self.printed(node)
        if self.uses[node] == 1 or isinstance(node, Literal) or text.isidentifier():
            return text
        name = self.names[node] = f"{self.local}{len(self.names)}"
        kind = self.i32 if node.dtype is bool_ else self.f32
        self.lines.append(f"const mcc_{kind} {name} = {text};")
        return name

    def printed(self, node: Expr) -> str:
        match node:
            case Operand():
                return self.operands[node.index]
            case Literal() if node.dtype is bool_:
                return f"mcc_set_{self.i32}({-1 if node.value else 0})"
            case Literal():
                return f"mcc_set_{self.f32}({literal_c(node.value, f32)})"
            case Apply():
                return self.applied(node)
        raise TypeError(f"not for vectors: {node}")

    def applied(self, node: Apply) -> str:
        name = node.function
        if name in _BOUNDS:
            return self.bounded(node)
        args = [self.text(arg) for arg in node.arguments]
        if name == "div":
            return f"({args[0]} / {args[1]})"
        if name == "equal" and node.arguments[0].dtype is bool_:
            return f"~({args[0]} ^ {args[1]})"
        if name in _LOGIC:
            return f"({args[0]} {_LOGIC[name]} {args[1]})"
        if name == "not":
            return f"~{args[0]}"
        if name == "is_nan":
            return f"~mcc_equal_{self.f32}({args[0]}, {args[0]})"
        return f"mcc_{name}_{self.f32}({', '.join(args)})"

    def bounded(self, node: Apply) -> str:
        """Maxima and minima; one instruction where one side is known to be a number."""
        a, b = node.arguments
        x, y = self.text(a), self.text(b)
        for one, other, bound in ((x, y, b), (y, x, a)):
            if isinstance(bound, Literal) and bound.value == bound.value:
                return f"mcc_{_BOUNDS[node.function]}_{self.f32}({one}, {other})"
        return f"mcc_{node.function}_{self.f32}({x}, {y})"
