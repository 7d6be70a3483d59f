"""Global average pooling and softmax that exporters write as reductions: a part of recognise_idioms.

A mean over all places of a picture is a pool, which runs row by row behind convolutions as ReduceMean does not.
"""

from __future__ import annotations

import numpy as np

from ....graph.ir import Value
from ....ops.pool import GlobalAveragePool
from ....ops.reshape import Reshape
from ....ops.softmax import Softmax
from ....ops.transpose import Transpose
from ...pattern import AnyValue, ConstantOperand, FirstOf, Maker, Match, ResultOf, Rule

X = AnyValue("x")


def _axes(match: Match, name: str, rank: int) -> set[int] | None:
    value = match[name].fact.value
    return None if value is None else {int(axis) % rank for axis in value.reshape(-1)}


def _mean_of_pictures(match: Match, make: Maker) -> Value | None:
    """A mean over all axes behind the channels, which may have been made one before."""
    x, mean = match["x"].type, match.root.inputs[0]
    assert mean is not None
    flat = mean.type
    if x.rank < 4 or flat.rank < 3 or flat.shape[:2] != x.shape[:2] or not x.dtype.is_float or not x.is_static:
        return None
    if _axes(match, "axes", flat.rank) != set(range(2, flat.rank)):
        return None
    pooled = make.node(GlobalAveragePool(), match["x"])
    if pooled.type == match.root.output.type:
        return pooled
    shape = make.constant(np.array(match.root.output.type.static_shape), f"{match.root.output.name}/shape")
    return make.node(Reshape(), pooled, shape)


def _mean_of_turned(match: Match, make: Maker) -> Value | None:
    """Of pictures that are looked at channels-last."""
    x, turn = match["x"].type, match.node("turn").op
    axes = _axes(match, "axes", x.rank) if x.rank > 3 and x.is_static and x.dtype.is_float else None
    if axes is None or not isinstance(turn, Transpose):
        return None
    if [place for axis, place in enumerate(turn.order(x.rank)) if axis not in axes] != [0, 1]:
        return None
    shape = make.constant(np.array(match.root.output.type.static_shape), f"{match.root.output.name}/shape")
    return make.node(Reshape(), make.node(GlobalAveragePool(), match["x"]), shape)


def _mean_of_means(match: Match, make: Maker) -> Value | None:
    inner, rank = match.node("inner"), match["x"].type.rank
    first, second = _axes(match, "first", rank), _axes(match, "axes", rank)
    if not first or not second or not first.isdisjoint(second) or not vars(inner.op)["keepdims"]:
        return None
    axes = make.constant(np.array(sorted(first | second)), f"{match.root.output.name}/axes")
    return make.node(match.root.op, match["x"], axes)


def _softmax(match: Match, make: Maker) -> Value | None:
    total, rank = match.node("sum"), match["x"].type.rank
    axes = _axes(match, "axes", max(rank, 1))
    if axes is None or len(axes) != 1 or not vars(total.op)["keepdims"] or match.root.output.type != match["x"].type:
        return None
    high = match.nodes.get("high")
    if high is not None and (not vars(high.op)["keepdims"] or _axes(match, "high_axes", rank) != axes):
        return None
    return make.node(Softmax(axis=axes.pop()), match["x"])


_HIGH = ResultOf("ReduceMax", X, ConstantOperand("high_axes"), name="high")
_POWERS = FirstOf(ResultOf("Exp", ResultOf("Sub", X, _HIGH)), ResultOf("Exp", X))
REDUCTIONS = (
    Rule(
        "mean_of_means",
        ResultOf(
            "ReduceMean", ResultOf("ReduceMean", X, ConstantOperand("first"), name="inner"), ConstantOperand("axes")
        ),
        _mean_of_means,
    ),
    Rule(
        "mean_of_turned",
        ResultOf("ReduceMean", ResultOf("Transpose", X, name="turn"), ConstantOperand("axes")),
        _mean_of_turned,
    ),
    Rule(
        "mean_of_flat",
        ResultOf("ReduceMean", ResultOf("Reshape", X, rest=True), ConstantOperand("axes")),
        _mean_of_pictures,
    ),
    Rule("mean_of_pictures", ResultOf("ReduceMean", X, ConstantOperand("axes")), _mean_of_pictures),
    Rule(
        "softmax",
        ResultOf("Div", _POWERS, ResultOf("ReduceSum", _POWERS, ConstantOperand("axes"), name="sum")),
        _softmax,
    ),
)
