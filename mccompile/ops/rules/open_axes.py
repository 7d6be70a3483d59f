"""Axes that a run names, where no shape is declared: the result has one of few shapes, and is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from ...base.dims import static
from ...base.tensor import Shape
from ...expr.ir import Expr, apply, index
from ...program.ir import View
from ..api import Lowering, Site
from .at_run_time import Formula, axes_mask, chosen, gathered, is_one_of, must_name, number


def is_declared(site: Site) -> bool:
    """Is the shape of the result told, or is there no choice but to ask for it?"""
    type = site.results[0] if site.results else None
    return (type is not None and type.is_static) or 0 in site.shape(0) or not site.type(0).is_static


def open_dims(site: Site, shapes: Sequence[Shape]) -> Shape:
    """Of a result that has one of these shapes; where there is a choice, their sizes are numbers."""
    if len(shapes) == 1:
        return shapes[0]
    sizes = [sorted({static(size) for size in each}) for each in zip(*shapes, strict=True)]
    return tuple(
        each[0] if len(each) == 1 else site.size(0, axis, each[-1], each[0], f"_{axis}")
        for axis, each in enumerate(sizes)
    )


def named_view(to: Lowering, operand: int, rank: int, views: Mapping[tuple[int, ...], View]) -> View:
    """The one of these views whose axes operand `operand` names, in the shape of the result."""
    shape, order = to.type().shape, list(views)
    must_name(to, operand, rank, order)
    formula = Formula(to)
    mask = axes_mask(formula, operand, rank)
    asked = [is_one_of(mask, [axes]) for axes in order]

    def at(axis: int) -> Expr:
        sizes = [number(view.shape[axis]) for view in views.values()]
        pairs = list(zip(asked, sizes, strict=True))[:-1]
        return reduce(lambda rest, pair: apply("select", pair[0], pair[1], rest), reversed(pairs), sizes[-1])

    for axis, dim in enumerate(shape):
        if not isinstance(dim, int):
            formula.settle(dim, at(axis))
    formula.check()

    def widened(view: View) -> View:
        differs = [axis for axis, dim in enumerate(shape) if view.shape[axis] != dim]
        inside = {axis: apply("min", index(0), number(view.shape[axis] - 1)) for axis in differs}
        return gathered(to, view, {axis: formula.along(expr, axis, shape) for axis, expr in inside.items()}, shape)

    return chosen(formula, asked, [widened(view) for view in views.values()])
