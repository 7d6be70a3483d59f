"""Indices divided in floats: exporters cast the indices of TopK and ArgMax to float, divide, round down and cast back.

A float holds a position exactly as long as the axis has no more elements than the type has whole numbers, and then the
quotient of two of them rounds to the whole number below it as in integers.
"""

from __future__ import annotations

import numpy as np

from ....base.dims import upper
from ....graph.ir import Value
from ....ops.argmax_cumsum import ArgExtreme
from ....ops.binary import Div, Mod
from ....ops.cast import Cast
from ....ops.top_k import TopK
from ...pattern import AnyValue, ConstantOperand, Maker, Match, ResultOf, Rule

_MOVES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Expand", "Tile", "Identity"})


def _places(value: Value) -> int | None:
    """How many places there are, of which the elements of the value name some; None where they are something else."""
    while value.producer is not None and value.producer.op.name in _MOVES and value.producer.inputs[0] is not None:
        value = value.producer.inputs[0]
    node = value.producer
    if node is None or node.inputs[0] is None or not isinstance(node.op, ArgExtreme | TopK):
        return None
    if isinstance(node.op, TopK) and value is not node.outputs[1]:
        return None
    shape = node.inputs[0].type.shape
    return upper(shape[node.op.axis]) if shape else 1


def _divisor(match: Match, make: Maker) -> Value | None:
    """The divisor as an integer, where a float holds the positions and it."""
    x, held = match["x"], match.node("held").output.type.dtype
    places, by = _places(x), match.array("by")
    if places is None or not held.is_float or by.size != 1 or match["by"].type.rank > x.type.rank:
        return None
    divisor = float(by.reshape(-1)[0])
    if max(places, divisor) > held.whole or not divisor.is_integer() or divisor < 1:
        return None
    make.used(f"{match['by'].name} is a positive integer")
    return make.constant(np.array(int(divisor), x.type.dtype.numpy), f"{match.root.output.name}/divisor")


def _quotient(match: Match, make: Maker) -> Value | None:
    divisor, op = _divisor(match, make), match.root.op
    return None if divisor is None else make.node(op, make.node(Div(), match["x"], divisor))


def _rest(match: Match, make: Maker) -> Value | None:
    divisor, op = _divisor(match, make), match.root.op
    return None if divisor is None else make.node(op, make.node(Mod(), match["x"], divisor))


def _is_integer(match: Match) -> bool:
    return isinstance(match.root.op, Cast) and match.root.output.type.dtype.is_integer


_HELD, _BY = ResultOf("Cast", AnyValue("x"), name="held"), ConstantOperand("by")
_QUOTIENT = ResultOf("Div", _HELD, _BY)
POSITIONS = (
    *(
        Rule("quotient", ResultOf("Cast", form), _quotient, _is_integer)
        for form in (ResultOf("Floor", _QUOTIENT), _QUOTIENT)
    ),
    Rule("rest", ResultOf("Cast", ResultOf("Mod", _HELD, _BY)), _rest, _is_integer),
)
