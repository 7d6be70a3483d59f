"""Inverse: of square matrices, by Gauss and Jordan with the largest element of each column first."""

from __future__ import annotations

import numpy as np

from ...graph.ir import Invalid, Unsupported
from ..composed_body import Body
from ..contributed import writes


@writes(
    "Inverse",
    "g (float[2, 3, 3] x) => (float[2, 3, 3] y) { y = com.microsoft.Inverse (x) }",
    "g (float[5, 5] x) => (float[5, 5] y) { y = com.microsoft.Inverse (x) }",
    "g (double[1, 1] x) => (double[1, 1] y) { y = com.microsoft.Inverse (x) }",
)
def inverse(body: Body) -> None:
    type = body.type(0)
    if type.rank < 2 or type.shape[-1] != type.shape[-2]:
        raise Invalid(f"x {type} is not of square matrices")
    count = type.shape[-1]
    if not isinstance(count, int):
        raise Unsupported("the size of the matrices is known only at run time", "fix it with --dim or --shape")
    unit = body.constant(np.eye(count, dtype=type.dtype.numpy))
    x = body.op("Reshape", body.operand(0), body.ints(-1, count, count))
    both = body.op("Concat", x, body.op("Expand", unit, body.op("Shape", x)), axis=2)
    trip = body.inner()
    step, state = f"{trip.prefix}step", f"{trip.prefix}state"
    done = trip.op("Identity", f"{trip.prefix}more")
    graph = trip.graph((step, f"{trip.prefix}more", state), (done, _eliminated(trip, state, step, count)))
    always = body.constant(np.array(True))
    made = body.op("Loop", body.index(count), always, both, body=graph)
    right = body.op("Slice", made, body.ints(count), body.ints(2 * count), body.ints(2))
    body.give(0, body.op("Reshape", right, body.op("Shape", "in0")))


def _like(body: Body, x: str, value: float) -> str:
    return body.op("CastLike", body.number(value), x)


def _eliminated(trip: Body, state: str, step: str, count: int) -> str:
    """One column is made that of the unit matrix, by its largest row among those that are left."""
    column = trip.op("Gather", state, trip.op("Reshape", step, trip.ints(1)), axis=2)
    rows = trip.constant(np.arange(count).reshape(1, -1, 1))
    size = trip.op("Where", trip.op("Less", rows, step), _like(trip, state, -1), trip.op("Abs", column))
    place = trip.op("ArgMax", size, axis=1, keepdims=1)  # [batch, 1, 1]
    is_best, is_own = trip.op("Equal", rows, place), trip.op("Equal", rows, step)
    none = _like(trip, state, 0)
    best, own = (
        trip.op("ReduceSum", trip.op("Where", mark, state, none), trip.ints(1), keepdims=1)
        for mark in (is_best, is_own)
    )
    swapped = trip.op("Where", is_best, own, state)
    pivot = trip.op("Gather", best, trip.op("Reshape", step, trip.ints(1)), axis=2)
    row = trip.op("Div", best, pivot)
    factor = trip.op("Gather", swapped, trip.op("Reshape", step, trip.ints(1)), axis=2)
    less = trip.op("Sub", swapped, trip.op("Mul", factor, row))
    return trip.op("Where", is_own, row, less)
