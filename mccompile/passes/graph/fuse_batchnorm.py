"""fuse_batchnorm: a factor and an offset per channel become part of the weights and bias in front of them.

BatchNormalization, and Mul, Div, Add, Sub with a constant per channel, behind Conv, ConvTranspose or Gemm with constant
weights. The new numbers are computed in float64 and rounded once; where one of them would overflow nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...graph.ir import Graph, Node, Value
from ...graph.pattern import Anything, ConstantOperand, Made, Maker, Match, Maybe, Rule, rewrite
from ..api import Context

_ANCHOR = Made(
    "Conv ConvTranspose Gemm",
    Anything("x"),
    ConstantOperand("w"),
    Maybe(ConstantOperand("b")),
    name="anchor",
    read_once=True,
)
C = ConstantOperand("c")
Change = tuple[np.ndarray | None, np.ndarray]  # factor (None: 1) and offset per channel


def fuse_batchnorm(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)


def _channels(match: Match) -> int | None:
    """How many results per position the anchor has: the size of axis 1."""
    shape = match.node("anchor").output.type.shape
    return shape[1] if len(shape) >= 2 and isinstance(shape[1], int) else None


def _normalization(match: Match, make: Maker) -> Value | None:
    """y = (x - mean) / sqrt(var + epsilon) * scale + bias"""
    fields = vars(match.root.op)
    if fields.get("training_mode") or not fields.get("spatial", 1):
        return None
    scale, bias, mean, variance = (match.array(name).astype(np.float64) for name in ("scale", "bias", "mean", "var"))
    factor = scale / np.sqrt(variance + fields["epsilon"])
    return _folded(match, make, factor, bias - mean * factor)


def _arithmetic(change: Callable[[np.ndarray], Change]) -> Callable[[Match, Maker], Value | None]:
    """For an operator with a constant: from the constant, as a vector over channels, to factor and offset."""

    def build(match: Match, make: Maker) -> Value | None:
        count = _channels(match)
        type, result = match["c"].type, match.node("anchor").output.type
        if count is None or match.root.output.type != result or not result.dtype.is_float:
            return None
        full = (1,) * (result.rank - type.rank) + type.static_shape
        if any(size != 1 for axis, size in enumerate(full) if axis != 1):
            return None
        vector = np.broadcast_to(match.array("c").astype(np.float64).reshape(-1), (count,))
        with np.errstate(all="ignore"):
            factor, offset = change(vector)
        return _folded(match, make, factor, offset)

    return build


def _folded(match: Match, make: Maker, factor: np.ndarray | None, offset: np.ndarray) -> Value | None:
    """The anchor with its results multiplied and moved."""
    anchor, count, w = match.node("anchor"), _channels(match), match["w"]
    bias = None if count is None else _bias(match, count)
    if bias is None or offset.shape != bias.shape:
        return None
    name = anchor.output.name
    new_weights: Value | None = w
    if factor is not None:
        if len(w.uses) != 1:
            return None  # weights that others read too would be stored twice
        with np.errstate(all="ignore"):
            weights = match.array("w").astype(np.float64) * _along_weights(factor, anchor, match.array("w"))
        new_weights = _rounded(make, weights, w, f"{name}/weights")
    with np.errstate(all="ignore"):  # what overflows is seen in the result
        moved = bias + offset if factor is None else bias * factor + offset
    new_bias = _rounded(make, moved, w, f"{name}/bias")
    if new_weights is None or new_bias is None:
        return None
    op = replace(anchor.op, beta=1.0) if anchor.op.name == "Gemm" else anchor.op
    return make.node(op, match["x"], new_weights, new_bias)


def _bias(match: Match, count: int) -> np.ndarray | None:
    """The anchor's bias as a vector over channels; None where it differs between rows (Gemm)."""
    if match.get("b") is None:
        return np.zeros(count)
    bias = match.array("b").astype(np.float64)
    if bias.ndim > 1 and bias.shape[0] != 1:
        return None
    vector = np.broadcast_to(bias.reshape(-1), (count,))
    anchor = match.node("anchor")
    return vector * float(vars(anchor.op)["beta"]) if anchor.op.name == "Gemm" else vector


def _along_weights(factor: np.ndarray, anchor: Node, weights: np.ndarray) -> np.ndarray:
    """The factor of each weight, by the output channel that it belongs to."""
    space = (1,) * (weights.ndim - 2)
    fields = vars(anchor.op)
    if anchor.op.name == "Conv":
        return factor.reshape(-1, 1, *space)
    if anchor.op.name == "Gemm":
        return factor.reshape(-1, 1) if fields["transB"] else factor.reshape(1, -1)
    # ConvTranspose: (input channels, output channels of a group, space...)
    groups = fields["group"]
    return np.repeat(factor.reshape(groups, -1), weights.shape[0] // groups, axis=0).reshape(*weights.shape[:2], *space)


def _rounded(make: Maker, array: np.ndarray, like: Value, name: str) -> Value | None:
    with np.errstate(all="ignore"):
        rounded = array.astype(like.type.dtype.numpy)
    return make.constant(rounded, name) if np.isfinite(rounded.astype(np.float64)).all() else None


RULES = (
    Rule(
        "batch_normalization",
        Made("BatchNormalization", _ANCHOR, *(ConstantOperand(name) for name in ("scale", "bias", "mean", "var"))),
        _normalization,
    ),
    Rule("multiply", Made("Mul", _ANCHOR, C, either_order=True), _arithmetic(lambda c: (c, np.zeros_like(c)))),
    Rule("divide", Made("Div", _ANCHOR, C), _arithmetic(lambda c: (1 / c, np.zeros_like(c)))),
    Rule("add", Made("Add", _ANCHOR, C, either_order=True), _arithmetic(lambda c: (None, c))),
    Rule("subtract", Made("Sub", _ANCHOR, C), _arithmetic(lambda c: (None, -c))),
)
