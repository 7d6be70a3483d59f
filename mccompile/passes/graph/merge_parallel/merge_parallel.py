"""merge_parallel: convolutions and products over one input become one.

- Added up: conv(x, v) + conv(x, w) is conv(x, v + w). A smaller kernel is enlarged with zeros around it, x itself and x
  times a factor per channel are kernels of size 1, and halves of one convolution (Split, Add) are two.
- Side by side: convolutions or matrix products with few results each become one with more, whose result is split
  again, which costs nothing (side_by_side.py).

Weights are added in float64 and rounded once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....graph.ir import Graph, Value, graphs
from ....ops.conv import Conv
from ...api import Context
from ...pattern import AnyValue, ConstantOperand, Maker, Match, OptionalOperand, Pattern, ResultOf, Rule, rewrite
from .branches import Branch, branch_of, widened
from .side_by_side import SideBySide

X = AnyValue("x")


def merge_parallel(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)
    for part in list(graphs(graph)):
        SideBySide(part, context.target).run()


def _of(match: Match, suffix: str) -> Branch | None:
    bias = match.array(f"b{suffix}") if match.get(f"b{suffix}") is not None else None
    return branch_of(match.node(f"conv{suffix}"), match.array(f"w{suffix}"), bias)


def _identity(like: Branch, channels: int, factor: np.ndarray) -> Branch | None:
    """x * factor as a convolution of the same kind."""
    rank = len(like.strides)
    if any(step != 1 for step in like.strides) or len(like.weights) != channels:
        return None
    inner = channels // like.group
    weights = np.zeros((channels, inner, *(1,) * rank))
    weights[np.arange(channels), np.arange(channels) % inner] = factor.reshape(channels, *(1,) * rank)
    zeros = (0,) * rank
    return replace(like, weights=weights, before=zeros, after=zeros, bias=np.zeros(channels))


def _sum(a: Branch, b: Branch) -> Branch | None:
    """Both as one kernel that is as large as the larger one."""
    if a.weights.shape[:2] != b.weights.shape[:2]:
        return None
    small, large = sorted((a, b), key=lambda branch: branch.weights[0, 0].size)
    grown = widened(small, large)
    if grown is None:
        return None
    return replace(large, weights=large.weights + grown, bias=large.bias + small.bias)


def _made(match: Match, make: Maker, total: Branch | None) -> Value | None:
    """The convolution, where no number has become too large."""
    x, name = match["x"], match.root.output.name
    if total is None:
        return None
    with np.errstate(over="ignore"):
        arrays = [array.astype(x.type.dtype.numpy) for array in (total.weights, total.bias)]
    if not all(np.isfinite(array.astype(np.float64)).all() for array in arrays):
        return None
    op = Conv(group=total.group, strides=total.strides, dilations=total.dilations, pads=(*total.before, *total.after))
    weights, bias = arrays
    result = make.node(op, x, make.constant(weights, f"{name}/weights"), make.constant(bias, f"{name}/bias"))
    return result if result.type == match.root.output.type else None


def _added(match: Match, make: Maker) -> Value | None:
    a, b = _of(match, "1"), _of(match, "2")
    return _made(match, make, _sum(a, b)) if a is not None and b is not None else None


def _with_x(match: Match, make: Maker) -> Value | None:
    x, conv = match["x"].type, _of(match, "1")
    channels = x.shape[1]
    if conv is None or not isinstance(channels, int) or match.root.output.type != x or x.dtype.is_narrow_float:
        return None  # beside 1, a weight in half precision would lose its last places
    factor = np.ones(channels)
    if match.get("factor") is not None:
        type = match["factor"].type
        shape = (1,) * (x.rank - type.rank) + type.static_shape
        if any(size != 1 for axis, size in enumerate(shape) if axis != 1) or match.node("scaled").output.type != x:
            return None
        factor = np.broadcast_to(match.array("factor").astype(np.float64).reshape(-1), (channels,))
    other = _identity(conv, channels, factor)
    return None if other is None else _made(match, make, _sum(conv, other))


def _halves(match: Match, make: Maker) -> Value | None:
    """Add(a, b) of a, b = Split(conv(x)) along the channels."""
    a, b = match["a"], match["b"]
    split = a.producer
    if split is None or split.op.name != "Split" or split.op.domain or {*split.outputs} != {a, b} or a is b:
        return None
    total = split.inputs[0]
    if total is None or vars(split.op)["axis"] not in (1, 1 - total.type.rank) or not _only(a, b, total):
        return None
    conv = total.producer
    if conv is None or conv.op.name != "Conv" or conv.op.domain or conv.inputs[0] is None:
        return None
    constants = [value.constant for value in conv.inputs[1:] if value is not None]
    arrays = [constant.array for constant in constants if constant is not None]
    if len(arrays) != len(constants) or vars(conv.op)["group"] != 1 or len(arrays[0]) % 2:
        return None
    whole = branch_of(conv, arrays[0], arrays[1] if len(arrays) > 1 else None)
    if whole is None:
        return None
    half = len(whole.weights) // 2
    parts = [replace(whole, weights=whole.weights[p], bias=whole.bias[p]) for p in (slice(half), slice(half, None))]
    match.values["x"] = conv.inputs[0]
    match.matched += [split, conv]
    return _made(match, make, _sum(*parts))


def _only(*values: Value) -> bool:
    return all(len(value.uses) == 1 for value in values)


def _conv(number: str) -> ResultOf:
    w, b = ConstantOperand(f"w{number}"), OptionalOperand(ConstantOperand(f"b{number}"))
    return ResultOf("Conv", X, w, b, name=f"conv{number}", read_once=True)


def _plus(a: Pattern, b: Pattern) -> ResultOf:
    return ResultOf("Add", a, b, either_order=True)


_SCALED_X = ResultOf("Mul", X, ConstantOperand("factor"), either_order=True, name="scaled", read_once=True)

RULES = (
    Rule("added", _plus(_conv("1"), _conv("2")), _added),
    Rule("x_added", _plus(_conv("1"), X), _with_x),
    Rule("scaled_x_added", _plus(_conv("1"), _SCALED_X), _with_x),
    Rule("halves_added", _plus(AnyValue("a"), AnyValue("b")), _halves),
)
