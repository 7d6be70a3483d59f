"""gather_quantized: rows are gathered from the quantized table, and only these rows are dequantized.

Gather of DequantizeLinear of a constant becomes DequantizeLinear of Gathers: of the integers, and of the scales and
zero points that belong to the rows. An embedding stays packed in the blob and no run unpacks it whole, also where a
product reads the same table (tied weights; block_products reads it packed too). Scales in blocks along the gathered
axis, and one per row of a table of more than two axes, stay as they are.

Before DequantizeLinear is folded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.dims import static
from ...graph.ir import Graph, Value
from ...ops.api import normal_axis
from ...ops.gather import Gather
from ...ops.quantize import Linear
from ..api import Context
from ..pattern import AnyValue, ConstantOperand, Maker, Match, OptionalOperand, ResultOf, Rule, rewrite

_TABLE = ResultOf(
    "DequantizeLinear RoundingDequantizeLinear",
    ConstantOperand("w"),
    ConstantOperand("scale"),
    OptionalOperand(ConstantOperand("zero")),
    name="unpacked",
)
_GATHER = ResultOf("Gather", _TABLE, AnyValue("indices"), name="gather")


def gather_quantized(graph: Graph, context: Context) -> None:
    rewrite(graph, (Rule("gather_dequantized", _GATHER, _gathered),))


def _gathered(match: Match, make: Maker) -> Value | None:
    op, w, scale = match.node("unpacked").op, match["w"], match["scale"]
    assert isinstance(op, Linear)
    rank = w.type.rank
    if not w.type.dtype.is_integer or w.type.dtype.bits > 8 or not rank:
        return None
    rows = Gather(axis=normal_axis(vars(match.node("gather").op)["axis"], rank))
    parameters = [match[name] for name in ("scale", "zero") if name in match.values]
    if scale.type.count == 1 and scale.type.rank < 2:
        return make.node(op, make.node(rows, w, match["indices"]), *parameters)
    axis = op.along(scale.type.shape, w.type.shape)
    if axis == rows.axis and not op.block_size and rank == 2:  # one block along the other axis is the same
        axis, op = 1 - axis, replace(op, block_size=static(w.type.shape[1 - axis]))
        parameters = [_turned(match, make, value, axis) for value in parameters]
    if axis == rows.axis or not static(w.type.shape[axis]):
        return None
    if op.block_size:
        parameters = [make.node(rows, value, match["indices"]) for value in parameters]
    moved = axis if axis < rows.axis else axis + match["indices"].type.rank - 1
    return make.node(replace(op, axis=moved), make.node(rows, w, match["indices"]), *parameters)


def _turned(match: Match, make: Maker, value: Value, axis: int) -> Value:
    """A vector as a matrix, whose other axis it goes along."""
    assert value.constant is not None
    return make.constant(np.expand_dims(value.constant.array, axis), f"{value.name}/rows")
