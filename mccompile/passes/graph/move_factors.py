"""move_factors: moves a factor of an operand to the result of the product.

(x * s) @ y is (x @ y) * s, where the factor costs nothing: it is part of the product's epilogue. Exporters scale the
queries, the keys, or both by a root before the scores of an attention, behind views that no epilogue reaches through.
What is left is one form of it: product of views, factor and mask in its epilogue, softmax, product of views; whichever
way it was spelled, it is three calls.

Division by a number becomes a product with its reciprocal, as vectors divide ten times slower than they multiply: where
that is exact (a power of two), or one rounding away and nothing but smooth functions (Erf of GELU, Softmax) reads it.

A factor stays where what makes the operand can take it. Invariant: factors that move, and products of them, are neither
so small nor so large that a result could leave the range of its type where it did not before, but for extreme operands.
"""

from __future__ import annotations

import math

import numpy as np

from ...graph.ir import Graph, Node, Value
from ...ops.api import ANCHOR, Operator
from ...ops.binary import Mul
from ...ops.matmul import MatMul
from ...ops.rules.elementwise import Elementwise
from ..api import Context
from ..pattern import AnyValue, ConstantOperand, Maker, Match, Pattern, ResultOf, Rule, rewrite

SMALLEST, LARGEST = 2.0**-16, 2.0**16  # of factors that move
SHORTEST = 4  # sums of a product, which a factor is multiplied with; shorter ones are no more work than the factors

X, Y, S, T = AnyValue("x"), AnyValue("y"), ConstantOperand("s"), ConstantOperand("t")
_SMOOTH = frozenset({"Erf", "Exp", "LogSoftmax", "Sigmoid", "Softmax", "Tanh"})
_VIEWS = frozenset({"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})


def move_factors(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)


def _number(match: Match, name: str) -> float | None:
    """One number that is not extreme."""
    type = match[name].type
    if not type.is_static or type.count != 1 or type.dtype.name not in ("f32", "f64"):
        return None
    number = float(match.array(name).reshape(-1)[0])
    return number if SMALLEST <= abs(number) <= LARGEST else None


def _moved(match: Match, make: Maker) -> Value | None:
    """The product, scaled afterwards."""
    scaled, product, x = match.node("scaled"), match.root, match["x"]
    first = product.inputs[0]
    assert first is not None
    inner = first.type.shape[-1]
    if not isinstance(inner, int) or inner < SHORTEST or _number(match, "s") is None:
        return None
    if x.type != scaled.output.type or _takes_factors(x):
        return None
    made = make.node(MatMul(), *(x if value is scaled.output else value for value in product.inputs))
    result = make.node(scaled.op, made, match["s"])
    if result.type != product.output.type:
        return None
    make.used(f"{match['s'].name} is not an extreme factor")
    return result


def _takes_factors(value: Value) -> bool:
    """Is the value made by an operator of its own, whose epilogue can take a factor?"""
    maker: Node | None = value.producer
    while maker is not None and len(value.uses) == 1 and maker.op.name in _VIEWS and maker.inputs[0] is not None:
        value = maker.inputs[0]
        maker = value.producer
    if maker is None or len(value.uses) > 1 or not isinstance(maker.op, Operator):
        return False
    return maker.op.fusion == ANCHOR or isinstance(maker.op, Elementwise)


def _joined(match: Match, make: Maker) -> Value | None:
    """x * s * t is x * (s * t)."""
    inner, outer = _number(match, "s"), _number(match, "t")
    if inner is None or outer is None or match["x"].type != match.root.output.type:
        return None
    both = inner * outer
    if not SMALLEST <= abs(both) <= LARGEST:
        return None
    for factor in ("s", "t"):
        make.used(f"{match[factor].name} is not an extreme factor")
    array = np.full(match["s"].type.static_shape, both, match["s"].type.dtype.numpy)
    return make.node(match.root.op, match["x"], make.constant(array, f"{match.root.output.name}/factor"))


def _reciprocal(match: Match, make: Maker) -> Value | None:
    """x / s is x * (1 / s)."""
    number, quotient = _number(match, "s"), match.root.output
    if number is None or match["x"].type != quotient.type:
        return None
    smooth = all(user.op.name in _SMOOTH for user, _ in quotient.uses) and not make.graph.is_output(quotient)
    if not smooth and abs(math.frexp(number)[0]) != 0.5:
        return None
    make.used(f"{match['s'].name} is {'no extreme factor' if smooth else 'a power of two'}")
    array = np.full(match["s"].type.static_shape, 1 / number, match["s"].type.dtype.numpy)
    return make.node(Mul(), match["x"], make.constant(array, f"{quotient.name}/factor"))


def _scaled(operator: str, a: Pattern, by: ConstantOperand, name: str = "") -> ResultOf:
    return ResultOf(operator, a, by, either_order=operator == "Mul", name=name, read_once=True)


RULES = (
    *(
        rule
        for operator in ("Mul", "Div")
        for rule in (
            Rule("factor_of_first", ResultOf("MatMul", _scaled(operator, X, S, "scaled"), Y), _moved),
            Rule("factor_of_second", ResultOf("MatMul", Y, _scaled(operator, X, S, "scaled")), _moved),
            Rule("factors", ResultOf(operator, _scaled(operator, X, S), T, either_order=operator == "Mul"), _joined),
        )
    ),
    Rule("reciprocal", ResultOf("Div", X, S), _reciprocal),
)
