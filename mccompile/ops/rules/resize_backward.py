"""The gradient of Resize: along each axis the result is a matrix times the operand, and the gradient is that matrix
transposed times the gradient of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from ...base.records import dataclass
from ...graph.ir import Op, Value
from .backward import FIX, Backward, static_shape
from .resize_tables import Axis, coordinates, exact_coordinates, inside, nearest, taps


@dataclass(frozen=True)
class Sampling:
    """The attributes of Resize that say which elements are read."""

    mode: str
    coordinate_transformation_mode: str
    nearest_mode: str
    cubic_coeff_a: float
    exclude_outside: int
    antialias: int

    @staticmethod
    def of(operator: Op) -> Sampling:
        return Sampling(**{field.name: getattr(operator, field.name) for field in fields(Sampling)})

    def back(self, back: Backward, axes: Sequence[Axis | None]) -> None:
        of = back.of()
        back.nothing(1, 2)
        for axis in axes:
            if axis is None:
                back.refuse("an axis whose size is known only at run time has no rule", FIX)
            of = along(back, of, axis.axis, self.matrix(axis))
        back.give(0, of)

    def matrix(self, axis: Axis) -> np.ndarray:
        """[result, operand]."""
        exact = self.mode == "nearest" and self.nearest_mode.startswith("round")
        places = (exact_coordinates if exact else coordinates)(self.coordinate_transformation_mode, axis)
        if self.mode == "nearest":
            positions = nearest(places, axis, self.nearest_mode)[:, None]
            weights = np.ones(positions.shape)
        else:
            how = bool(self.exclude_outside), bool(self.antialias)
            positions, weights = taps(places, axis, self.mode, self.cubic_coeff_a, *how)
        found = np.zeros((axis.out, axis.size))
        np.add.at(found, (np.arange(axis.out)[:, None], positions), weights)
        if self.coordinate_transformation_mode == "tf_crop_and_resize":
            first, end = inside(places, axis)
            found[:first], found[end:] = 0, 0
        return found


def along(back: Backward, of: Value, axis: int, matrix: np.ndarray) -> Value:
    """The gradient along one axis before it was resized."""
    out, size = matrix.shape
    shape = static_shape(of)
    times = out // size if size and out % size == 0 else 0
    if times and (matrix == np.repeat(np.eye(size), times, 0)).all():
        cut = back.reshape(of, (*shape[:axis], size, times, *shape[axis + 1 :]))
        return back.sum(cut, [axis + 1], keepdims=False)
    order = [*(a for a in range(len(shape)) if a != axis), axis]
    turned = back.transpose(of, order)
    found = back.op("MatMul", turned, back.constant(matrix.astype(of.type.dtype.numpy)))
    return back.transpose(found, [order.index(a) for a in range(len(shape))])
