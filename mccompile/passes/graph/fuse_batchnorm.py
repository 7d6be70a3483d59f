"""fuse_batchnorm: a factor and an offset per channel are folded into the weights and bias of a neighbouring operator.

BatchNormalization, and Mul, Div, Add, Sub with a constant per channel, behind Conv, ConvTranspose or Gemm with constant
weights. In front of Conv and Gemm too; an offset only where nothing is padded, because padding comes after it.
A BatchNormalization that stays becomes one factor and one offset. The new numbers are computed in float64 and rounded
once; where one of them would overflow nothing is done. Weights that others read as well are stored twice, up to the
limit of folding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...graph.ir import Graph, Node, Value
from ...ops.binary import Add, Mul
from ...targets.api import Prefer
from ..api import Context
from ..pattern import AnyValue, ConstantOperand, Maker, Match, OptionalOperand, Pattern, ResultOf, Rule, rewrite

_ANCHOR = ResultOf(
    "Conv ConvTranspose Gemm",
    AnyValue("x"),
    ConstantOperand("w"),
    OptionalOperand(ConstantOperand("b")),
    name="anchor",
    read_once=True,
)
Change = tuple[np.ndarray | None, np.ndarray | None]  # factor and offset per channel; None: 1 and 0


def fuse_batchnorm(graph: Graph, context: Context) -> None:
    limit = 0 if context.target.prefer == Prefer.FLASH else context.fold_limit
    rewrite(graph, [*RULES, *(_unless_stored_twice(rule, limit) for rule in CHANGING_WEIGHTS)])
    rewrite(graph, [_APART])


def _unless_stored_twice(rule: Rule, limit: int) -> Rule:
    """The rule for weights that nobody else reads, or that are small."""
    return replace(rule, when=lambda match: len(match["w"].uses) == 1 or match["w"].type.max_bytes <= limit)


def _channels(match: Match) -> int | None:
    """How many results per position the anchor has: the size of axis 1."""
    shape = match.node("anchor").output.type.shape
    return shape[1] if len(shape) >= 2 and isinstance(shape[1], int) else None


def _normalization(match: Match, make: Maker) -> Value | None:
    """y = (x - mean) / sqrt(var + epsilon) * scale + bias"""
    change = _change(match, match.root)
    return None if change is None else _folded(match, make, *change)


def _change(match: Match, node: Node, per_element: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
    """Factor and offset of a batch normalization. `per_element`: those of one with `spatial` 0, too."""
    fields = vars(node.op)
    if fields.get("training_mode") or not (per_element or fields.get("spatial", 1)):
        return None
    scale, bias, mean, variance = (match.array(name).astype(np.float64) for name in ("scale", "bias", "mean", "var"))
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + fields["epsilon"])
        return factor, bias - mean * factor


def _arithmetic(change: Callable[[np.ndarray], Change]) -> Callable[[Match, Maker], Value | None]:
    """For an operator with a constant: from the constant, as a vector over channels, to factor and offset."""

    def build(match: Match, make: Maker) -> Value | None:
        vector = _per_channel(match, match.root, match.node("anchor").output)
        if vector is None:
            return None
        with np.errstate(all="ignore"):
            factor, offset = change(vector)
        return _folded(match, make, factor, offset)

    return build


def _per_channel(match: Match, node: Node, x: Value) -> np.ndarray | None:
    """The constant `c` as a vector over the channels of `x`, where that is what it is to `node`."""
    type, full = match["c"].type, x.type
    if node.output.type != full or not full.dtype.is_float or full.rank < 2 or not isinstance(full.shape[1], int):
        return None
    shape = (1,) * (full.rank - type.rank) + type.static_shape
    if any(size != 1 for axis, size in enumerate(shape) if axis != 1):
        return None
    return np.broadcast_to(match.array("c").astype(np.float64).reshape(-1), (full.shape[1],))


def _folded(match: Match, make: Maker, factor: np.ndarray | None, offset: np.ndarray | None) -> Value | None:
    """The anchor with its results multiplied and moved."""
    anchor, count, w = match.node("anchor"), _channels(match), match["w"]
    bias = None if count is None else _bias(match, anchor, count)
    if bias is None or any(part is not None and part.shape != bias.shape for part in (factor, offset)):
        return None
    name = anchor.output.name
    new_weights: Value | None = w
    if factor is not None:
        with np.errstate(all="ignore"):
            weights = match.array("w").astype(np.float64) * _along_weights(factor, anchor, match.array("w"))
        new_weights = _rounded(make, weights, w, f"{name}/weights")
    with np.errstate(all="ignore"):  # what overflows is seen in the result
        moved = (bias if factor is None else bias * factor) + (0 if offset is None else offset)
    new_bias = _rounded(make, moved, w, f"{name}/bias")
    return _with(anchor, match, make, new_weights, new_bias)


def _with(anchor: Node, match: Match, make: Maker, weights: Value | None, bias: Value | None) -> Value | None:
    """The anchor over x, with these weights and this bias; None where it cannot have them."""
    if weights is None or bias is None:
        return None
    op = replace(anchor.op, beta=1.0) if anchor.op.name == "Gemm" else anchor.op
    return make.node(op, match["x"], weights, bias)


def _bias(match: Match, anchor: Node, count: int) -> np.ndarray | None:
    """The anchor's bias as a vector over channels; None where it differs between rows (Gemm)."""
    if match.get("b") is None:
        return np.zeros(count)
    bias = match.array("b").astype(np.float64)
    if bias.ndim > 1 and bias.shape[0] != 1:
        return None
    vector = np.broadcast_to(bias.reshape(-1), (count,))
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


# -- in front of the anchor


def _in_front(change: Callable[[Match, Node], Change | None]) -> Callable[[Match, Maker], Value | None]:
    """For an operator over x whose result the anchor reads."""

    def build(match: Match, make: Maker) -> Value | None:
        with np.errstate(all="ignore"):
            found = change(match, match.node("before"))
        return None if found is None else _folded_in_front(match, make, *found)

    return build


def _by(change: Callable[[np.ndarray], Change]) -> Callable[[Match, Node], Change | None]:
    def build(match: Match, node: Node) -> Change | None:
        vector = _per_channel(match, node, match["x"])
        return None if vector is None else change(vector)

    return build


def _folded_in_front(match: Match, make: Maker, factor: np.ndarray | None, offset: np.ndarray | None) -> Value | None:
    """The anchor over x itself. What the offset adds is the same everywhere, unless there are zeros at the edges."""
    anchor, w, fields = match.root, match["w"], vars(match.root.op)
    weights = match.array("w").astype(np.float64)
    if anchor.op.name == "Conv":
        if offset is not None and (fields["auto_pad"] not in ("NOTSET", "VALID", "") or any(fields["pads"] or ())):
            return None
        groups = fields["group"]

        def along(vector: np.ndarray) -> np.ndarray:  # each result reads the channels of its group
            per_result = np.repeat(vector.reshape(groups, -1), weights.shape[0] // groups, axis=0)
            return per_result.reshape(*weights.shape[:2], *(1 for _ in weights.shape[2:]))

        inner = tuple(range(1, weights.ndim))
    elif not fields["transA"]:
        inner = (1,) if fields["transB"] else (0,)

        def along(vector: np.ndarray) -> np.ndarray:
            return vector.reshape(1, -1) if fields["transB"] else vector.reshape(-1, 1)

    else:
        return None
    added = np.zeros(1) if offset is None else (weights * along(offset)).sum(axis=inner) * fields.get("alpha", 1.0)
    count = anchor.output.type.shape[1]
    bias = _bias(match, anchor, count) if isinstance(count, int) else None
    if bias is None:
        return None
    name = anchor.output.name
    new_weights: Value | None = w
    with np.errstate(all="ignore"):
        if factor is not None:
            new_weights = _rounded(make, weights * along(factor), w, f"{name}/weights")
        new_bias = _rounded(make, bias + added, w, f"{name}/bias")
    return _with(anchor, match, make, new_weights, new_bias)


def _apart(match: Match, make: Maker) -> Value | None:
    """What is left of a batch normalization with constants: x * factor + offset."""
    x, change = match["x"], _change(match, match.root, per_element=True)
    if change is None or match.root.output.type != x.type:
        return None
    shape = (-1, *(1 for _ in x.type.shape[2:]))
    factor, offset = (
        _rounded(make, vector.reshape(shape) if vector.ndim == 1 else vector, x, f"{match.root.output.name}/{name}")
        for vector, name in zip(change, ("factor", "offset"), strict=True)
    )
    if factor is None or offset is None:
        return None
    return make.node(Add(), make.node(Mul(), x, factor), offset)


X, C = AnyValue("x"), ConstantOperand("c")
_STATISTICS = tuple(ConstantOperand(name) for name in ("scale", "bias", "mean", "var"))


def _anchor_of(before: ResultOf) -> ResultOf:
    return ResultOf("Conv Gemm", before, ConstantOperand("w"), OptionalOperand(ConstantOperand("b")))


def _before(operator: str, *operands: Pattern, either_order: bool = False) -> ResultOf:
    return ResultOf(operator, *operands, name="before", read_once=True, either_order=either_order)


RULES = (
    Rule("add", ResultOf("Add", _ANCHOR, C, either_order=True), _arithmetic(lambda c: (None, c))),
    Rule("subtract", ResultOf("Sub", _ANCHOR, C), _arithmetic(lambda c: (None, -c))),
    Rule("add_before", _anchor_of(_before("Add", X, C, either_order=True)), _in_front(_by(lambda c: (None, c)))),
    Rule("subtract_before", _anchor_of(_before("Sub", X, C)), _in_front(_by(lambda c: (None, -c)))),
)
CHANGING_WEIGHTS = (
    Rule("batch_normalization", ResultOf("BatchNormalization", _ANCHOR, *_STATISTICS), _normalization),
    Rule("multiply", ResultOf("Mul", _ANCHOR, C, either_order=True), _arithmetic(lambda c: (c, None))),
    Rule("divide", ResultOf("Div", _ANCHOR, C), _arithmetic(lambda c: (1 / c, None))),
    Rule("batch_normalization_before", _anchor_of(_before("BatchNormalization", X, *_STATISTICS)), _in_front(_change)),
    Rule(
        "multiply_before",
        _anchor_of(_before("Mul", X, C, either_order=True)),
        _in_front(_by(lambda c: (c, None))),
    ),
    Rule("divide_before", _anchor_of(_before("Div", X, C)), _in_front(_by(lambda c: (1 / c, None)))),
)
_APART = Rule("apart", ResultOf("BatchNormalization", X, *_STATISTICS), _apart)
