"""ArgMax and ArgMin; CumSum and CumProd, which are scans: what runs along one axis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..kinds.arg_reduce import ArgReduce
from ..kinds.scan_axis import ScanAxis
from ..program.ir import Call, View
from .api import REDUCTION, Fact, Invalid, Lowering, Operator, Site, normal_axis
from .rules.at_run_time import Formula, chosen, either, equals, from_front, static_count
from .rules.elementwise import check_dtypes, wide

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class ArgExtreme(Operator, abstract=True):
    fusion = REDUCTION
    largest: ClassVar[bool]
    axis: int = 0
    keepdims: int = 1
    select_last_index: int = 0

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        check_dtypes(self.name, "numbers", [x])
        axis = normal_axis(self.axis, x.rank)
        if x.rank and x.shape[axis] == 0:
            raise Invalid(f"axis {axis} of {x} is empty")
        kept: Shape = (1,) if self.keepdims else ()
        return [Fact(TensorType(i64, (*x.shape[:axis], *(kept if x.rank else ()), *x.shape[axis + 1 :])))]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return replace(self, axis=order.index(normal_axis(self.axis, len(order)))) if self.keepdims else None

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        if not x.shape:
            x = to.reshape(x, (1,))
        axis = normal_axis(self.axis, len(x.shape))
        type = TensorType(i64, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        to.require_elements(x.shape[axis], type.count)
        found = to.call(ArgReduce(axis, self.largest, bool(self.select_last_index)), [x], type)[0]
        to.set(0, to.reshape(found, to.type().shape))


@dataclass(frozen=True)
class ArgMax(ArgExtreme):
    versions = (1, 11, 12, 13)
    largest = True


@dataclass(frozen=True)
class ArgMin(ArgExtreme):
    versions = (1, 11, 12, 13)
    largest = False


@dataclass(frozen=True)
class Cumulative(Operator, abstract=True):
    combine: ClassVar[str]
    exclusive: int = 0
    reverse: int = 0

    def axis(self, site: Site) -> int:
        axes = site.known_ints(1, "the axis")
        if len(axes) != 1:
            raise Invalid(f"the axis (operand 1) is {site.type(1)}, not a scalar")
        if not site.shape(0):
            raise Invalid("a scalar has no axis")
        return normal_axis(axes[0], len(site.shape(0)))

    def infer(self, site: Site) -> list[Fact]:
        check_dtypes(self.name, "numbers", [site.type(0)])
        if site.is_known(1):
            self.axis(site)
        elif not site.shape(0) or static_count(site.type(1)) != 1:
            raise Invalid(f"an axis {site.type(1)} says nothing of {site.type(0)}")
        return [Fact(site.type(0))]

    def lower(self, to: Lowering) -> None:
        if to.site.is_known(1):
            to.set(0, self.along(to, self.axis(to.site)))
            return
        formula = Formula(to)
        rank = len(to.input(0).shape)
        axis = from_front(formula.element(1), rank)
        conditions = [equals(axis, number) for number in range(rank)]
        formula.require(either(conditions))
        formula.check()
        to.set(0, chosen(formula, conditions, [self.along(to, number) for number in range(rank)]))

    def along(self, to: Lowering, axis: int) -> View:
        x = to.input(0)

        def directed(view: View) -> View:
            size = view.shape[axis]
            return view.sliced(axis, size - 1, size, -1) if self.reverse else view

        kind = ScanAxis(axis, self.combine, wide(x.buffer.dtype), bool(self.exclusive))
        y = to.buffer(x.buffer.dtype, x.shape).whole()
        to.body.append(Call(kind, (directed(x),), (directed(y),), to.provenance))
        return y


@dataclass(frozen=True)
class CumSum(Cumulative):
    versions = (11, 14)
    combine = "add"

    def gradient(self, back: Backward) -> None:
        reverse = 1 - self.reverse
        back.give(0, back.op("CumSum", back.of(), back.input(1), exclusive=self.exclusive, reverse=reverse))


@dataclass(frozen=True)
class CumProd(Cumulative):
    no_gradient = "running products have no rule for their gradient"
    versions = (26,)
    combine = "mul"
