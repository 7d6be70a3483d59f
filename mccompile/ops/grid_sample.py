"""GridSample: an image read at computed places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product

from ..base.dims import bounds
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from ..graph.ir import Value
from ..kinds.grid_sample import PADDINGS
from ..kinds.grid_sample import GridSample as GridSampleKind
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make
from .rules.backward import Backward, static_shape

_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


@dataclass(frozen=True)
class GridSample(Operator):
    versions = (16, 20, 22)
    align_corners: int = 0
    mode: str = "linear"
    padding_mode: str = "zeros"

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 16:
            mode = node.attributes.get("mode", "bilinear")
            node.attributes["mode"] = _OLD_MODES.get(mode, mode)
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        x, grid = site.type(0), site.type(1)
        if self.mode not in _OLD_MODES.values() or self.padding_mode not in PADDINGS:
            raise Invalid(f"mode {self.mode!r} or padding_mode {self.padding_mode!r} is not known")
        if x.rank < 3 or grid.rank != x.rank or grid.shape[-1] != x.rank - 2 or grid.shape[0] != x.shape[0]:
            raise Invalid(f"the grid {grid} does not fit x {x}")
        if not grid.dtype.is_float:
            raise Invalid(f"the grid is {grid}, not of floats")
        if self.mode != "nearest" and not x.dtype.is_float:
            raise Unsupported(f"{self.mode} interpolation of {x.dtype}", "cast x to float before it")
        if 0 in x.shape[2:]:
            raise Invalid(f"x {x} is empty")
        if empty := [size for size in x.shape[2:] if bounds(size)[0] < 1]:
            raise Unsupported(f"x {x} has no elements where {empty[0]} is 0", "give a range that begins with 1")
        return [Fact(TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1])))]

    def lower(self, to: Lowering) -> None:
        kind = GridSampleKind(self.mode, self.padding_mode, bool(self.align_corners))
        to.set(0, to.call(kind, [to.input(0), to.input(1)], to.type())[0])

    def gradient(self, back: Backward) -> None:
        """That of the same result as a sum of elements around each place, times their shares."""
        x, grid = back.input(0), back.input(1)
        batch, channels, *space = back.shape(0)
        outs, rank = back.shape(1)[1:-1], len(space)
        if x.type.dtype.is_narrow_float or grid.type.dtype.is_narrow_float:
            back.refuse("places in 16-bit floats have no rule for their gradient")
        shape = (batch, 1, math.prod(outs))
        places = [back.reshape(back.slice(grid, rank + 1, rank - 1 - axis, 1), shape) for axis in range(rank)]
        flat = back.reshape(x, (batch, channels, math.prod(space)))
        taps = [self.taps(operand(axis, grid.type.dtype), size) for axis, size in enumerate(space)]
        strides = [math.prod(space[axis + 1 :]) for axis in range(rank)]
        found: list[Value] = []
        for tap in product(*taps):
            numbers = zip(tap, strides, strict=True)
            at = reduce(_plus, (_times(cast(index, i64), stride) for (index, _), stride in numbers))
            share = reduce(lambda a, b: apply("mul", a, b), (part for _, part in tap))
            chosen = back.expand(back.pointwise(at, *places), (batch, channels, shape[2]))
            taken = back.op("GatherElements", flat, chosen, axis=2)
            found.append(back.op("Mul", taken, back.pointwise(cast(share, x.type.dtype), *places)))
        whole = reduce(lambda a, b: back.op("Add", a, b), found)
        back.instead([back.reshape(whole, static_shape(back.result()))])

    def taps(self, given: Expr, size: int) -> Sequence[tuple[Expr, Expr]]:
        """Along an axis: which elements are read for a place from -1 to 1, and their shares."""

        def n(value: float) -> Expr:
            return literal(value, given.dtype)

        if self.align_corners:
            at = _times(apply("div", apply("add", given, n(1)), n(2)), size - 1)
        else:
            at = apply("div", apply("sub", _times(apply("add", given, n(1)), size), n(1)), n(2))
        at = self.placed(at, size)
        if self.mode == "nearest":
            parts = [(apply("round_even", at), n(1))]
        else:
            first = apply("floor", at)
            part = apply("sub", at, first)
            if self.mode == "linear":
                parts = [(first, apply("sub", n(1), part)), (apply("add", first, n(1)), part)]
            else:
                parts = [(apply("add", first, n(k - 1)), _cubic(part, k - 1)) for k in range(4)]
        return [self.inside(index, share, size) for index, share in parts]

    def placed(self, at: Expr, size: int) -> Expr:
        """Where in x a place is read."""
        if self.padding_mode == "zeros" or (self.padding_mode == "border" and self.mode == "cubic"):
            return _between(at, -3, size + 2)
        if self.padding_mode == "border":
            return _between(at, 0, size - 1)
        low, high = (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)
        if low == high:
            return _times(at, 0)
        low_, twice = literal(low, at.dtype), literal(2 * (high - low), at.dtype)
        rest = apply("mod", apply("sub", at, low_), twice)
        return _between(apply("add", low_, apply("min", rest, apply("sub", twice, rest))), low, high)

    def inside(self, index: Expr, share: Expr, size: int) -> tuple[Expr, Expr]:
        """An element that is there."""
        zero, last = literal(0, index.dtype), literal(size - 1, index.dtype)
        if self.padding_mode == "zeros":
            there = apply("and", apply("greater_equal", index, zero), apply("less_equal", index, last))
            return apply("select", there, index, zero), apply("select", there, share, zero)
        if self.padding_mode == "border" or size == 1:
            return _between(index, 0, size - 1), share
        period = 2 * size - 2 if self.align_corners else 2 * size
        turned = apply("mod", index, literal(period, index.dtype))
        back = apply("sub", literal(period if self.align_corners else period - 1, index.dtype), turned)
        return apply("min", turned, back), share


def _plus(a: Expr, b: Expr) -> Expr:
    return apply("add", a, b)


def _times(a: Expr, factor: int) -> Expr:
    return apply("mul", a, literal(factor, a.dtype))


def _between(at: Expr, low: float, high: float) -> Expr:
    return apply("min", apply("max", at, literal(low, at.dtype)), literal(high, at.dtype))


def _cubic(part: Expr, tap: int) -> Expr:
    """The share of an element so many behind the first one before the place."""

    def polynomial(x: Expr, *factors: float) -> Expr:
        total = literal(factors[0], x.dtype)
        for factor in factors[1:]:
            total = _plus(apply("mul", total, x), literal(factor, x.dtype))
        return total

    one = literal(1, part.dtype)
    distance = apply("sub", one, part) if tap > 0 else part
    if tap in (0, 1):
        return polynomial(distance, 1.25, -2.25, 0, 1)
    return polynomial(_plus(distance, one), -0.75, 3.75, -6, 3)
