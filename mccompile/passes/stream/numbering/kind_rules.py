"""The numbers of each kind's result: from which elements of the operands an element is computed, and how.

Where a kind slides over an axis, or treats the places of an axis alike, the number of an element tells nothing of where
it lies along that axis: the same elements give the same number in a longer or shorter tensor. A kind without a rule
here is taken as a whole: each of its elements comes from all of all operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ....base.records import dataclass
from ....base.text import write
from ....expr.ir import Expr, Index, walk
from ....kinds.api import Kind, WithEpilogue
from .numbers import Numbers, joined, mixed, places, summed

AnyKind = TypeVar("AnyKind", bound=Kind)
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Operands:
    """Of a call. Axis 0 of each counts pushes."""

    numbers: Sequence[Numbers]
    known: Sequence[np.ndarray | None]  # the elements themselves, without that axis, where they are known
    results: Shapes


Rule = Callable[[Any, Operands], "Numbers | None"]
_RULES: dict[type[Kind], Rule] = {}


def numbered(kind: type[AnyKind]) -> Callable[[Callable[[AnyKind, Operands], Numbers | None]], Rule]:
    """Says that a rule is that of a kind."""

    def told(rule: Callable[[AnyKind, Operands], Numbers | None]) -> Rule:
        _RULES[kind] = rule
        return rule

    return told


def results_of(kind: Kind, of: Operands) -> list[Numbers]:
    """Of each result of a call."""
    rule = _RULES.get(type(kind))
    found = rule(kind, of) if rule else None
    if found is None:
        return [_of_all(kind, of, number) for number in range(len(of.results))]
    if isinstance(kind, WithEpilogue) and kind.epilogue is not None:
        found = expression(kind.epilogue, [found, *of.numbers[kind.fixed :]])
    return [found]


def _of_all(kind: Kind, of: Operands, number: int) -> Numbers:
    """Elements that each come from all of all operands."""
    whole = [summed(x, range(1, x.ndim), f"whole {x.shape[1:]}") for x in of.numbers]
    total = joined(f"{write(kind)} result {number}", *(each.reshape(-1) for each in whole))
    shape = (1, *of.results[number])
    total = total.reshape((-1, *(1 for _ in of.results[number])))
    return mixed(total + places(shape, range(1, len(shape)), "place"))


def expression(expr: Expr, operands: Sequence[Numbers]) -> Numbers:
    """Of a scalar expression over elements at one place."""
    axes = sorted({each.axis for each in walk(expr) if isinstance(each, Index)})
    shape = np.broadcast_shapes(*(each.shape for each in operands)) if operands else (1,)
    at = [places(shape, [axis + 1 for axis in axes], "index")] if axes else []
    return joined(expr.expression_text(), *operands, *at)


def name_of(kind: Kind, **alike: object) -> str:
    """A kind without its epilogue and what else is told apart otherwise."""
    without = {"epilogue": None} if isinstance(kind, WithEpilogue) else {}
    return write(replace(kind, **without, **alike))
