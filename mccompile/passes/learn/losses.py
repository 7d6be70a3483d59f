"""Losses as nodes behind a network: the mean over all elements of a batch, as in PyTorch.

Invariant: where the network ends in what a loss undoes (Softmax, Sigmoid), the loss is taken of what goes into that,
also if reshapes, transposes or casts follow; where it ends in integers, of the floats that are rounded to them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...base.dtypes import DType, f32, i64
from ...base.errors import Problem, WrongUse
from ...base.near import near
from ...base.tensor import TensorType
from ...expr.ir import Expr, apply, literal
from ...graph.ir import Fact, Graph, Op, Value
from ...ops.cast import Cast
from ...ops.rules.backward import Writer
from ...ops.softmax import AlongAxis
from ...ops.transpose import Transpose
from .optimizers import add, mul, place, sub

TARGET = "target"
CLASSES = ("cross_entropy", "nll")  # losses whose target is a class
_MOVES = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Cast")  # elements, and no more


def add_loss(graph: Graph, writer: Writer, text: str) -> Value:
    """The scalar that `text`, KIND:OUTPUT or the name of a scalar output, asks for. What it compares with becomes an
    input of the graph."""
    kind, name = _parted(text)
    output = _before(loss_output(graph, text), "QuantizeLinear") or loss_output(graph, text)
    if output.type.dtype is not f32 or not output.type.is_static:
        why = f"it is {output.type}, and a loss is taken of f32 of a fixed shape"
        fix = "give the model an output of f32: what this one is made of, or a Cast of it"
        fix = "fix free dimensions with --dim NAME=1" if output.type.dtype is f32 else fix
        raise WrongUse(Problem(f"output {name!r} has no loss", "--loss", why, fix))
    if not output.type.count:
        why = f"it is {output.type}, and the mean of no elements is not a number"
        raise WrongUse(Problem(f"output {name!r} has no loss", "--loss", why, "give the model a batch of 1 or more"))
    if not kind:
        if output.type.count != 1:
            raise WrongUse(
                Problem(f"output {name!r} is not a loss", "--loss", f"it is {output.type}", f"--loss mse:{name}")
            )
        return writer.reshape(output, ())
    return _LOSSES[kind](graph, writer, output)


def _parted(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    return (kind, name) if colon else ("", text)


def loss_output(graph: Graph, text: str) -> Value:
    """The output that a loss is taken of."""
    kind, name = _parted(text)
    if kind and kind not in _LOSSES:
        why = f"they are {', '.join(_LOSSES)}, and any output of one number by its name"
        likely = near(kind, _LOSSES) or "cross_entropy"
        fix = f"did you mean --loss {likely}:{name}?"
        raise WrongUse(Problem(f"there is no loss {kind!r}", "--loss", why, fix))
    outputs = {value.name: value for value in graph.outputs}
    if name not in outputs:
        why = f"the outputs are {', '.join(outputs)}"
        meant_kind = kind or near(name, _LOSSES)
        output = near(name, outputs) or next(iter(outputs))
        fix = f"did you mean --loss {meant_kind or 'mse'}:{output}?"
        raise WrongUse(Problem(f"there is no output {name!r}", "--loss", why, fix))
    return outputs[name]


def unlike_probabilities(graph: Graph, text: str) -> list[str]:
    """Where bce is asked of numbers that are not probabilities: why, and what to do, in words."""
    kind, name = _parted(text)
    node = _behind_moves(loss_output(graph, text))[0].producer
    if kind != "bce" or node is None or node.op.name not in _ANY_NUMBERS:
        return []
    return [
        f"--loss {text} takes probabilities, and {name} comes from {node.op.name}, which gives any numbers: outside of "
        "0 to 1, the loss is NaN. Put a Sigmoid behind it in the model; as the last operator it is taken together with "
        "the loss, as in PyTorch's BCEWithLogitsLoss"
    ]


def _target(graph: Graph, writer: Writer, dtype: DType, shape: tuple[int, ...]) -> Value:
    value = Value(writer.name(TARGET), Fact(TensorType(dtype, shape)))
    graph.inputs.append(value)
    return value


def _mean(writer: Writer, x: Value) -> Value:
    return writer.op("ReduceMean", x, keepdims=0)


def _before(value: Value, *operators: str) -> Value | None:
    """What went into the last operator, if it is one of these."""
    node = value.producer
    return node.inputs[0] if node is not None and node.op.name in operators else None


Moves = list[tuple[Op, tuple[int, ...]]]  # operators with the shapes that they make, first to last


def _behind_moves(value: Value) -> tuple[Value, Moves]:
    """The value whose elements these are, and what moves them."""
    node, before = value.producer, _before(value, *_MOVES)
    if node is None or before is None or not before.type.dtype.is_float:
        return value, []
    made, moves = _behind_moves(before)
    return made, [*moves, (node.op, value.type.static_shape)]


def _moved(writer: Writer, x: Value, moves: Moves) -> Value:
    """Another value of the same shape, moved the same way."""
    for op, shape in moves:
        if isinstance(op, Transpose):
            x = writer.transpose(x, op.order(x.type.rank))
        elif isinstance(op, Cast):
            x = writer.op("Cast", x, to=op.to)
        else:
            x = writer.reshape(x, shape)
    return x


def _cross_entropy(graph: Graph, writer: Writer, scores: Value) -> Value:
    axis = _class_axis(scores)
    made, moves = _behind_moves(scores)
    before = _before(made, "Softmax", "LogSoftmax")
    if before is not None and _is_along(made, moves, axis):
        scores = _moved(writer, before, moves)
    return _picked(graph, writer, writer.op("LogSoftmax", scores, axis=axis), axis)


def _is_along(made: Value, moves: Moves, axis: int) -> bool:
    """Does the Softmax that made a value go along what is an axis where it has moved?"""
    op = made.producer and made.producer.op
    if not isinstance(op, AlongAxis) or not made.type.is_static:
        return False
    shape, axes = made.type.static_shape, op.axes(made.type.rank)
    rest = [1 if a in axes else size for a, size in enumerate(shape)]
    sums = np.broadcast_to(np.arange(prod(rest)).reshape(rest), shape)  # which of them an element is in
    for op, result in moves:
        sums = (sums.transpose(op.order(sums.ndim)) if isinstance(op, Transpose) else sums).reshape(result)
    return sums.shape[axis] == prod(shape[a] for a in axes) and bool((sums == sums.take([0], axis)).all())


def _class_axis(scores: Value) -> int:
    """As PyTorch has it: axis 1, behind the batch; or the only one."""
    if not scores.type.rank:
        raise WrongUse(
            Problem(f"{scores.name} has no classes", "--loss", "it is one number", f"--loss mse:{scores.name}")
        )
    return min(1, scores.type.rank - 1)


def _nll(graph: Graph, writer: Writer, logarithms: Value) -> Value:
    return _picked(graph, writer, logarithms, _class_axis(logarithms))


def _picked(graph: Graph, writer: Writer, logarithms: Value, axis: int) -> Value:
    """Minus the mean of the logarithms at the classes that the target names."""
    shape = tuple(int(dim) for dim in logarithms.type.static_shape)
    rest = shape[:axis] + shape[axis + 1 :]
    target = _target(graph, writer, i64, rest)
    numbers = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    named = writer.reshape(target, (*shape[:axis], 1, *shape[axis + 1 :]))
    is_target = writer.op("Equal", named, writer.constant(numbers))
    zero = writer.number(0, logarithms)
    picked = writer.op("Where", is_target, logarithms, zero)
    total = writer.op("ReduceSum", picked, keepdims=0)
    return writer.op("Mul", total, writer.number(-1 / max(1, int(np.prod(rest))), logarithms))


def _pointwise(formula: Callable[[Expr, Expr], Expr], *undone: tuple[str, Callable[[Expr, Expr], Expr]]) -> _Loss:
    """The mean of an expression of result and target; `undone`: another one of what goes into a last operator."""

    def loss(graph: Graph, writer: Writer, output: Value) -> Value:
        expression = formula
        for operator, other in undone:
            made, moves = _behind_moves(output)
            before = _before(made, operator)
            if before is not None:
                output, expression = _moved(writer, before, moves), other
        target = _target(graph, writer, f32, output.type.static_shape)
        return _mean(writer, writer.pointwise(expression(place(0), place(1)), output, target))

    return loss


def _square(x: Expr, y: Expr) -> Expr:
    return mul(sub(x, y), sub(x, y))


def _huber(x: Expr, y: Expr) -> Expr:
    """With delta 1."""
    far = apply("abs", sub(x, y))
    is_near = apply("less", far, literal(1.0, f32))
    return apply("select", is_near, mul(0.5, mul(far, far)), sub(far, 0.5))


def _entropy(x: Expr, y: Expr) -> Expr:
    """Logarithms are at least -100, as PyTorch has them."""

    def log(p: Expr) -> Expr:
        return apply("max", apply("log", p), literal(-100.0, f32))

    return mul(-1.0, add(mul(y, log(x)), mul(sub(1.0, y), log(sub(1.0, x)))))


def _entropy_of_logits(x: Expr, y: Expr) -> Expr:
    rest = apply("log", add(1.0, apply("exp", mul(-1.0, apply("abs", x)))))
    return add(sub(apply("max", x, literal(0.0, f32)), mul(x, y)), rest)


_ANY_NUMBERS = ("Gemm", "MatMul", "Conv", "ConvTranspose", "Add")  # operators that make logits
_Loss = Callable[[Graph, Writer, Value], Value]
_LOSSES: dict[str, _Loss] = {
    "cross_entropy": _cross_entropy,
    "nll": _nll,
    "mse": _pointwise(_square),
    "huber": _pointwise(_huber),
    "bce": _pointwise(_entropy, ("Sigmoid", _entropy_of_logits)),
}
LOSSES = tuple(_LOSSES)
