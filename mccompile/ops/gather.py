"""Gather, GatherElements, GatherND, Compress, ReverseSequence: elements from positions that an operand says.

Indices that are constants must lie inside; those made at run time are clamped (see kinds/gather.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.dims import Dim, Symbolic, bounds, minimum, upper
from ..base.dtypes import bool_, i32, i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import apply, index, literal, operand
from ..kinds.gather import Gather as GatherKind
from ..program.ir import View
from .api import INJECTIVE, OPAQUE, Fact, Invalid, Lowering, Operator, Site, Unsupported, normal_axis
from .data_dependent import selected
from .rules.at_run_time import gathered
from .rules.backward import static_shape
from .rules.known_shapes import fact, show

if TYPE_CHECKING:
    from .rules.backward import Backward


def check_indices(site: Site, operand: int, shape: Shape, last: bool = False) -> None:
    """Raises where the indices are not integers, or are known and outside of axes of these sizes.

    With `last` the last axis of the operand goes over `shape`, otherwise all of it is about `shape[0]`."""
    type = site.type(operand)
    if type.dtype not in (i32, i64):
        raise Invalid(f"the indices are {type}, not i32 or i64")
    known, value = site.fact(operand).constant, site.value(operand)
    if known is not None:
        array = known.array
    elif value is not None and all(isinstance(place, int) for place in value.reshape(-1)):
        array = value.astype(np.int64)
    else:
        return
    if array.size == 0:
        return
    for number, size in enumerate(shape):
        found = array[..., number] if last else array
        low, high = int(found.min()), int(found.max())
        if isinstance(size, int) and (low < -size or high >= size):
            wrong = low if low < -size else high
            raise Invalid(f"index {wrong} is outside of an axis of size {size}")


def taken(to: Lowering, x: View, axis: int, places: Sequence[int]) -> View | None:
    """Elements at known places along an axis as a view, where those lie evenly."""
    size = x.shape[axis]
    if not isinstance(size, int) or not places:
        return None
    from_front = [place + size if place < 0 else place for place in places]
    step = from_front[1] - from_front[0] if len(places) > 1 else 1
    if from_front != [from_front[0] + number * step for number in range(len(places))]:
        return None
    return x.sliced(axis, from_front[0], len(places), step)


@dataclass(frozen=True)
class Gather(Operator):
    versions = (1, 11, 13)
    fusion = INJECTIVE
    axis: int = 0

    def infer(self, site: Site) -> list[Fact]:
        x, places = site.type(0), site.type(1)
        if not x.rank:
            raise Invalid("a scalar has no axis to gather along")
        axis = normal_axis(self.axis, x.rank)
        check_indices(site, 1, (x.shape[axis],))
        if x.shape[axis] == 0 and places.count != 0:
            raise Invalid(f"axis {axis} of {x} is empty")
        type = TensorType(x.dtype, (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))
        value, where = site.value(0), site.value(1)
        if value is None or where is None or not all(isinstance(place, int) for place in where.reshape(-1)):
            return [Fact(type)]
        found = np.empty(type.static_shape, dtype=object)
        found[...] = np.take(value, where.astype(np.int64), axis)
        return [fact(type, found)]

    def lower(self, to: Lowering) -> None:
        x, places, type = to.input(0), to.input(1), to.type()
        axis = normal_axis(self.axis, len(x.shape))
        known = to.site.value(1)
        one = None if known is None or known.size != 1 else known.item()
        if isinstance(one, Symbolic) and _inside(one, x.shape[axis]):  # the counter of a loop: an address with it
            to.set(0, to.reshape(x.sliced(axis, one, 1), type.shape))
            return
        if known is not None and len(places.shape) <= 1 and all(isinstance(place, int) for place in known.reshape(-1)):
            view = taken(to, x, axis, [int(place) for place in known.reshape(-1)])
            if view is not None:
                to.set(0, to.reshape(view, type.shape))
                return
        to.require_elements(x.shape[axis], type.count)
        rank, more = len(x.shape), len(places.shape)
        aligned = to.reshape(places, (*places.shape, *(1 for _ in range(rank - 1 - axis)))).broadcast_to(type.shape)
        axes = tuple(a if a < axis else -1 if a == axis else a - 1 + more for a in range(rank))
        to.set(0, to.call(GatherKind(axes), [x, aligned], type)[0])

    def gradient(self, back: Backward) -> None:
        shape = back.shape(0)
        axis = normal_axis(self.axis, len(shape))
        back.give(0, back.scattered(back.of(), axis, back.input(1), shape[axis]))


def _inside(place: Dim, size: Dim) -> bool:
    low, high = bounds(place)
    return low >= 0 and bounds(size - 1 - high)[0] >= 0


@dataclass(frozen=True)
class GatherElements(Operator):
    versions = (11, 13)
    fusion = INJECTIVE
    axis: int = 0

    def infer(self, site: Site) -> list[Fact]:
        x, places = site.type(0), site.type(1)
        axis = along_axis(self.axis, x, places)
        check_indices(site, 1, (x.shape[axis],))
        return [Fact(TensorType(x.dtype, places.shape))]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        axis = normal_axis(self.axis, len(x.shape))
        to.require_elements(x.shape[axis], to.type().count)
        axes = tuple(-1 if a == axis else a for a in range(len(x.shape)))
        to.set(0, to.call(GatherKind(axes), [x, to.input(1)], to.type())[0])

    def gradient(self, back: Backward) -> None:
        zeros = back.zeros(back.input(0))
        back.give(0, back.op("ScatterElements", zeros, back.input(1), back.of(), axis=self.axis, reduction="add"))


def along_axis(axis: int, x: TensorType, places: TensorType) -> int:
    """The axis, if the indices fit into x along all others."""
    if x.rank != places.rank or not x.rank:
        raise Invalid(f"x {x} and the indices {places} differ in rank")
    axis = normal_axis(axis, x.rank)
    for other, (size, used) in enumerate(zip(x.shape, places.shape, strict=True)):
        if other != axis and isinstance(size, int) and isinstance(used, int) and used > size:
            raise Invalid(f"the indices {places} are larger than x {x} along axis {other}")
        if other == axis and size == 0 and used != 0:
            raise Invalid(f"axis {axis} of {x} is empty")
    return axis


@dataclass(frozen=True)
class GatherND(Operator):
    versions = (11, 12, 13)
    fusion = INJECTIVE
    batch_dims: int = 0

    def infer(self, site: Site) -> list[Fact]:
        x, places = site.type(0), site.type(1)
        batch = self.batch_dims
        depth = index_depth(x, places, batch)
        if not 0 <= batch < min(x.rank, places.rank) or x.shape[:batch] != places.shape[:batch]:
            raise Invalid(f"x {x} and the indices {places} do not share {batch} batch dimensions")
        check_indices(site, 1, x.shape[batch : batch + depth], last=True)
        return [Fact(TensorType(x.dtype, (*places.shape[:-1], *x.shape[batch + depth :])))]

    def lower(self, to: Lowering) -> None:
        x, places, type = to.input(0), to.input(1), to.type()
        batch = self.batch_dims
        depth = index_depth(x.type, places.type, batch)
        for size in x.shape[batch : batch + depth]:
            to.require_elements(size, type.count)
        later = len(places.shape) - 1 - batch - depth  # from an axis of x behind the indexed ones to that of the result
        axes = tuple(
            a if a < batch else -1 - (a - batch) if a < batch + depth else a + later for a in range(len(x.shape))
        )
        to.set(0, to.call(GatherKind(axes), [x, *index_views(to, places, depth, type.shape)], type)[0])

    def gradient(self, back: Backward) -> None:
        places = back.input(1)
        if self.batch_dims:  # they become places like the others
            batch, around = back.shape(1)[: self.batch_dims], back.shape(1)[:-1]
            numbers = np.indices(batch).reshape(len(batch), *batch, *(1 for _ in around[len(batch) :]))
            own = [np.broadcast_to(each, around) for each in numbers]
            own_places = back.constant(np.stack(own, -1).astype(places.type.dtype.numpy))
            places = back.op("Concat", own_places, places, axis=-1)
        if places.type.dtype is not i64:
            places = back.op("Cast", places, to=i64.onnx)
        back.give(0, back.op("ScatterND", back.zeros(back.input(0)), places, back.of(), reduction="add"))


def index_depth(x: TensorType, places: TensorType, batch: int = 0) -> int:
    """How many axes of x the last axis of the indices speaks of."""
    depth = places.shape[-1] if places.rank else 0
    if not isinstance(depth, int):
        raise Unsupported(f"how many axes the indices {places} speak of is known only at run time")
    if not 1 <= depth <= x.rank - batch:
        raise Invalid(f"the indices {places} speak of {depth} axes of x {x}")
    if 0 in x.shape[batch : batch + depth] and places.count != 0:
        raise Invalid(f"indices into an empty axis of {x}")
    return depth


def index_views(to: Lowering, places: View, depth: int, shape: Shape) -> list[View]:
    """Per indexed axis, the indices along it, in the shape of the elements they place."""
    last = len(places.shape) - 1
    around = (*places.shape[:-1], *(1 for _ in range(len(shape) - last)))
    return [to.reshape(places.sliced(last, n, 1), around).broadcast_to(shape) for n in range(depth)]


@dataclass(frozen=True)
class Compress(Operator):
    """How many elements there are depends on the condition."""

    versions = (9, 11, 28)
    fusion = OPAQUE
    axis: int | None = None

    def places(self, site: Site) -> list[int] | None:
        """Where the condition is known."""
        x, condition = site.type(0), site.type(1)
        if condition.dtype is not bool_ or condition.rank != 1:
            raise Invalid(f"the condition is {condition}, not a vector of bool")
        dim: Dim = x.count if self.axis is None else x.shape[normal_axis(self.axis, x.rank)]
        if site.fact(1).constant is None:
            return None
        chosen = np.flatnonzero(site.constant(1, "the condition"))
        if isinstance(dim, int) and len(chosen) and chosen[-1] >= dim:
            raise Invalid(f"the condition chooses element {chosen[-1]} of {dim}")
        return [int(place) for place in chosen]

    def infer(self, site: Site) -> list[Fact]:
        x, places = site.type(0), self.places(site)
        axis = 0 if self.axis is None else normal_axis(self.axis, x.rank)
        shape: Shape = (x.count,) if self.axis is None else x.shape
        most = upper(minimum(site.shape(1)[0], shape[axis]))
        count = site.size(0, axis, most) if places is None else len(places)
        return [Fact(TensorType(x.dtype, (*shape[:axis], count, *shape[axis + 1 :])))]

    def lower(self, to: Lowering) -> None:
        x, places, type = to.input(0), self.places(to.site), to.type()
        axis = 0 if self.axis is None else normal_axis(self.axis, len(x.shape))
        if self.axis is None:
            x = to.reshape(x, (x.type.count,))
        if places is None:
            flags = to.input(1)
            room = minimum(flags.shape[0], x.shape[axis])
            if isinstance(type.shape[axis], int):  # there is nothing to choose from
                to.set(0, to.nothing(type))
                return
            found = selected(to, flags.sliced(0, 0, room), type.shape[axis])
            column = to.reshape(found, tuple(type.shape[axis] if a == axis else 1 for a in range(type.rank)))
            to.set(0, gathered(to, x, {axis: column.broadcast_to(type.shape)}, type.shape))
            return
        to.set(0, at_places(to, x, axis, places, type))

    def gradient(self, back: Backward) -> None:
        places = self.places(back.site)
        if places is None:
            back.refuse("a condition computed at run time has no rule for its gradient", "make it a constant")
        x = back.input(0) if self.axis is not None else back.flat(back.input(0))
        axis = 0 if self.axis is None else normal_axis(self.axis, x.type.rank)
        size = static_shape(x)[axis]
        found = back.scattered(back.of(), axis, back.ints(places), size)
        back.give(0, found, static_shape(x))


def at_places(to: Lowering, x: View, axis: int, places: Sequence[int], type: TensorType) -> View:
    """Elements at known places (from the front, inside) along an axis: a view, or a gather from a table."""
    view = taken(to, x, axis, places)
    if view is not None:
        return view
    around = [1] * len(x.shape)
    around[axis] = len(places)
    table = to.constant(np.array(places, np.int32).reshape(around), "places")
    axes = tuple(-1 if a == axis else a for a in range(len(x.shape)))
    return to.call(GatherKind(axes), [x, table.broadcast_to(type.shape)], type)[0]


@dataclass(frozen=True)
class ReverseSequence(Operator):
    versions = (10, 28)
    fusion = INJECTIVE
    batch_axis: int = 1
    time_axis: int = 0

    def infer(self, site: Site) -> list[Fact]:
        x, lengths = site.type(0), site.type(1)
        if x.rank < 2 or {self.batch_axis, self.time_axis} != {0, 1}:
            axes = f"time_axis {self.time_axis} and batch_axis {self.batch_axis}"
            raise Invalid(f"{axes} must be the first two axes of {x}")
        if lengths != TensorType(i64, (x.shape[self.batch_axis],)):
            raise Invalid(f"sequence_lens is {lengths}, not i64{show((x.shape[self.batch_axis],))}")
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        if type.count == 0:
            to.set(0, x)
            return
        table = (*type.shape[:2], *(1 for _ in type.shape[2:]))
        lengths = to.reshape(to.input(1), tuple(type.shape[a] if a == self.batch_axis else 1 for a in range(type.rank)))
        time, length = index(self.time_axis), operand(0, i64)
        turned = apply("sub", apply("sub", length, literal(1, i64)), time)
        places = to.map(apply("select", apply("less", time, length), turned, time), [lengths], table)
        axes = tuple(-1 if a == self.time_axis else a for a in range(type.rank))
        to.set(0, to.call(GatherKind(axes), [x, places.broadcast_to(type.shape)], type)[0])

    def gradient(self, back: Backward) -> None:
        axes = {"batch_axis": self.batch_axis, "time_axis": self.time_axis}
        back.give(0, back.node(ReverseSequence(**axes), [back.of(), back.input(1)], 1)[0])
