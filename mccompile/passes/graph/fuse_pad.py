"""fuse_pad: padding becomes part of the convolution or pool that follows it, where the result is exactly the same.

A convolution pads with zeros; so does an average pool that counts its padding. A maximum pool ignores its padding,
which is the same as padding with the lowest value, or with zeros where nothing is negative. The number that pads
stands in a constant, so that it is the right one is recorded.

Between quantized tensors the padding is of integers, with the zero point: `lower_qdq` applies QUANTIZED_RULES before it
looks for convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...graph.ir import Graph, Op, Value
from ..api import Context
from ..pattern import AnyValue, ConstantOperand, Maker, Match, OptionalOperand, ResultOf, Rule, rewrite
from ..quantized.quantized_tensors import dequantized

_NEVER_NEGATIVE = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Abs", "Softmax", "Exp", "Softplus"})
_PAD = ResultOf(
    "Pad",
    AnyValue("x"),
    ConstantOperand("pads"),
    OptionalOperand(ConstantOperand("number")),
    OptionalOperand(ConstantOperand("axes")),
    name="pad",
    read_once=True,
)


def fuse_pad(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)


def _spatial_pads(match: Match) -> tuple[int, ...] | None:
    """What the Pad adds before and after each spatial axis; None where that is not all it does."""
    rank = match["x"].type.rank
    known = match["pads"].fact.value
    if vars(match.node("pad").op).get("mode", "constant") != "constant" or known is None:
        return None
    axes = list(range(rank))
    if match.get("axes") is not None:
        axes = [int(axis) % rank for axis in match.array("axes").reshape(-1)]
    pads = [int(n) for n in known.reshape(-1)]
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[position + len(axes)]
    if any((*before[:2], *after[:2])) or min(*before, *after) < 0:
        return None
    return (*before[2:], *after[2:])


def _number(match: Match) -> float:
    if match.get("number") is None:
        return 0.0
    return float(match.array("number").reshape(-1)[0])


def _with_pads(match: Match, make: Maker, op: Op, pads: tuple[int, ...]) -> Value:
    number = match.get("number")
    if number is not None:
        make.used(f"{number.name} is {_number(match):g}")
    return make.node(op, match["x"], *match.root.inputs[1:])


def _own_pads(op: Op, count: int) -> tuple[int, ...] | None:
    """The pads that an operator has already; None where they follow from sizes."""
    fields = vars(op)
    if fields.get("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID"):
        return None
    padded = fields.get("pads") and fields.get("auto_pad", "NOTSET") != "VALID"
    return tuple(fields["pads"]) if padded else (0,) * count


def _joined(match: Match) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The operator's own pads, and the sum of both."""
    added = _spatial_pads(match)
    own = None if added is None else _own_pads(match.root.op, len(added))
    if added is None or own is None or len(own) != len(added):
        return None
    return own, tuple(a + b for a, b in zip(own, added, strict=True))


def _into_conv(match: Match, make: Maker) -> Value | None:
    joined = _joined(match)
    if joined is None or _number(match) != 0:
        return None
    return _with_pads(match, make, replace(match.root.op, pads=joined[1], auto_pad="NOTSET"), joined[1])


def _into_quantized_conv(match: Match, make: Maker) -> Value | None:
    joined = _joined(match)
    return None if joined is None else _before_dequantize(match, make, joined[1], {})


def _into_quantized_pool(match: Match, make: Maker) -> Value | None:
    pads = _pool_pads(match)
    return None if pads is None else _before_dequantize(match, make, pads, {"count_include_pad": 1})


def _before_dequantize(match: Match, make: Maker, pads: tuple[int, ...], also: Mapping[str, int]) -> Value | None:
    """The operator over the tensor as it was before it was padded with the integer that stands for 0."""
    node = match.node("dequantize")
    scheme = dequantized(node.output)
    if scheme is None or scheme.axis is not None or _number(match) != scheme.zero:
        return None
    make.used(f"what pads {match['x'].name} is its zero point")
    number = make.node(node.op, match["x"], *node.inputs[1:])
    op = replace(match.root.op, **{**also, "pads": pads, "auto_pad": "NOTSET"})
    return make.node(op, number, *match.root.inputs[1:])


def _pool_pads(match: Match) -> tuple[int, ...] | None:
    """Those of an average pool that counts its padding."""
    joined, fields = _joined(match), vars(match.root.op)
    if joined is None or fields.get("ceil_mode"):
        return None
    own, pads = joined
    return None if any(own) and not fields["count_include_pad"] else pads


def _into_average_pool(match: Match, make: Maker) -> Value | None:
    pads = _pool_pads(match)
    if pads is None or _number(match) != 0:
        return None
    op = replace(match.root.op, pads=pads, auto_pad="NOTSET", count_include_pad=1)
    return _with_pads(match, make, op, pads)


def _into_max_pool(match: Match, make: Maker) -> Value | None:
    joined, fields = _joined(match), vars(match.root.op)
    if joined is None or fields.get("ceil_mode") or any(step != 1 for step in fields.get("dilations") or ()):
        return None
    own, pads = joined
    kernel = fields["kernel_shape"]
    if any(pad >= size for pad, size in zip(pads, (*kernel, *kernel), strict=True)):
        return None  # a window could lie in the padding alone
    dtype = match["x"].type.dtype
    lowest = -np.inf if dtype.is_float else float(dtype.low)
    maker = match["x"].producer
    never_negative = maker is not None and not maker.op.domain and maker.op.name in _NEVER_NEGATIVE
    if _number(match) != lowest and not (_number(match) == 0 and never_negative):
        return None
    if any(own) and _number(match) != lowest:
        return None
    return _with_pads(match, make, replace(match.root.op, pads=pads, auto_pad="NOTSET"), pads)


RULES = (
    Rule("pad_conv", ResultOf("Conv", _PAD, AnyValue("w"), rest=True), _into_conv),
    Rule("pad_average_pool", ResultOf("AveragePool", _PAD), _into_average_pool),
    Rule("pad_max_pool", ResultOf("MaxPool", _PAD), _into_max_pool),
)

_DEQUANTIZED = ResultOf("DequantizeLinear", _PAD, rest=True, name="dequantize")
QUANTIZED_RULES = (
    Rule("quantized_pad_conv", ResultOf("Conv", _DEQUANTIZED, AnyValue("w"), rest=True), _into_quantized_conv),
    Rule("quantized_pad_average_pool", ResultOf("AveragePool", _DEQUANTIZED), _into_quantized_pool),
)
