"""If: one of two regions runs. Both write the same buffers, so what follows need not know which it was.

A condition that is known is decided while the model is read; what is here is left for run time. Where the branches give
different sizes, both say how large theirs is, and from there on the size is a symbol of the If.
"""

from __future__ import annotations

from dataclasses import replace

from ..base.dims import product, upper
from ..base.dtypes import DType, bool_, i64, string
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, dense_strides
from ..expr.ir import literal, operand, size
from ..kinds.map import Map
from ..program.ir import Call, Item, Stop, View
from ..program.ir import If as IfItem
from .api import Fact, Invalid, Lowering, Operator, OwnOperator, Site, Unsupported
from .rules.at_run_time import measured


class RanksDiffer(Unsupported):
    """The branches give results of different rank; what reads them may tell which it has to be."""


@dataclass(frozen=True)
class If(Operator):
    no_gradient = "which branch runs is chosen by a condition, and branches have no rule"
    versions = (1, 11, 13, 16, 19, 21, 23, 24, 25)

    def infer(self, site: Site) -> list[Fact]:
        condition = site.type(0)
        if condition.dtype is not bool_ or condition.count != 1:
            raise Invalid(f"the condition is {condition}, not one bool")
        if len(site.regions) != 2:
            raise Invalid(f"it has {len(site.regions)} branches instead of two")
        then, otherwise = site.regions
        if not len(then.outputs) == len(otherwise.outputs) >= site.outputs:
            raise Invalid(
                f"it has {site.outputs} results, its branches give {len(then.outputs)} and {len(otherwise.outputs)}"
            )
        facts = []
        for number, (a, b) in enumerate(zip(then.outputs, otherwise.outputs, strict=True)):
            if a.type.dtype is not b.type.dtype:
                raise Invalid(f"result {number} is {a.type} in one branch and {b.type} in the other")
            if a.type.rank != b.type.rank:
                raise RanksDiffer(
                    f"result {number} is {a.type} in one branch and {b.type} in the other, and its rank must be known",
                    "make both branches give the same rank, or make the condition a constant",
                )
            if a.type != b.type and a.type.dtype is string:
                raise Unsupported(f"result {number} is {a.type} in one branch and {b.type} in the other")
            shape = (
                x if x == y else site.size(number, axis, max(upper(x), upper(y)), part=f"_{number}_{axis}")
                for axis, (x, y) in enumerate(zip(a.type.shape, b.type.shape, strict=True))
            )
            facts.append(Fact(TensorType(a.type.dtype, tuple(shape))))
        return facts

    def lower(self, to: Lowering) -> None:
        wanted = [number for number in range(len(to.node.outputs)) if to.wants(number)]
        results = {number: _Result(to, number) for number in wanted}
        bodies: list[list[Item]] = [[], []]
        for index, body in enumerate(bodies):
            made = to.region(index, body)
            if not (body and isinstance(body[-1], Stop)):
                for number, result in results.items():
                    body += result.copies(made[number], to)
        to.body.append(IfItem(to.reshape(to.input(0), ()), bodies[0], bodies[1], to.provenance))
        for number, result in results.items():
            to.set(number, result.view(to))


class _Result:
    """Where both branches write a result, and the sizes that differ between them."""

    def __init__(self, to: Lowering, number: int) -> None:
        self.type = to.type(number)
        shapes = [region.outputs[number].type.shape for region in to.node.regions]
        pairs = enumerate(zip(*shapes, strict=True))
        self.sizes = {axis: to.buffer(i64, (), "size").whole() for axis, (a, b) in pairs if a != b}
        # one element more than there can be, so that there always is a rest behind those of a branch
        self.room = max(upper(product(shape)) for shape in (self.type.shape, *shapes)) + 1
        self.place = to.buffer(self.type.dtype, (self.room,)).whole() if self.sizes else to.result(number)

    def seen(self, shape: Shape) -> View:
        return replace(self.place, shape=shape, strides=dense_strides(shape)) if self.sizes else self.place

    def copies(self, made: View, to: Lowering) -> list[Item]:
        """What a branch does at its end: all of the place is written, whatever the size."""
        copy: list[Item] = [copy_into(self.seen(made.shape), made, to)]
        if not self.sizes:
            return copy
        count = made.type.count
        rest = self.place.sliced(0, count, self.room - count)
        copy.append(Call(Map(literal(0, self.type.dtype)), (), (rest,), to.provenance))
        for axis, place in self.sizes.items():
            copy.append(Call(Map(size(made.shape[axis])), (), (place,), to.provenance))
        return copy

    def view(self, to: Lowering) -> View:
        for axis, place in self.sizes.items():
            measured(to, self.type.shape[axis], place)
        return self.seen(self.type.shape)


@dataclass(frozen=True)
class Impossible(OwnOperator):
    """Stands for a branch that the model cannot run at these sizes; its results are never there."""

    random = True  # has no results that could be computed now
    why: str
    dtypes: tuple[DType, ...]
    shapes: tuple[Shape, ...]

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(dtype, shape)) for dtype, shape in zip(self.dtypes, self.shapes, strict=True)]

    def lower(self, to: Lowering) -> None:
        to.body.append(Stop(self.why, to.provenance))
        for number in range(len(self.dtypes)):
            to.set(number, to.result(number))


def copy_into(target: View, source: View, to: Lowering) -> Call:
    """A copy, which the call that makes the source takes over where it can."""
    assert TensorType(source.buffer.dtype, source.shape) == TensorType(target.buffer.dtype, target.shape)
    return Call(Map(operand(0, source.buffer.dtype)), (source,), (target,), to.provenance)
