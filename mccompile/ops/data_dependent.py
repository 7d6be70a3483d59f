"""NonZero, Compress, Unique, NonMaxSuppression: how large the result is follows from data.

Memory is planned for the most that there can be; the true size is measured while the model runs. NonZero of elements
that are known at compile time is computed here; older exporters build masks and ranges that way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.dims import Dim, Symbol, product, symbols, upper
from ..base.dtypes import bool_, f32, i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, dense_strides
from ..expr.ir import apply, cast, literal, operand
from ..kinds.non_max_suppression import NonMaxSuppression as SuppressionKind
from ..kinds.select import Select
from ..kinds.unique import Unique as UniqueKind
from ..program.ir import View
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported, normal_axis
from .rules.at_run_time import gathered, measured, numbers, static_count
from .rules.known_shapes import fact


def is_symbolic(dim: Dim) -> bool:
    return any(isinstance(symbol, Symbol) for symbol in symbols(dim))


@dataclass(frozen=True)
class NonZero(Operator):
    versions = (9, 13)

    def places(self, site: Site) -> np.ndarray | None:
        """Where x is known. A scalar is a vector of one element, as in onnxruntime."""
        x = site.fact(0)
        known = x.value
        if known is not None and all(isinstance(element, int) for element in known.reshape(-1)):
            found = np.nonzero(np.atleast_1d(known.astype(np.int64)))
        elif x.constant is not None:
            found = np.nonzero(np.atleast_1d(x.constant.array))
        else:
            return None
        return np.array(found, np.int64)

    def infer(self, site: Site) -> list[Fact]:
        places = self.places(site)
        if places is None:
            x = site.type(0)
            return [Fact(TensorType(i64, (max(x.rank, 1), site.size(0, 1, upper(x.count)))))]
        value = np.empty(places.shape, dtype=object)
        value[...] = places.astype(object)
        return [fact(TensorType(i64, tuple(int(n) for n in places.shape)), value)]

    def lower(self, to: Lowering) -> None:
        places = self.places(to.site)
        if places is not None:
            to.set(0, to.constant(places))
            return
        x, type = to.input(0), to.type()
        x = x if x.shape else to.reshape(x, (1,))
        if not is_symbolic(type.shape[1]):
            to.set(0, to.nothing(type))
            return
        dtype = x.buffer.dtype
        is_zero = apply("equal", operand(0, dtype), literal(0, dtype))
        flags = to.map(cast(operand(0, bool_), bool_) if dtype is bool_ else apply("not", is_zero), [x])
        places_view = selected(to, to.reshape(flags, (x.type.count,)), type.shape[1])
        sizes = to.reshape(numbers(to, x.shape), (len(x.shape), 1))
        strides = to.reshape(numbers(to, dense_strides(x.shape)), (len(x.shape), 1))
        row = apply("div", operand(0, i64), operand(1, i64))
        ins = [places_view, strides, sizes]
        to.set(0, to.map(apply("mod", row, operand(2, i64)), ins, type.shape))


def selected(to: Lowering, flags: View, dim: Dim) -> View:
    """The positions of true flags, a vector of the size `dim` that is measured here."""
    found, count = to.call(Select(), [flags], TensorType(i64, (upper(dim),)), TensorType(i64, (1,)))
    measured(to, dim, count)
    return replace(found, shape=(dim,))


@dataclass(frozen=True)
class Unique(Operator):
    no_gradient = "which elements are equal has no gradient"
    versions = (11, 28)
    axis: int | None = None
    sorted: int = 1

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        shape = x.shape
        if x.dtype.kind == "complex":
            raise Unsupported(f"elements of type {x.dtype}")
        if self.axis is None:
            rows = x.count
            count = site.size(0, 0, upper(rows))
            values: Shape = (count,)
        else:
            axis = normal_axis(self.axis, x.rank)
            rows = shape[axis]
            count = site.size(0, axis, upper(rows))
            values = (*shape[:axis], count, *shape[axis + 1 :])
        each = Fact(TensorType(i64, (count,)))
        every = Fact(TensorType(i64, (rows,)))
        return [Fact(TensorType(x.dtype, values)), each, every, each][: site.outputs]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        if x.type.count == 0:
            types = [fact.type for fact in self.infer(to.site)]
            if any(type.count != 0 for type in types):
                raise Unsupported("elements of an empty tensor", "give it elements, or take the operator out")
            for number, type in enumerate(types):
                if to.wants(number):
                    to.set(number, to.nothing(type))
            return
        if self.axis is None:
            axis, x = 0, to.reshape(x, (x.type.count,))
        else:
            axis = normal_axis(self.axis, len(x.shape))
        others = [a for a in range(len(x.shape)) if a != axis]
        columns = product(x.shape[a] for a in others)
        matrix = to.reshape(x.permuted([axis, *others]), (x.shape[axis], columns))
        each = TensorType(i64, (x.shape[axis],))
        first, often, which, count = to.call(
            UniqueKind(bool(self.sorted)), [matrix], each, each, each, TensorType(i64, (1,))
        )
        dim = self.infer(to.site)[0].type.shape[axis]
        measured(to, dim, count)
        first, often = replace(first, shape=(dim,)), replace(often, shape=(dim,))
        if to.wants(0):
            shape = to.type(0).shape
            column = to.reshape(first, tuple(dim if a == axis else 1 for a in range(len(shape))))
            to.set(0, gathered(to, x, {axis: column.broadcast_to(shape)}, shape))
        for number, view in ((1, first), (2, which), (3, often)):
            if to.wants(number):
                to.set(number, view)


@dataclass(frozen=True)
class NonMaxSuppression(Operator):
    versions = (10, 11)
    center_point_box: int = 0

    def infer(self, site: Site) -> list[Fact]:
        boxes, scores = site.type(0), site.type(1)
        if boxes.rank != 3 or scores.rank != 3 or boxes.dtype is not f32 or scores.dtype is not f32:
            raise Invalid(f"boxes {boxes} and scores {scores} are not f32 tensors of rank 3")
        batches, classes, count = scores.shape
        if boxes.shape != (batches, count, 4):
            raise Invalid(f"boxes {boxes} do not fit scores {scores}")
        for number, dtype in ((2, i64), (3, f32), (4, f32)):
            if site.has(number) and (site.type(number).dtype is not dtype or static_count(site.type(number)) != 1):
                raise Invalid(f"operand {number} is {site.type(number)}, not a scalar {dtype}")
        most = upper(count)
        value = site.value(2)
        if value is not None and isinstance(value.reshape(-1)[0], int):
            most = min(max(value.reshape(-1)[0], 0), most)
        room = upper(batches * classes) * most if site.has(2) else 0
        return [Fact(TensorType(i64, (site.size(0, 0, room), 3)))]

    def lower(self, to: Lowering) -> None:
        type = to.type()
        if not is_symbolic(type.shape[0]):  # nothing is asked for
            to.set(0, to.constant(np.empty((0, 3), np.int64)))
            return
        boxes, scores = to.input(0), to.input(1)
        overlap = to.reshape(to.input(3), ()) if to.has(3) else to.map(literal(0, f32), [], ())
        ins = [boxes, scores, to.reshape(to.input(2), ()), overlap]
        ins += [to.reshape(to.input(4), ())] if to.has(4) else []
        kind = SuppressionKind(bool(self.center_point_box), to.has(4))
        room = TensorType(i64, (upper(type.shape[0]), 3))
        found, count = to.call(kind, ins, room, TensorType(i64, (1,)))
        measured(to, type.shape[0], count)
        to.set(0, replace(found, shape=type.shape))
