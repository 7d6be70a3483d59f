"""What sequences do whose positions, lengths or sizes are known only at run time: operators over slots (see
base/structures.py). ONNX has none of these; frontend/sequences.py writes them.

Invariant: a position outside of a sequence, or a size outside of its bounds, ends the run with a status.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.dims import Symbolic, product, upper
from ..base.dtypes import bool_, i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, dense_strides
from ..expr.ir import apply, index, operand
from ..kinds.cut_slots import CutSlots
from ..kinds.edit_slots import EditSlots
from ..program.ir import If, Stop
from .api import Fact, Invalid, Lowering, OwnOperator, Site, Unsupported
from .rules.at_run_time import Formula, both, clamped, equals, measured, number, static_shape


@dataclass(frozen=True)
class InsertSlot(OwnOperator):
    """Operands: slots, what is put in, at which position. The result has `count` slots."""

    count: int

    def infer(self, site: Site) -> list[Fact]:
        x, piece = site.type(0), site.type(1)
        if x.dtype.is_packed:
            raise Unsupported(f"a sequence of {x.dtype} that changes at run time")
        if piece.dtype is not x.dtype or upper(piece.count) > static_shape(x)[1]:
            raise Invalid(f"{piece} does not fit into a slot of {x}")
        return [Fact(TensorType(x.dtype, (self.count, x.shape[1])))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.call(EditSlots(), [to.input(0), to.input(2), to.input(1)], to.type())[0])


@dataclass(frozen=True)
class EraseSlot(OwnOperator):
    """Operands: slots, which of them is taken out."""

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(site.type(0))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.call(EditSlots(), [to.input(0), to.input(1)], to.type())[0])


@dataclass(frozen=True)
class SlotPosition(OwnOperator):
    """A position counted from the front. Operands: a position, which counts from the end where it is negative, and the
    length. `more`: so many positions beyond the last element are meant too."""

    more: int = 0

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(i64, ()))]

    def lower(self, to: Lowering) -> None:
        formula = Formula(to)
        position, length = formula.element(0), formula.element(1)
        place = apply("select", apply("less", position, number(0)), apply("add", position, length), position)
        limit = apply("add", length, number(self.more))
        formula.require(both([apply("greater_equal", place, number(0)), apply("less", place, limit)]))
        formula.check()
        to.set(0, formula.map(place, ()))


@dataclass(frozen=True)
class GivenLength(OwnOperator):
    """The length of a sequence that is passed in: a number up to `count`."""

    count: int

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(i64, ()))]

    def lower(self, to: Lowering) -> None:
        formula = Formula(to)
        length = formula.element(0)
        limits = [apply("greater_equal", length, number(0)), apply("less_equal", length, number(self.count))]
        formula.require(both(limits))
        formula.check()
        to.set(0, to.input(0))


@dataclass(frozen=True)
class SizedSlot(OwnOperator):
    """An element as large as it is. Operands: its slot, its sizes."""

    shape: tuple[int, ...]

    def infer(self, site: Site) -> list[Fact]:
        dims: Shape = tuple(
            site.size(0, axis, most, part=f"_{axis}") if most else 0 for axis, most in enumerate(self.shape)
        )
        return [Fact(TensorType(site.type(0).dtype, dims))]

    def lower(self, to: Lowering) -> None:
        row, sizes, shape = to.input(0), to.input(1), to.type().shape
        for axis, dim in enumerate(shape):
            if isinstance(dim, Symbolic):
                measured(to, dim, to.reshape(sizes.sliced(0, axis, 1), ()))
        if 0 in shape:
            to.set(0, to.nothing(to.type()))
            return
        dense = row if row.is_dense else to.copy(row)
        to.set(0, replace(dense, shape=shape, strides=dense_strides(shape)))


@dataclass(frozen=True)
class UsedSlots(OwnOperator):
    """The slots that are in use. Operands: slots, how many of them."""

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        return [Fact(TensorType(x.dtype, (site.size(0, 0, static_shape(x)[0]), *x.shape[1:])))]

    def lower(self, to: Lowering) -> None:
        measured(to, to.type().shape[0], to.input(1))
        to.set(0, replace(to.input(0), shape=to.type().shape))


@dataclass(frozen=True)
class LimitSlots(OwnOperator):
    """The first `count` slots, which must be all that are in use. Operands: slots, how many are."""

    count: int

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        return [Fact(TensorType(x.dtype, (self.count, *x.shape[1:])))]

    def lower(self, to: Lowering) -> None:
        formula = Formula(to)
        formula.require(apply("less_equal", formula.element(1), number(self.count)))
        formula.check()
        to.set(0, to.input(0).sliced(0, 0, self.count))


@dataclass(frozen=True)
class Required(OwnOperator):
    """Part of an optional value. Operands: the part, whether the value is there."""

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(site.type(0))]

    def lower(self, to: Lowering) -> None:
        absent = to.map(apply("not", operand(0, bool_)), [to.reshape(to.input(1), ())])
        stop = Stop("the optional value that is needed here is not there", to.provenance)
        to.body.append(If(absent, [stop], [], to.provenance))
        to.set(0, to.input(0))


@dataclass(frozen=True)
class SplitToSlots(OwnOperator):
    """A tensor cut along an axis into parts. Operands: the tensor; the size of each part, or one for all but the last.
    Results: slots, how many are in use, the shape of each part."""

    axis: int

    def infer(self, site: Site) -> list[Fact]:
        x, split = site.type(0), site.type(1)
        if x.dtype.is_packed:
            raise Unsupported(f"{x.dtype} is split into parts whose sizes are known only at run time")
        shape = static_shape(x)
        count = static_shape(split)[0] if split.rank else max(shape[self.axis], 1)
        types = TensorType(x.dtype, (count, product(shape))), TensorType(i64, ()), TensorType(i64, (count, x.rank))
        return [Fact(type) for type in types]

    def lower(self, to: Lowering) -> None:
        x, types = to.input(0), [to.type(n) for n in range(3)]
        shape = x.type.static_shape
        size, count = shape[self.axis], types[0].static_shape[0]
        formula = Formula(to)
        parts = formula.elements(1)
        if to.site.type(1).rank:
            total = number(0)
            for part in parts:
                inside = [apply("greater_equal", part, number(0)), apply("less_equal", part, number(size))]
                formula.require(both(inside))
                total = apply("add", total, part)
            formula.require(equals(total, size))
            sizes, length = to.input(1), to.constant(np.array(count, np.int64))
        else:
            formula.require(apply("greater_equal", parts[0], number(1)))
            part = clamped(parts[0], 1, max(size, 1))
            left = apply("sub", number(size), apply("mul", index(0), part))
            sizes = formula.map(apply("max", apply("min", left, part), number(0)), (count,))
            rounded = apply("add", number(size), apply("sub", part, number(1)))
            length = formula.map(apply("div", rounded, part), ())
        formula.check()
        before, behind = int(np.prod(shape[: self.axis])), int(np.prod(shape[self.axis + 1 :]))
        cut = to.reshape(x, (before, size, behind))
        to.set(0, to.call(CutSlots(), [cut, sizes], types[0])[0])
        to.set(1, length)
        row = to.constant(np.array([shape], np.int64)).broadcast_to(types[2].static_shape)
        of_axis = apply("equal", index(1), number(self.axis))
        column = to.reshape(sizes, (count, 1)).broadcast_to(types[2].static_shape)
        to.set(2, to.map(apply("select", of_axis, operand(0, i64), operand(1, i64)), [column, row]))
