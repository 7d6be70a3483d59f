"""ScatterElements, ScatterND, Scatter: elements replaced, or combined with others, at places that an operand says."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.dtypes import DType, bool_
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, operand
from ..kinds.scatter import Scatter as ScatterKind
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, make, normal_axis
from .gather import along_axis, check_indices, index_depth, index_views

_OF_BOOL = {"add": "or", "max": "or", "mul": "and", "min": "and"}


def reduction(name: str, dtype: DType) -> Expr | None:
    """How an element so far (operand 0) and an update (operand 1) make a new element."""
    if name == "none":
        return None
    if name not in _OF_BOOL:
        raise Invalid(f"reduction {name!r} is not none, add, mul, max or min")
    return apply(_OF_BOOL[name] if dtype is bool_ else name, operand(0, dtype), operand(1, dtype))


@dataclass(frozen=True)
class ScatterElements(Operator):
    name = "ScatterElements"
    versions = (11, 13, 16, 18)
    axis: int = 0
    reduction: str = "none"

    def infer(self, site: Site) -> list[Fact]:
        x, places, updates = (site.type(i) for i in range(3))
        axis = along_axis(self.axis, x, places)
        check_indices(site, 1, (x.shape[axis],))
        if updates != TensorType(x.dtype, places.shape):
            raise Invalid(f"updates {updates} do not fit x {x} and indices {places}")
        reduction(self.reduction, x.dtype)
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x, places, updates = (to.input(i) for i in range(3))
        axis = normal_axis(self.axis, len(x.shape))
        axes = tuple(-1 if a == axis else a for a in range(len(x.shape)))
        kind = ScatterKind(axes, reduction(self.reduction, x.buffer.dtype))
        to.set(0, x if updates.type.count == 0 else to.call(kind, [x, updates, places], to.type())[0])


@dataclass(frozen=True)
class Scatter(Operator):
    """The first name of ScatterElements, which it becomes."""

    name = "Scatter"
    versions = (9, 11)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        return make(ScatterElements, node)


@dataclass(frozen=True)
class ScatterND(Operator):
    name = "ScatterND"
    versions = (11, 13, 16, 18)
    reduction: str = "none"

    def infer(self, site: Site) -> list[Fact]:
        x, places, updates = (site.type(i) for i in range(3))
        depth = index_depth(x, places)
        check_indices(site, 1, x.shape[:depth], last=True)
        if updates != TensorType(x.dtype, (*places.shape[:-1], *x.shape[depth:])):
            raise Invalid(f"updates {updates} do not fit x {x} and indices {places}")
        reduction(self.reduction, x.dtype)
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x, places, updates = (to.input(i) for i in range(3))
        depth = index_depth(x.type, places.type)
        later = len(places.shape) - 1 - depth
        axes = tuple(-1 - a if a < depth else a + later for a in range(len(x.shape)))
        kind = ScatterKind(axes, reduction(self.reduction, x.buffer.dtype))
        ins = [x, updates, *index_views(to, places, depth, updates.shape)]
        to.set(0, x if updates.type.count == 0 else to.call(kind, ins, to.type())[0])
