"""AffineGrid: where each element of an image comes from, as coordinates from -1 to 1, for GridSample."""

from __future__ import annotations

import math

import numpy as np

from ..base.dtypes import f64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, index, literal, operand
from .api import Fact, Invalid, Lowering, Operator, Site
from .rules.at_run_time import Formula, equals, static_count
from .rules.backward import Backward
from .rules.elementwise import check_dtypes
from .rules.known_shapes import sizes


@dataclass(frozen=True)
class AffineGrid(Operator):
    versions = (20,)
    align_corners: int = 0

    def space(self, site: Site) -> tuple[int, ...]:
        theta = site.type(0)
        check_dtypes(self.name, "floats", [theta])
        count = static_count(site.type(1))
        if theta.rank != 3 or theta.shape[1:] != (count - 2, count - 1) or count not in (4, 5):
            raise Invalid(f"theta {theta} does not fit a size of {count} numbers")
        if not site.is_known(1):
            declared = site.declared(0, "the size")
            if len(declared) != count or declared[0] != theta.shape[0] or declared[-1] != count - 2:
                raise Invalid(f"a grid for {theta} is not {declared}, which the model declares")
            return declared[1:-1]
        found = site.known_ints(1, "the size")
        if found[0] != theta.shape[0]:
            raise Invalid(f"the size {list(sizes(site, 1, 'the size'))} is not that of {theta.shape[0]} images")
        return tuple(found[2:])

    def infer(self, site: Site) -> list[Fact]:
        theta, space = site.type(0), self.space(site)
        return [Fact(TensorType(theta.dtype, (theta.shape[0], *space, len(space))))]

    def gradient(self, back: Backward) -> None:
        """The result is a product: coordinates of the elements, and a last 1, times theta."""
        back.nothing(1)
        theta, space = back.input(0), self.space(back.site)
        lines = [self.coordinates(size) for size in space]
        columns = [each.ravel() for each in reversed(np.meshgrid(*lines, indexing="ij"))]
        places = np.stack([*columns, np.ones_like(columns[0])], axis=-1).astype(theta.type.dtype.numpy)
        of = back.reshape(back.of(), (back.shape(0)[0], math.prod(space), len(space)))
        back.give(0, back.op("MatMul", back.turned(of), back.constant(places)))

    def coordinates(self, size: int) -> np.ndarray:
        """As `place` has them."""
        if self.align_corners:
            return np.arange(size) * (2 / (size - 1) if size > 1 else 0.0) - 1
        return np.arange(size) * (2 / size) + (1 / size - 1)

    def lower(self, to: Lowering) -> None:
        theta, space, type = to.input(0), self.space(to.site), to.type()
        rank = len(space)
        if not to.site.is_known(1):
            formula = Formula(to)
            for n, size in ((0, type.static_shape[0]), *((n + 2, size) for n, size in enumerate(space))):
                formula.require(equals(formula.element(1, n), size))
            formula.check()
        # theta[n, d, column] at element (n, ..space.., d) of the result; x, the last axis of space, comes first
        ins = []
        total: Expr | None = None
        for column in range(rank + 1):
            part = to.reshape(theta.sliced(2, column, 1), (type.shape[0], *(1 for _ in space), rank))
            ins.append(part.broadcast_to(type.shape))
            factor = cast(operand(column, theta.buffer.dtype), f64)
            if column < rank:
                factor = apply("mul", factor, self.place(rank - column, space[rank - 1 - column]))
            total = factor if total is None else apply("add", total, factor)
        assert total is not None
        to.set(0, to.map(cast(total, type.dtype), ins, type.shape))

    def place(self, axis: int, size: int) -> Expr:
        """From -1 to 1 along an axis of the result: between the corners, or between the centres of what is there."""
        at = cast(index(axis), f64)
        if self.align_corners:
            step = 2 / (size - 1) if size > 1 else 0.0
            return apply("add", apply("mul", at, literal(step, f64)), literal(-1, f64))
        return apply("add", apply("mul", at, literal(2 / size, f64)), literal(1 / size - 1, f64))
