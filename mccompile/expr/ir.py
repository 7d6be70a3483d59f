"""Scalar expressions: what one element of a result is, given one element of each operand.

Invariant: every node knows its element type, and arguments have the types their function demands (`apply` checks).
Where operands lie and how they broadcast is not said here: that is in the views of the call that carries the
expression. Values that come from the model's weights are operands, never literals (code and values are apart); literals
come from operator definitions and attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..base.dims import Dim
from ..base.dtypes import DType, bool_, i64
from ..base.errors import InternalError
from ..base.records import cached_property, dataclass
from ..base.text import write
from .functions import FUNCTIONS


@dataclass(frozen=True)
class Expr:
    dtype: DType

    @property
    def args(self) -> tuple[Expr, ...]:
        return ()

    def expression_text(self) -> str:
        """What `expr/text.py` reads."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.expression_text()

    def __getstate__(self) -> dict[str, object]:
        """Another process hashes strings to other numbers."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}


@dataclass(frozen=True)
class Operand(Expr):
    """The element of operand `index` at the current position."""

    index: int

    def expression_text(self) -> str:
        return f"x{self.index}.{self.dtype}"


@dataclass(frozen=True)
class Index(Expr):
    """The current position along an axis of the result, as i64."""

    axis: int

    def expression_text(self) -> str:
        return f"index{self.axis}"


@dataclass(frozen=True)
class Size(Expr):
    """A size that is known only at run time, as i64."""

    dim: Dim

    def expression_text(self) -> str:
        return f"size({write(self.dim)})"


@dataclass(frozen=True)
class Literal(Expr):
    value: int | float | bool

    def expression_text(self) -> str:
        return f"{self.dtype}({write(self.value)})"


@dataclass(frozen=True)
class Apply(Expr):
    function: str
    arguments: tuple[Expr, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.dtype, self.function, self.arguments))

    def __hash__(self) -> int:
        return self._hash

    @property
    def args(self) -> tuple[Expr, ...]:
        return self.arguments

    def expression_text(self) -> str:
        return f"{self.function}({', '.join(arg.expression_text() for arg in self.arguments)})"


@dataclass(frozen=True)
class Cast(Expr):
    """Conversion as ONNX Cast does it; `saturate` matters for 8-bit floats only."""

    argument: Expr
    saturate: bool = True

    @property
    def args(self) -> tuple[Expr, ...]:
        return (self.argument,)

    def expression_text(self) -> str:
        return f"to{'' if self.saturate else '_wrap'}.{self.dtype}({self.argument.expression_text()})"


def operand(index: int, dtype: DType) -> Expr:
    return Operand(dtype, index)


def index(axis: int) -> Expr:
    return Index(i64, axis)


def size(dim: Dim) -> Expr:
    return Literal(i64, dim) if isinstance(dim, int) else Size(i64, dim)


def number(dim: Dim, dtype: DType) -> Expr:
    """A size as a number of some type."""
    return literal(dim, dtype) if isinstance(dim, int) else cast(Size(i64, dim), dtype)


def literal(value: int | float | bool, dtype: DType) -> Expr:
    if dtype.is_float:
        return Literal(dtype, float(value))
    return Literal(dtype, bool(value) if dtype is bool_ else int(value))


def _is_one(factor: Expr) -> bool:
    return isinstance(factor, Literal) and factor.value == 1 and factor.dtype is not bool_


def apply(function: str, *args: Expr) -> Expr:
    """A function of the table applied to arguments whose types are checked here. An integer compared with itself is a
    literal: compilers warn of such comparisons. A factor or divisor of 1 changes no value, and is left out."""
    signature = FUNCTIONS.get(function)
    if signature is None:
        raise InternalError(f"no scalar function {function!r}")
    try:
        dtype = signature.result(tuple(arg.dtype for arg in args))
    except ValueError as problem:
        raise InternalError(f"{function}({', '.join(str(arg.dtype) for arg in args)}): {problem}") from None
    if function in _OF_ITSELF and args[0] == args[1] and not args[0].dtype.is_float:
        return literal(_OF_ITSELF[function], dtype)
    if function in ("mul", "div") and _is_one(args[1]):
        return args[0]
    if function == "mul" and _is_one(args[0]):
        return args[1]
    return Apply(dtype, function, args)


_OF_ITSELF = {"equal": True, "less_equal": True, "greater_equal": True, "less": False, "greater": False, "xor": False}


def cast(argument: Expr, dtype: DType, saturate: bool = True) -> Expr:
    """Floats that are widened and narrowed again are what they were."""
    if argument.dtype is dtype:
        return argument
    if not isinstance(argument, Cast) or argument.argument.dtype is not dtype:
        return Cast(dtype, argument, saturate)
    if dtype.is_float and argument.dtype.is_float and 16 <= dtype.bits < argument.dtype.bits:
        return argument.argument
    return Cast(dtype, argument, saturate)


def walk(expr: Expr) -> Iterator[Expr]:
    """All nodes, arguments first."""
    found, waiting = [], [expr]
    while waiting:
        found.append(waiting.pop())
        waiting.extend(found[-1].args)
    return reversed(found)


def rebuild(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The tree with every node for which `change` gives another replaced, top down."""
    changed = change(expr)
    if changed is not None:
        return changed
    match expr:
        case Apply():
            return apply(expr.function, *(rebuild(arg, change) for arg in expr.arguments))
        case Cast():
            return cast(rebuild(expr.argument, change), expr.dtype, expr.saturate)
    return expr


def substitute(expr: Expr, operands: Mapping[int, Expr] | Sequence[Expr]) -> Expr:
    """Operands replaced by expressions; all of those used must be given."""
    return rebuild(expr, lambda node: operands[node.index] if isinstance(node, Operand) else None)


def uses(expr: Expr) -> dict[Expr, int]:
    """How often each node is used by others; the expression itself once."""
    found: dict[Expr, int] = {}

    def count(node: Expr) -> None:
        found[node] = found.get(node, 0) + 1
        if found[node] == 1:
            for argument in node.args:
                count(argument)

    count(expr)
    return found


def operands_used(expr: Expr) -> set[int]:
    return {node.index for node in walk(expr) if isinstance(node, Operand)}
