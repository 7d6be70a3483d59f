"""move_reshape: operators between a reshape and the reshape back work in the original shape.

Exporters flatten pictures to add a factor or bias per channel. In the shape before, the calculation is part of the
convolution's epilogue and pictures may lie in the layout that kernels want; the two reshapes meet, and nothing is left
of them.

Invariant: constants keep their number of elements. One that is repeated along a part of an axis only stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...graph.ir import Graph, Node, Value
from ..api import Context
from ..pattern import AnyValue, Maker, Match, ResultOf, Rule, rewrite

_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
_ELEMENTWISE = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Sqrt"}
    | {"Exp", "Abs", "Neg", "Elu", "Softplus", "HardSwish", "HardSigmoid", "Gelu", "Swish", "Mish"}
)


def move_reshape(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)


def _before(match: Match, make: Maker) -> Value | None:
    out = match.root.output.type
    if not out.is_static or 0 in out.shape:
        return None
    steps: list[Node] = []
    value = match["last"]
    while (maker := _only_for_this(value, make.graph)) is not None and maker.op.name not in _RESHAPES:
        before = _operand(maker)
        if maker.op.name not in _ELEMENTWISE or before is None or before.type.shape != value.type.shape:
            return None
        steps.append(maker)
        value = before
    if not steps or maker is None or maker.inputs[0] is None:
        return None
    result = maker.inputs[0]
    if result.type.shape != out.shape:
        return None
    match.matched += [*steps, maker]
    for step in reversed(steps):
        operands = [_moved(operand, value, result, make) for operand in step.inputs]
        if any(new is None and old is not None for new, old in zip(operands, step.inputs, strict=True)):
            return None
        result, value = make.node(step.op, *operands), step.output
        if result.type.shape != out.shape:
            return None
    return result


def _only_for_this(value: Value, graph: Graph) -> Node | None:
    """What makes the value, if one node reads it and nobody else."""
    return value.producer if len(value.uses) == 1 and not graph.is_output(value) else None


def _operand(node: Node) -> Value | None:
    """The only operand that is not a constant."""
    computed = [value for value in node.inputs if value is not None and value.constant is None]
    return computed[0] if len(computed) == 1 else None


def _moved(operand: Value | None, value: Value, moved: Value, make: Maker) -> Value | None:
    """An operand of a calculation with `value` as one of a calculation with `moved`."""
    if operand is value or operand is None:
        return moved if operand is value else None
    shape = _in_shape(operand.type.static_shape, value.type.static_shape, moved.type.static_shape)
    if shape is None or operand.constant is None or shape == operand.type.static_shape:
        return operand if shape is not None else None
    return make.constant(operand.constant.array.reshape(shape), f"{operand.name}/moved")


def _in_shape(constant: tuple[int, ...], cut: tuple[int, ...], x: tuple[int, ...]) -> tuple[int, ...] | None:
    """The constant's shape where tensors are of shape x, if it broadcasts to `cut` now."""
    if len(constant) > len(cut):
        return None
    constant = (1,) * (len(cut) - len(constant)) + constant
    shape: list[int] = []
    for parts, axes in _groups(cut, x):
        held, whole = [constant[i] for i in parts], [cut[i] for i in parts]
        if math.prod(held) == 1:
            shape += [1] * len(axes)
        elif held == whole:
            shape += [x[i] for i in axes]
        else:
            return None
    return tuple(shape)


def _groups(a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[tuple[list[int], list[int]]]:
    """The smallest groups of axes of two shapes that have as many elements each."""
    i = j = 0
    while i < len(a) or j < len(b):
        left, right = ([i] if i < len(a) else []), ([j] if j < len(b) else [])
        i, j = i + len(left), j + len(right)
        while (counts := (math.prod(a[k] for k in left), math.prod(b[k] for k in right)))[0] != counts[1]:
            if counts[0] < counts[1]:
                left.append(i)
                i += 1
            else:
                right.append(j)
                j += 1
        yield left, right


RULES = (Rule("reshape_back", ResultOf(" ".join(sorted(_RESHAPES)), AnyValue("last"), rest=True), _before),)
