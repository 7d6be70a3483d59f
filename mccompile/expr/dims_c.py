"""Dimensions as C text: what the sizes and addresses of a model are where they are known only at run time.

Invariant: the text has the value of the dimension for every value of its symbols, as C integers of type mcc_index, and
can be a factor or a term of a sum as it stands.
"""

from __future__ import annotations

from ..base.dims import Dim, Function, Symbol, bounds
from ..base.errors import InternalError


def dim_c(dim: Dim) -> str:
    """A symbol is a C variable of its name."""
    if isinstance(dim, int):
        return str(dim)
    parts = []
    for atoms, coefficient in dim.terms:
        factors = [atom.name if isinstance(atom, Symbol) else _function_c(atom) for atom in atoms]
        parts.append(" * ".join(factors if coefficient == 1 else [*factors, str(coefficient)]))
    if dim.constant:
        parts.append(str(dim.constant))
    return " + ".join(parts).replace("+ -", "- ")


def factor_c(dim: Dim) -> str:
    """The same, fit to be multiplied."""
    text = dim_c(dim)
    return f"({text})" if not isinstance(dim, int) and (len(dim.terms) > 1 or dim.constant) else text


def _function_c(function: Function) -> str:
    a, b = (f"({dim_c(arg)})" for arg in function.args)
    match function.name:
        case "min":
            return f"({a} < {b} ? {a} : {b})"
        case "max":
            return f"({a} > {b} ? {a} : {b})"
    if bounds(function.args[0])[0] < 0 or bounds(function.args[1])[0] <= 0:
        raise InternalError(f"{function} of negative numbers has no C form")
    return f"({a} {'/' if function.name == 'floordiv' else '%'} {b})"
