"""known_numbers: a constant of one element becomes a literal of an expression if its value decides how the expression
is computed.

Exponents for which there are products and roots, and numbers of bits to shift by. Each is a fact about values, and
recorded; all others stay operands, as do all in `--updatable` code. A trained exponent (as of GeM pooling) seldom has
such a form, so weights trained anew suit the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ...expr.ir import Apply, Cast, Expr, Operand, apply, literal, operand, operands_used, rebuild, walk
from ...expr.powers import known_power
from ...kinds.map import Map
from ...program.ir import CONSTANT, Call, Program, View
from ..api import Context

_SHIFTS = ("shift_left", "shift_right")


def known_numbers(program: Program, context: Context) -> None:
    if context.training.updatable:
        return
    for call in program.calls():
        if isinstance(call.kind, Map):
            found = dict(_numbers(call))
            numbers = {i: n for i, n in found.items() if context.training.may_use(_fact(call.ins[i], n))}
            if numbers:
                _replace(call, call.kind, numbers, program)


def _numbers(call: Call) -> Iterator[tuple[int, int | float]]:
    """Operands whose value gives an expression another form."""
    for node in walk(call.kind.expressions()[0]):
        exponent = _read(node)
        number = None if exponent is None else _of(call.ins[exponent])
        if exponent is not None and number is not None and _known(node, number) is not None:
            yield exponent, number


def _read(node: Expr) -> int | None:
    """The operand that is the exponent, or the number of bits."""
    if not isinstance(node, Apply) or node.function not in ("pow", *_SHIFTS):
        return None
    last = node.arguments[1]
    while isinstance(last, Cast):
        last = last.argument
    return last.index if isinstance(last, Operand) else None


def _of(view: View) -> int | float | None:
    """The number that a constant of one element is."""
    constant = view.buffer.constant
    if view.buffer.role != CONSTANT or constant is None or view.buffer.type.count != 1:
        return None
    array = np.asarray(constant.array).reshape(-1)
    return float(array[0]) if view.buffer.dtype.is_float else int(array[0])


def _known(node: Expr, number: int | float) -> Expr | None:
    assert isinstance(node, Apply)
    base, last = node.arguments
    if node.function == "pow":
        return known_power(base, number)
    return apply(node.function, base, literal(number, last.dtype))


def _fact(view: View, number: int | float) -> str:
    return f"{view.buffer.name} is {number:.9g}"


def _replace(call: Call, kind: Map, numbers: Mapping[int, int | float], program: Program) -> None:
    def with_number(node: Expr) -> Expr | None:
        number = numbers.get(index) if (index := _read(node)) is not None else None
        if number is None:
            return None
        known = _known(node, number)
        return None if known is None else rebuild(known, with_number)

    expr = rebuild(kind.expr, with_number)
    for index, number in numbers.items():
        program.assumptions[_fact(call.ins[index], number)] = None
    kept = [index for index in range(len(call.ins)) if index in operands_used(expr)]
    renamed = {index: position for position, index in enumerate(kept)}
    expr = rebuild(expr, lambda n: operand(renamed[n.index], n.dtype) if isinstance(n, Operand) else None)
    call.kind, call.ins = replace(kind, expr=expr), tuple(call.ins[index] for index in kept)
