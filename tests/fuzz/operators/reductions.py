"""What makes one element of many."""

from __future__ import annotations

import math

import numpy as np

from ..builder import FLOATS, Builder, Value
from .registry import makes

REAL = ("float32", "float32", "float32", "float64", "float16")
MOST_FACTORS = 16  # a product of more may leave the range of floats on the way, where the order decides


def axes_of(g: Builder, x: Value) -> list[int]:
    return [axis - x.rank * g.integer(0, 1) for axis in g.some(range(x.rank))]


def _may_overflow(array: np.ndarray) -> bool:
    """Does a product of some of these integers leave their range?"""
    return math.prod(max(1, abs(int(n))) for n in array.reshape(-1)) > np.iinfo(array.dtype).max


@makes("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSumSquare", opset=18)
@makes("ReduceSum", "ReduceMax", "ReduceMin", opset=18)
def reduced(g: Builder, op: str) -> Value | None:
    more = ("int32", "int64") if op not in ("ReduceLogSumExp", "ReduceL2", "ReduceMean") else ()
    if op in ("ReduceMax", "ReduceMin"):
        more = (*more, "uint8", "int8")
    x = g.any((*REAL, *more))
    if op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp") and 0 in [n for a in x.arrays for n in a.shape]:
        return None  # of nothing these are not defined
    if op == "ReduceProd" and max(array.size for array in x.arrays) > MOST_FACTORS:
        return None
    if op == "ReduceProd" and x.dtype in more and any(_may_overflow(array) for array in x.arrays):
        return None
    exact = op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare")
    keep = g.integer(0, 1)
    if g.maybe(0.15):
        nothing = g.integer(0, 1) if op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean") else 0
        return g.node(op, [x], keepdims=keep, noop_with_empty_axes=nothing, exact=exact)
    if x.rank == 0:
        return None
    return g.node(op, [x, g.constant(axes_of(g, x))], keepdims=keep, exact=exact)


@makes("ReduceLogSum", opset=18)
def log_sum(g: Builder, op: str) -> Value | None:
    x = g.input("float32", g.dims(g.integer(1, 4)), "positive")
    if 0 in x.shape:
        return None
    return g.node(op, [x, g.constant(axes_of(g, x))], keepdims=g.integer(0, 1))


@makes("ArgMax", "ArgMin")
def place(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "float32", "int32", "uint8", "float64"), (1, 4), exact=True)
    axis = g.integer(-x.rank, x.rank - 1)
    if 0 in [array.shape[axis] for array in x.arrays]:
        return None
    return g.node(op, [x], axis=axis, keepdims=g.integer(0, 1), select_last_index=g.integer(0, 1))


@makes("CumSum", opset=14)
def running(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "float32", "int32", "int64", "float64"), (1, 4))
    axis = g.constant(g.integer(-x.rank, x.rank - 1))
    return g.node(op, [x, axis], exclusive=g.integer(0, 1), reverse=g.integer(0, 1), exact=True)


@makes("CumProd", opset=26)
def running_product(g: Builder, op: str) -> Value | None:
    x = g.input("float32", g.dims(g.integer(1, 3), 40), "positive")
    return g.node(op, [x, g.constant(g.integer(0, x.rank - 1))], exclusive=g.integer(0, 1), reverse=g.integer(0, 1))


@makes("Softmax", "LogSoftmax")
def shares(g: Builder, op: str) -> Value | None:
    x = g.any(FLOATS, (1, 4))
    axis = g.integer(-x.rank, x.rank - 1)
    if 0 in [n for array in x.arrays for n in array.shape]:
        return None
    return g.node(op, [x], axis=axis)


@makes("Hardmax")
def hard(g: Builder, op: str) -> Value | None:
    x = g.any(REAL, (1, 4), exact=True)
    return g.node(op, [x], axis=g.integer(-x.rank, x.rank - 1), exact=True) if 0 not in x.shape else None


@makes("TopK")
def top(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "float32", "int32", "int64", "float64"), (1, 3), exact=True)
    axis = g.integer(-x.rank, x.rank - 1)
    least = min(array.shape[axis] for array in x.arrays)
    k = g.constant([g.integer(1, max(least, 1))])
    found = g.nodes_(op, [x, k], 2, axis=axis, largest=g.integer(0, 1), sorted=1, exact=True)
    return g.pick(found) if found else None


@makes("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(g: Builder, op: str) -> Value | None:
    """The class of each row, some of which count more, or not at all."""
    classes, dtype = g.integer(2, 6), g.pick(["int32", "int64"])
    dims = (g.pick([1, 2, 5]), *(g.integer(1, 4) for _ in range(g.integer(0, 2))))
    scores = g.leaf("float32", (dims[0], classes, *dims[1:]))
    labels = g.leaf(dtype, dims, "integer", 0, classes - 1)
    weights = [g.drawn("float32", (classes,), "positive")] if g.maybe() else []
    form = {"reduction": g.pick([None, "none", "sum", "mean"])}
    if g.maybe(0.3):
        form["ignore_index"] = g.integer(0, classes - 1)
    results = g.integer(1, 2) if op.startswith("Softmax") else 1
    found = g.nodes_(op, [scores, labels, *weights], results, **form)
    return found[0] if found else None
