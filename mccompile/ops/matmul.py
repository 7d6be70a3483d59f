"""MatMul, Gemm and MatMulInteger: all are one matrix product over views of their operands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..base.dims import Dim, product, static
from ..base.dtypes import SHORT, DType, bf16, f16, f32, f64, i32, i64, u32, u64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, broadcast, show_shape
from ..expr.ir import Expr, apply, cast, literal, operand
from ..kinds.gemm import Gemm as GemmKind
from ..kinds.map import Map
from ..program.ir import View
from .api import ANCHOR, Fact, Invalid, Lowering, OnnxNode, Operator, Site, make

if TYPE_CHECKING:
    from .rules.backward import Backward

NUMBERS = (f16, bf16, f32, f64, i32, i64, u32, u64)


@dataclass(frozen=True)
class MatMul(Operator):
    versions = (1, 9, 13)
    fusion = ANCHOR

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(_one_type(site, NUMBERS), product_shape(site.shape(0), site.shape(1))))]

    def lower(self, to: Lowering) -> None:
        dtype = to.type().dtype
        total = f32 if dtype.is_narrow_float else dtype
        if 1 in to.site.shape(0)[-1:]:
            to.set(0, _outer_product(to, total))
            return
        kind = GemmKind(total, None if total is dtype else cast(operand(0, total), dtype))
        to.set(0, lower_product(to, kind, to.input(0), to.input(1), to.type()))

    def gradient(self, back: Backward) -> None:
        shapes = back.shape(0), back.shape(1)
        of = back.of()
        if len(shapes[0]) == 1 or len(shapes[1]) == 1:  # a vector is a matrix of one row (column)
            rows = shapes[0] if len(shapes[0]) > 1 else (1, *shapes[0])
            columns = shapes[1] if len(shapes[1]) > 1 else (*shapes[1], 1)
            batch = np.broadcast_shapes(rows[:-2], columns[:-2])
            of = back.reshape(of, (*batch, rows[-2], columns[-1]))
        else:
            rows, columns = shapes
        a, b = back.reshape(back.input(0), rows), back.reshape(back.input(1), columns)
        if back.wants(0):
            back.give(0, back.op("MatMul", of, back.turned(b)), rows)
        if back.wants(1):
            if len(columns) == 2 and len(rows) > 2:  # one tall matrix, so that nothing is summed afterwards
                a = back.reshape(a, (math.prod(rows[:-1]), rows[-1]))
                of = back.reshape(of, (math.prod(rows[:-1]), columns[-1]))
            back.give(1, back.op("MatMul", back.turned(a), of), columns)


@dataclass(frozen=True)
class MatMulInteger(Operator):
    versions = (10,)
    fusion = ANCHOR

    def infer(self, site: Site) -> list[Fact]:
        for index, name in ((0, "a"), (1, "b")):
            type = site.type(index)
            if type.dtype not in SHORT:
                raise Invalid(f"{name} is {type}, not of 8 or 16-bit integers")
            if site.has(index + 2):
                if site.type(index + 2).dtype is not type.dtype:
                    raise Invalid(f"{name} is {type}, its zero point {site.type(index + 2)}")
                _zero_shape(type.shape, site.shape(index + 2), rows=index == 0)
        return [Fact(TensorType(i32, product_shape(site.shape(0), site.shape(1))))]

    def lower(self, to: Lowering) -> None:
        a_zero = to.input(2) if to.has(2) else None
        b_zero = to.input(3) if to.has(3) else None
        kind = GemmKind(i32, None, a_zero is not None, b_zero is not None)
        to.set(0, lower_product(to, kind, to.input(0), to.input(1), to.type(), a_zero, b_zero))


@dataclass(frozen=True)
class Gemm(Operator):
    versions = (1, 6, 7, 9, 11, 13)
    fusion = ANCHOR
    alpha: float = 1.0
    beta: float = 1.0
    transA: int = 0
    transB: int = 0

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 7:
            node.attributes.pop("broadcast", 0)  # whether it had to be asked for
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        dtype = _one_type(site, NUMBERS)
        a, b = site.shape(0), site.shape(1)
        if len(a) != 2 or len(b) != 2:
            raise Invalid(f"a {site.type(0)} and b {site.type(1)} are not matrices")
        shape = product_shape(a[::-1] if self.transA else a, b[::-1] if self.transB else b)
        if self._adds(site.has(2)):
            try:
                fits = broadcast(site.shape(2), shape) == shape
            except ValueError:
                fits = False
            if not fits:
                raise Invalid(f"c {site.type(2)} does not broadcast to {show_shape(shape)}")
        return [Fact(TensorType(dtype, shape))]

    def lower(self, to: Lowering) -> None:
        a, b, type = to.input(0), to.input(1), to.type()
        ins = [a.permuted((1, 0)) if self.transA else a, b.permuted((1, 0)) if self.transB else b]
        if self._adds(to.has(2)):
            ins.append(to.input(2).broadcast_to(type.shape))
        total = f32 if type.dtype.is_narrow_float else type.dtype
        to.set(0, to.call(GemmKind(total, self._epilogue(type.dtype, total, to.has(2))), ins, type)[0])

    def _adds(self, has_c: bool) -> bool:
        return has_c and self.beta != 0

    def _epilogue(self, dtype: DType, total: DType, has_c: bool) -> Expr | None:
        """alpha * product + beta * c, rounded to the result's type once. Integers are scaled in f64, as the reference
        does it."""
        wide = total if total.is_float or self.alpha == self.beta == 1 else f64
        result = cast(operand(0, total), wide)
        if self.alpha != 1:
            result = apply("mul", result, literal(self.alpha, wide))
        if self._adds(has_c):
            c = cast(operand(1, dtype), wide)
            result = apply("add", result, c if self.beta == 1 else apply("mul", c, literal(self.beta, wide)))
        result = cast(result, dtype)
        return None if result == operand(0, dtype) else result

    def gradient(self, back: Backward) -> None:
        of, a, b = back.of(), back.input(0), back.input(1)
        if back.wants(0):
            ins, turns = ((b, of), (self.transB, 1)) if self.transA else ((of, b), (0, 1 - self.transB))
            back.give(0, back.op("Gemm", *ins, alpha=self.alpha, transA=turns[0], transB=turns[1]))
        if back.wants(1):
            ins, turns = ((of, a), (1, self.transA)) if self.transB else ((a, of), (1 - self.transA, 0))
            back.give(1, back.op("Gemm", *ins, alpha=self.alpha, transA=turns[0], transB=turns[1]))
        if not self._adds(has_c=True):
            back.nothing(2)
        elif back.wants(2):
            back.give(2, back.scaled(of, self.beta))


def product_shape(a: Shape, b: Shape) -> Shape:
    """The shape of a matrix product as numpy.matmul defines it; Invalid where there is none."""
    if not a or not b:
        raise Invalid("a matrix product has no scalar operands")
    rows, columns = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
    try:
        batch = broadcast(rows[:-2], columns[:-2])
    except ValueError:
        batch = None
    if batch is None or rows[-1] != columns[-2]:
        raise Invalid(f"a {show_shape(a)} and b {show_shape(b)} cannot be multiplied")
    # A vector is a matrix of one row (column), and the result has no such axis.
    return (*batch, *([rows[-2]] if len(a) > 1 else []), *([columns[-1]] if len(b) > 1 else []))


def lower_product(
    to: Lowering,
    kind: GemmKind,
    a: View,
    b: View,
    type: TensorType,
    a_zero: View | None = None,
    b_zero: View | None = None,
) -> View:
    """The call for a product of operands of any ranks. Batches of rows against one matrix are one tall matrix."""
    if len(a.shape) == 1:
        a = to.reshape(a, (1, *a.shape))
    if len(b.shape) == 1:
        b = to.reshape(b, (*b.shape, 1))
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    depth, columns = b.shape[-2:]
    rows = (*batch, a.shape[-2])
    left = [a.broadcast_to((*rows, depth))]
    right = [b]
    if a_zero is not None:
        left.append(_zero_view(to, a_zero, a.shape, rows=True).broadcast_to(rows))
    if b_zero is not None:
        right.append(_zero_view(to, b_zero, b.shape, rows=False))
    out: Shape = (*rows, columns)
    turns = tuple(range(len(rows)))
    if batch and product(b.shape[:-2]) == 1:
        turns = _as_they_lie(left[0])
        left = [view.permuted((*turns, *range(len(turns), len(view.shape)))) for view in left]
        height = product(rows)
        tall = [left[0].reshaped((height, depth)), *(zero.reshaped((height,)) for zero in left[1:])]
        flat = [right[0].reshaped((depth, columns)), *(zero.reshaped((columns,)) for zero in right[1:])]
        found = [view for view in (*tall, *flat) if view is not None]
        if len(found) == len(left) + len(right):
            left, right, out = found[: len(left)], found[len(left) :], (height, columns)
    if len(out) > 2:
        right = [
            b.broadcast_to((*batch, depth, columns)),
            *(zero.broadcast_to((*batch, columns)) for zero in right[1:]),
        ]
    made = to.call(kind, [left[0], right[0], *left[1:], *right[1:]], TensorType(type.dtype, out))[0]
    made = to.reshape(made, (*(rows[axis] for axis in turns), columns))
    return to.reshape(made.permuted((*map(turns.index, range(len(turns))), len(turns))), type.shape)


def _outer_product(to: Lowering, total: DType) -> View:
    """Of columns by rows: nothing is added up."""
    type = to.type()
    a, b = to.input(0), to.input(1)
    rows = a if len(a.shape) > 1 else to.reshape(a, (1, 1))
    columns = b if len(b.shape) > 1 else to.reshape(b, (1, 1))
    shape = broadcast(rows.shape, columns.shape)
    terms = apply("mul", *(cast(operand(index, type.dtype), total) for index in (0, 1)))
    ins = [rows.broadcast_to(shape), columns.broadcast_to(shape)]
    return to.reshape(to.call(Map(cast(terms, type.dtype)), ins, TensorType(type.dtype, shape))[0], type.shape)


def _as_they_lie(a: View) -> tuple[int, ...]:
    """Axes of batches and rows in the order of memory, where they make one axis then and each matrix has fewer rows
    than there are matrices side by side; else as they are."""
    given = tuple(range(len(a.shape) - 1))
    if not a.is_static:
        return given
    order = tuple(sorted(given, key=lambda axis: -static(a.strides[axis])))
    tall = a.permuted((*order, len(order))).reshaped((product(a.shape[:-1]), a.shape[-1]))
    return given if tall is None or static(a.shape[order[-1]]) <= static(a.shape[-2]) else order


def _zero_shape(matrix: Shape, zero: Shape, rows: bool) -> None:
    """Raises where a zero point is neither one number, nor one per row (column), nor that for every matrix of a
    batch."""
    if zero in ((), (1,)):
        return
    count: Dim = 1 if len(matrix) == 1 else matrix[-2] if rows else matrix[-1]
    per_matrix = (*matrix[:-2], count, 1) if rows else (*matrix[:-2], 1, count)
    if zero not in ((count,), per_matrix):
        raise Invalid(f"zero points of shape {show_shape(zero)} do not fit a matrix of {show_shape(matrix)}")


def _zero_view(to: Lowering, zero: View, matrix: Shape, rows: bool) -> View:
    """A zero point as one number per row (column) of every matrix."""
    wanted = matrix[:-1] if rows else (*matrix[:-2], matrix[-1])
    if len(zero.shape) > 1:
        return to.reshape(zero, wanted)
    return zero.broadcast_to(wanted)


def _one_type(site: Site, allowed: tuple[DType, ...]) -> DType:
    dtype = site.type(0).dtype
    others = [site.type(i).dtype for i in range(1, 3) if site.has(i)]
    if dtype not in allowed or any(other is not dtype for other in others):
        types = ", ".join(str(site.type(i)) for i in range(3) if site.has(i))
        raise Invalid(f"the operands {types} are not of one number type")
    return dtype
