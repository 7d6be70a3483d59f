"""Operands that say sizes, axes or positions and are computed at run time.

The shape of the result is what the model declares; how elements move follows from expressions over the elements of
those operands. Invariant: a run whose operands mean another shape, or nothing at all, ends with a status before its
results count; until then no position that they lead to lies outside of its tensor, because gathers clamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations

import numpy as np

from ...base.dims import Dim, static, symbols
from ...base.dtypes import bool_, i64
from ...base.tensor import Shape, TensorType
from ...expr.ir import Expr, Operand, apply, cast, index, literal, operand, operands_used, rebuild, size
from ...kinds.gather import Gather
from ...program.ir import If, Measure, Stop, View, walk
from ..api import Invalid, Lowering, Unsupported

MOST_CHOICES = 24  # of axes that are computed side by side


class Formula:
    """Expressions over single elements of a node's operands, and what is computed with them."""

    def __init__(self, to: Lowering) -> None:
        self.to = to
        self.ins: list[View] = []
        self.conditions: list[Expr] = []
        self.sizes: list[tuple[Dim, Expr]] = []

    def view(self, view: View) -> Expr:
        """An operand of the expressions: a view that broadcasts to the shape of what is mapped."""
        self.ins.append(view)
        return operand(len(self.ins) - 1, view.buffer.dtype)

    def raw(self, index: int, number: int = 0) -> Expr:
        """Element `number` of operand `index`, in its own type."""
        flat = self.to.reshape(self.to.input(index), (self.to.input(index).type.count,))
        return self.view(self.to.reshape(flat.sliced(0, number, 1), ()))

    def element(self, index: int, number: int = 0) -> Expr:
        """The same as i64; just the number where it is known."""
        value = self.to.site.value(index)
        if value is not None and isinstance(known := value.reshape(-1)[number], int):
            return literal(known, i64)
        return cast(self.raw(index, number), i64)

    def elements(self, index: int) -> list[Expr]:
        return [self.element(index, number) for number in range(static(self.to.input(index).type.count))]

    def settle(self, dim: Dim, expr: Expr) -> None:
        """A size of the result is what the expression says: it is measured here, or known and checked."""
        if isinstance(dim, int):
            self.require(equals(expr, dim))
        else:
            self.sizes.append((dim, expr))

    def require(self, condition: Expr) -> None:
        """The run ends with MCC_ERR_SIZE unless this is true."""
        self.conditions.append(condition)

    def check(self) -> None:
        """Writes the calls for all that is required."""
        if self.conditions:
            wrong = self.map(apply("not", both(self.conditions)), ())
            why = "what is computed here is not what the model declares"
            provenance = self.to.provenance
            self.to.body.append(If(wrong, [Stop(why, provenance, "SIZE")], [], provenance))
        self.conditions = []
        for dim, expr in self.sizes:
            measured(self.to, dim, self.map(expr, ()))
        self.sizes = []

    def map(self, expr: Expr, shape: Shape) -> View:
        used = sorted(operands_used(expr))
        numbers = {index: number for number, index in enumerate(used)}
        renamed = rebuild(
            expr, lambda node: operand(numbers[node.index], node.dtype) if isinstance(node, Operand) else None
        )
        return self.to.map(renamed, [self.ins[index] for index in used], shape)

    def along(self, expr: Expr, axis: int, shape: Shape) -> View:
        """A vector along one axis, seen in `shape`; `expr` has the position on it as index(0)."""
        dims = tuple(shape[axis] if a == axis else 1 for a in range(len(shape)))
        return self.to.reshape(self.map(expr, (shape[axis],)), dims).broadcast_to(shape)


def is_given(to: Lowering, dim: Dim) -> bool:
    """Does a size follow from others, of inputs or measured before?"""
    given = {symbol for _, buffer in to.program.inputs for size in buffer.shape for symbol in symbols(size)}
    items = (*walk(to.program.body), *walk(to.body))
    return symbols(dim) <= given | {item.symbol for item in items if isinstance(item, Measure)}


def measured(to: Lowering, dim: Dim, count: View) -> None:
    """From here on the size of a result is the number in `count`."""
    (symbol,) = symbols(dim)
    to.body.append(Measure(symbol, count, to.provenance))


def numbers(to: Lowering, dims: Sequence[Dim]) -> View:
    """Dimensions as a vector of numbers, for what computes with them."""
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) == len(dims):
        return to.constant(np.array(known, np.int64))
    element = size(dims[-1])
    for place, dim in reversed(list(enumerate(dims[:-1]))):
        element = apply("select", apply("equal", index(0), literal(place, i64)), size(dim), element)
    return to.map(element, [], (len(dims),))


def number(value: Dim) -> Expr:
    return size(value)


def both(conditions: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: apply("and", a, b), conditions, literal(True, bool_))


def either(conditions: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: apply("or", a, b), conditions, literal(False, bool_))


def equals(expr: Expr, value: Dim) -> Expr:
    return apply("equal", expr, number(value))


def clamped(expr: Expr, low: int, high: Dim) -> Expr:
    return apply("max", apply("min", expr, number(high)), number(low))


def from_front(expr: Expr, count: Dim) -> Expr:
    """Negative positions count from the end."""
    return apply("select", apply("less", expr, number(0)), apply("add", expr, number(count)), expr)


def must_equal(to: Lowering, index: int, wanted: Sequence[int]) -> None:
    """Operand `index` must hold these numbers when the model runs."""
    formula = Formula(to)
    for expr, value in zip(formula.elements(index), wanted, strict=True):
        formula.require(equals(expr, value))
    formula.check()


def static_shape(type: TensorType) -> tuple[int, ...]:
    """The shape of an operand that must be known where others are not."""
    if not type.is_static:
        why = f"the size of {type} is known only at run time, and so is an operand"
        raise Unsupported(why, "fix the size with --dim or --shape, or make the operand a constant of the model")
    return type.static_shape


def static_count(type: TensorType) -> int:
    count = type.count
    if not isinstance(count, int):
        raise Unsupported(f"how many elements {type} has is known only at run time")
    return count


# -- axes that are computed at run time


def axes_mask(formula: Formula, index: int, rank: int) -> Expr:
    """A bit for each axis that the operand names."""
    named = [from_front(axis, rank) for axis in formula.elements(index)]
    bits = [
        apply("select", either([equals(axis, number_) for axis in named]), number(1 << number_), number(0))
        for number_ in range(rank)
    ]
    return reduce(lambda a, b: apply("add", a, b), bits, number(0))


def mask_of(axes: Sequence[int]) -> int:
    return sum(1 << axis for axis in axes)


def is_one_of(mask: Expr, choices: Sequence[Sequence[int]]) -> Expr:
    return either([equals(mask, mask_of(choice)) for choice in choices])


def axes_choices(rank: int, count: int) -> list[tuple[int, ...]]:
    """Every set of `count` axes."""
    return list(combinations(range(rank), count))


def must_name(to: Lowering, index: int, rank: int, choices: Sequence[Sequence[int]]) -> None:
    """The axes in operand `index` must be one of these sets."""
    if not choices:
        raise Invalid("no axes lead to the shape that the model declares")
    formula = Formula(to)
    formula.require(is_one_of(axes_mask(formula, index, rank), choices))
    formula.check()


def chosen(formula: Formula, conditions: Sequence[Expr], views: Sequence[View]) -> View:
    """The first view whose condition is true (the last, if none is), all of one shape."""
    if len(views) > MOST_CHOICES:
        raise Unsupported(f"{len(views)} sets of axes are possible", "make the axes a constant of the model")
    result = formula.view(views[-1])
    for condition, view in reversed(list(zip(conditions, views, strict=True))[:-1]):
        result = apply("select", condition, formula.view(view), result)
    return formula.map(result, views[0].shape) if len(views) > 1 else views[0]


def gathered(to: Lowering, x: View, places: dict[int, View], shape: Shape) -> View:
    """Elements of x at places (per axis of x, in the result's shape); the other axes stay as they are."""
    if not places:
        return x
    order = sorted(places)
    axes = tuple(-1 - order.index(axis) if axis in places else axis for axis in range(len(shape)))
    return to.call(Gather(axes), [x, *(places[axis] for axis in order)], TensorType(x.buffer.dtype, shape))[0]
