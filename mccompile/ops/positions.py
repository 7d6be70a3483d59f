"""OneHot, EyeLike, Trilu: what an element is follows from where it lies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.dims import Dim, bounds
from ..base.dtypes import DType, bool_, i64, of_onnx
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, index, literal, operand
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site, Unsupported, normal_axis
from .rules.at_run_time import Formula, number, static_count
from .rules.known_shapes import scalar

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class OneHot(Operator):
    """Indices outside of the depth give a line without the on value."""

    no_gradient = "the two values it writes are not learned"
    versions = (9, 11, 28)
    fusion = INJECTIVE
    axis: int = -1

    def depth(self, site: Site) -> Dim:
        if not _depth_known(site):
            axis, known = normal_axis(self.axis, site.type(0).rank + 1), site.shape(0)
            declared = site.open_shape(0, "the depth", [*known[:axis], None, *known[axis:]])
            if len(declared) != site.type(0).rank + 1 or static_count(site.type(1)) != 1:
                raise Invalid(f"the model declares a result of shape {declared} for indices {site.type(0)}")
            return declared[axis]
        if site.type(1).dtype.is_float:
            found = site.constant(1, "the depth").reshape(-1)
            if len(found) != 1 or found[0] != int(found[0]):
                raise Invalid(f"the depth is {found}, not a whole number")
            depth: Dim = int(found[0])
        else:
            depth = scalar(site, 1, "the depth")
        if bounds(depth)[0] < 0:
            raise Invalid(f"the depth {depth} is negative")
        return depth

    def infer(self, site: Site) -> list[Fact]:
        places, values = site.type(0), site.type(2)
        if values.shape != (2,):
            raise Invalid(f"the values are {values}, not off and on")
        axis = normal_axis(self.axis, places.rank + 1)
        return [Fact(TensorType(values.dtype, (*places.shape[:axis], self.depth(site), *places.shape[axis:])))]

    def lower(self, to: Lowering) -> None:
        type, places, values = to.type(), to.input(0), to.input(2)
        axis = normal_axis(self.axis, type.rank)
        depth = type.shape[axis]
        if not _depth_known(to.site):
            formula = Formula(to)
            formula.settle(depth, formula.element(1))
            formula.check()
        found = cast(operand(0, places.buffer.dtype), i64)
        if places.buffer.dtype.kind != "uint":
            negative = apply("less", found, literal(0, i64))
            found = apply("select", negative, apply("add", found, number(depth)), found)
        off, on = (to.reshape(values.sliced(0, n, 1), ()) for n in range(2))
        chosen = apply("equal", found, index(axis))
        element = apply("select", chosen, operand(2, type.dtype), operand(1, type.dtype))
        aligned = to.reshape(places, (*places.shape[:axis], 1, *places.shape[axis:]))
        to.set(0, to.map(element, [aligned, off, on], type.shape))


def _depth_known(site: Site) -> bool:
    return site.fact(1).constant is not None if site.type(1).dtype.is_float else site.is_known(1)


@dataclass(frozen=True)
class EyeLike(Operator):
    versions = (9, 22)
    fusion = INJECTIVE
    dtype: int | None = None
    k: int = 0

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if x.rank != 2:
            raise Invalid(f"the input is {x}, not a matrix")
        dtype: DType | None = x.dtype if self.dtype is None else of_onnx(self.dtype)
        if dtype is None or dtype.kind in ("string", "complex"):
            raise Unsupported(f"element type {self.dtype}")
        return [Fact(replace(x, dtype=dtype))]

    def lower(self, to: Lowering) -> None:
        on = apply("equal", index(1), apply("add", index(0), literal(self.k, i64)))
        to.set(0, to.map(cast(on, to.type().dtype), [], to.type().shape))

    def gradient(self, back: Backward) -> None:
        back.nothing(0)


@dataclass(frozen=True)
class Trilu(Operator):
    versions = (14,)
    fusion = INJECTIVE
    upper: int = 1

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if x.rank < 2:
            raise Invalid(f"the input is {x}, not a matrix or a stack of them")
        if site.has(1) and (site.type(1).dtype is not i64 or site.type(1).shape not in ((), (1,))):
            raise Invalid(f"k is {site.type(1)}, not a scalar i64")
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        type = to.type()
        row, column = index(type.rank - 2), index(type.rank - 1)
        ins = [to.input(0)]
        diagonal: Expr = row
        if to.has(1):
            ins.append(to.reshape(to.input(1), ()))
            diagonal = apply("add", row, operand(1, i64))
        kept = apply("greater_equal" if self.upper else "less_equal", column, diagonal)
        zero = literal(False if type.dtype is bool_ else 0, type.dtype)
        to.set(0, to.map(apply("select", kept, operand(0, type.dtype), zero), ins, type.shape))

    def gradient(self, back: Backward) -> None:
        place = [back.input(1)] if back.has(1) else []
        back.give(0, back.op("Trilu", back.of(), *place, upper=self.upper))
