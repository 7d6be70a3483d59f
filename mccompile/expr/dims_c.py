"""Dimensions as C text: what the sizes and addresses of a model are where they are known only at run time.

Invariant: the text has the value of the dimension for every value of its symbols, as C integers of type mcc_index.
Names of symbols are marked (base/marked.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.dims import Dim, Function, Symbol, bounds, symbols
from ..base.errors import InternalError
from ..base.marked import named, sized, summed
from .ir import Expr, Size, walk


def dim_c(dim: Dim, where: str = "") -> str:
    """A symbol is a C variable of its name, or what `where` makes of that when it stands in front: a field."""
    if isinstance(dim, int):
        return str(dim)
    parts = []
    for atoms, coefficient in dim.terms:
        factors = [where + named(atom.name) if isinstance(atom, Symbol) else _function_c(atom, where) for atom in atoms]
        parts.append(" * ".join(factors if coefficient == 1 else [*factors, str(coefficient)]))
    if dim.constant:
        parts.append(str(dim.constant))
    return summed(parts)


def operand_c(dim: Dim) -> str:
    """The same, fit to be an operand of anything: `i % n * 9` is not `i % (n * 9)`."""
    return dim_c(dim) if _is_atom(dim) else f"({dim_c(dim)})"


def size_c(dim: Dim) -> str:
    """A dimension as part of an expression of mcc_index, fit to be an operand: numbers are marked as sizes."""
    return sized(dim) if isinstance(dim, int) else operand_c(dim)


def stride_c(dim: Dim) -> str:
    """The same as the last factor of a product."""
    return offset_c(dim) if _is_product(dim) else size_c(dim)


def offset_c(dim: Dim) -> str:
    """The same as a term of a sum."""
    return sized(dim) if isinstance(dim, int) else dim_c(dim)


def _is_product(dim: Dim) -> bool:
    return not isinstance(dim, int) and len(dim.terms) == 1 and dim.constant == 0


def _is_atom(dim: Dim) -> bool:
    """A number, the name of a symbol, or C in brackets."""
    if isinstance(dim, int):
        return dim >= 0
    return _is_product(dim) and all(len(atoms) == coefficient == 1 for atoms, coefficient in dim.terms)


def sizes_in(dims: Iterable[Dim], expressions: Iterable[Expr] = ()) -> set[str]:
    """Names of what is known only at run time."""
    inside = [node.dim for expr in expressions for node in walk(expr) if isinstance(node, Size)]
    return {symbol.name for dim in (*dims, *inside) for symbol in symbols(dim)}


def _function_c(function: Function, where: str) -> str:
    a, b = (f"({dim_c(arg, where)})" for arg in function.args)
    (low, _), (divisor, _) = bounds(function.args[0]), bounds(function.args[1])
    match function.name:
        case "min":
            return f"({a} < {b} ? {a} : {b})"
        case "max":
            return f"({a} > {b} ? {a} : {b})"
    if divisor <= 0:
        raise InternalError(f"{function} by a number that may be 0 or less cannot be written in C")
    if low < 0:  # C rounds towards zero
        return f"(({a} % {b} + {b}) % {b})" if function.name == "mod" else f"(({a} - ({a} % {b} + {b}) % {b}) / {b})"
    return f"({a} {'/' if function.name == 'floordiv' else '%'} {b})"
