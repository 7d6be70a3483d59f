"""If: one of two regions runs. Both write the same buffers, so what follows need not know which it was.

A condition that is known is decided while the model is read; what is here is left for run time.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.dtypes import DType, bool_
from ..base.tensor import Shape, TensorType
from ..expr.ir import operand
from ..kinds.map import Map
from ..program.ir import Call, Item, Stop, View
from ..program.ir import If as IfItem
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported


@dataclass(frozen=True)
class If(Operator):
    name = "If"
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
            if a.type != b.type:
                raise Unsupported(
                    f"result {number} is {a.type} in one branch and {b.type} in the other, and its size must be known",
                    "make both branches give the same shape, or make the condition a constant",
                )
            facts.append(Fact(a.type))
        return facts

    def lower(self, to: Lowering) -> None:
        wanted = [number for number in range(len(to.node.outputs)) if to.wants(number)]
        results = {number: to.result(number) for number in wanted}
        bodies: list[list[Item]] = [[], []]
        for index, body in enumerate(bodies):
            made = to.region(index, body)
            if not (body and isinstance(body[-1], Stop)):
                body += [copy_into(results[number], made[number], to) for number in wanted]
        to.body.append(IfItem(to.reshape(to.input(0), ()), bodies[0], bodies[1], to.provenance))
        for number, view in results.items():
            to.set(number, view)


@dataclass(frozen=True)
class Impossible(Operator):
    """Stands for a branch that the model cannot run at these sizes; its results are never there."""

    name = "Impossible"
    domain = "mccompile"
    versions = (1,)
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
