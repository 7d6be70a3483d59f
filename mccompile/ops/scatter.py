"""ScatterElements, ScatterND, Scatter, TensorScatter: elements replaced or combined at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.dtypes import DType, bool_, i64, string
from ..base.records import dataclass
from ..base.tensor import TensorType, agree
from ..expr.ir import Expr, apply, index, literal, operand
from ..kinds.scatter import Scatter as ScatterKind
from ..program.ir import Call, View
from ..program.relocate import covers_in_any_order
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .gather import along_axis, check_indices, index_depth, index_views
from .rules.known_shapes import FIX_DIMENSIONS

if TYPE_CHECKING:
    from .rules.backward import Backward

_OF_BOOL = {"add": "or", "max": "or", "mul": "and", "min": "and"}


def reduction(name: str, dtype: DType) -> Expr | None:
    """How an element so far (operand 0) and an update (operand 1) make a new element."""
    if name == "none":
        return None
    if dtype is string:
        raise Unsupported(f"reduction {name} of strings", "use reduction none")
    if name not in _OF_BOOL:
        raise Invalid(f"reduction {name!r} is not none, add, mul, max or min")
    return apply(_OF_BOOL[name] if dtype is bool_ else name, operand(0, dtype), operand(1, dtype))


def scattered(to: Lowering, kind: ScatterKind, ins: Sequence[View]) -> View:
    """The result of a scatter, in a buffer of its own. What becomes of a state lies as that does, so that it can be
    written over it."""
    x = ins[0]
    states = {buffer for name, buffer in to.program.inputs if name in to.program.states}
    if x.buffer not in states or x.is_dense or not covers_in_any_order(x):
        return to.call(kind, ins, to.type())[0]
    made = replace(x, buffer=to.buffer(x.buffer.dtype, x.buffer.shape))
    to.body.append(Call(kind, tuple(ins), (made,), to.provenance))
    return made


@dataclass(frozen=True)
class ScatterElements(Operator):
    versions = (11, 13, 16, 18)
    axis: int = 0
    reduction: str = "none"

    def infer(self, site: Site) -> list[Fact]:
        x, places, updates = (site.type(i) for i in range(3))
        axis = along_axis(self.axis, x, places)
        check_indices(site, 1, (x.shape[axis],))
        if updates.dtype is not x.dtype or not agree(updates.shape, places.shape):
            raise Invalid(f"updates {updates} do not fit x {x} and indices {places}")
        reduction(self.reduction, x.dtype)
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x, places, updates = (to.input(i) for i in range(3))
        places = to.seen_as(places, updates.shape)
        axis = normal_axis(self.axis, len(x.shape))
        to.require_elements(x.shape[axis], updates.type.count)
        axes = tuple(-1 if a == axis else a for a in range(len(x.shape)))
        kind = ScatterKind(axes, reduction(self.reduction, x.buffer.dtype))
        to.set(0, x if updates.type.count == 0 else scattered(to, kind, [x, updates, places]))

    def gradient(self, back: Backward) -> None:
        of, places = back.of(), back.input(1)
        if self.reduction not in ("none", "add"):
            back.refuse(f"reduction {self.reduction} has no rule for its gradient")
        if back.wants(2):
            back.give(2, back.op("GatherElements", of, places, axis=self.axis))
        if self.reduction == "none" and back.wants(0):
            of = back.op("ScatterElements", of, places, back.zeros(back.input(2)), axis=self.axis)
        back.give(0, of)


@dataclass(frozen=True)
class Scatter(Operator):
    """The first name of ScatterElements, which it becomes."""

    no_gradient = "it is read as ScatterElements"
    versions = (9, 11)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        return make(ScatterElements, node)


@dataclass(frozen=True)
class ScatterND(Operator):
    versions = (11, 13, 16, 18)
    reduction: str = "none"

    def infer(self, site: Site) -> list[Fact]:
        x, places, updates = (site.type(i) for i in range(3))
        depth = index_depth(x, places)
        check_indices(site, 1, x.shape[:depth], last=True)
        if updates.dtype is not x.dtype or not agree(updates.shape, (*places.shape[:-1], *x.shape[depth:])):
            raise Invalid(f"updates {updates} do not fit x {x} and indices {places}")
        reduction(self.reduction, x.dtype)
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x, places, updates = (to.input(i) for i in range(3))
        depth = index_depth(x.type, places.type)
        updates = to.seen_as(updates, (*places.shape[:-1], *x.shape[depth:]))
        for size in x.shape[:depth]:
            to.require_elements(size, updates.type.count)
        later = len(places.shape) - 1 - depth
        axes = tuple(-1 - a if a < depth else a + later for a in range(len(x.shape)))
        kind = ScatterKind(axes, reduction(self.reduction, x.buffer.dtype))
        ins = [x, updates, *index_views(to, places, depth, updates.shape)]
        to.set(0, x if updates.type.count == 0 else scattered(to, kind, ins))

    def gradient(self, back: Backward) -> None:
        of, places = back.of(), back.input(1)
        if self.reduction not in ("none", "add"):
            back.refuse(f"reduction {self.reduction} has no rule for its gradient")
        if back.wants(2):
            back.give(2, back.op("GatherND", of, places))
        if self.reduction == "none" and back.wants(0):
            of = back.op("ScatterND", of, places, back.zeros(back.input(2)))
        back.give(0, of)


@dataclass(frozen=True)
class TensorScatter(Operator):
    """A cache with some rows of an axis replaced; in linear mode rows beyond its end all mean the last."""

    no_gradient = "a cache that is written over has no rule for its gradient"
    versions = (24,)
    axis: int = -2
    mode: str = "linear"

    def infer(self, site: Site) -> list[Fact]:
        x, updates = site.type(0), site.type(1)
        axis = normal_axis(self.axis, x.rank)
        if axis == 0 or self.mode not in ("linear", "circular"):
            raise Invalid(f"axis {self.axis} is that of the batch, or mode {self.mode!r} is not linear or circular")
        if updates.rank != x.rank or updates.dtype is not x.dtype or along_axis(axis, x, updates) != axis:
            raise Invalid(f"the update {updates} does not fit the cache {x}")
        if site.has(2) and site.type(2) != TensorType(i64, x.shape[:1]):
            raise Invalid(f"write_indices are {site.type(2)}, not one i64 for each of {x.shape[0]} samples")
        if any(a != b for other, (a, b) in enumerate(zip(x.shape, updates.shape, strict=True)) if other != axis):
            raise Invalid(f"the update {updates} does not fit the cache {x}")
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x, updates = to.input(0), to.input(1)
        axis, rank = normal_axis(self.axis, len(x.shape)), len(x.shape)
        if updates.type.count == 0:
            to.set(0, x)
            return
        row: Expr = index(axis)
        ins = []
        if to.has(2):
            row = apply("add", row, operand(0, i64))
            ins.append(to.reshape(to.input(2), (x.shape[0], *(1 for _ in range(rank - 1)))))
        if self.mode == "circular":
            size = x.shape[axis]
            if not isinstance(size, int):
                raise Unsupported(f"the size {size} of a circular cache is known only at run time", FIX_DIMENSIONS)
            row = apply("mod", row, literal(size, i64))
        shape = tuple(dim if a in (0, axis) else 1 for a, dim in enumerate(updates.shape))
        rows = to.map(row, ins, shape).broadcast_to(updates.shape)
        kind = ScatterKind(tuple(-1 if a == axis else a for a in range(rank)))
        to.set(0, scattered(to, kind, [x, updates, rows]))
