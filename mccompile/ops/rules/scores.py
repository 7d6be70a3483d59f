"""What classifiers and regressors of ai.onnx.ml make of their sums: scores, and the label of the best."""

from __future__ import annotations

import math

import numpy as np

from ...base.dims import Dim
from ...base.dtypes import DType, f32, i32, i64, string
from ...base.tensor import TensorType
from ...expr.ir import Expr, apply, cast, literal, operand
from ...kinds.arg_reduce import ArgReduce
from ...kinds.concat import Concat
from ...kinds.gather import Gather
from ...kinds.normalize import Normalize
from ...program.ir import View
from ..activation import add, logistic, mul, number, where
from ..api import Fact, Invalid, Lowering, OnnxNode

NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT = "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"
TRANSFORMS = (NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT)


def transform_of(node: OnnxNode) -> str:
    """The attribute `post_transform`, taken out of the node."""
    name: str = node.attributes.pop("post_transform", NONE)
    if name not in TRANSFORMS:
        raise Invalid(f"post_transform {name!r} is not one of {', '.join(TRANSFORMS)}")
    return name


Labels = tuple[int, ...] | tuple[str, ...]


def class_labels(node: OnnxNode, integers: str, strings: str) -> Labels:
    """The labels of a classifier; takes both attributes out of the node."""
    texts, numbers = node.attributes.pop(strings, ()), node.attributes.pop(integers, ())
    if bool(texts) is bool(numbers):
        raise Invalid(f"it needs one of {integers} and {strings}")
    return tuple(texts or numbers)


def label_type(labels: Labels) -> DType:
    return string if isinstance(labels[0], str) else i64


def classified(labels: Labels, rows: Dim, scores: int) -> list[Fact]:
    """The results of a classifier: a label and a number of scores for each row."""
    return [Fact(TensorType(label_type(labels), (rows,))), Fact(TensorType(f32, (rows, scores)))]


def transformed(to: Lowering, scores: View, how: str) -> View:
    """Scores [rows, classes] after `post_transform`."""
    dtype = scores.buffer.dtype
    match how:
        case "SOFTMAX":
            return to.call(Normalize((1,), "softmax", dtype), [scores], scores.type)[0]
        case "SOFTMAX_ZERO":
            return _softmax_zero(to, scores)
        case "LOGISTIC":
            return to.map(logistic(operand(0, dtype)), [scores])
        case "PROBIT":
            return to.map(probit(operand(0, dtype)), [scores])
    return scores


def probit(x: Expr) -> Expr:
    """The quantile of the normal distribution, by the approximation of erf's inverse that onnxruntime has."""
    z = add(mul(number(2, x), x), number(-1, x))
    log = apply("log", mul(add(number(1, z), apply("neg", z)), add(number(1, z), z)))
    a = 0.147
    v = add(number(2 / (math.pi * a), z), mul(number(0.5, z), log))
    inner = add(apply("neg", v), apply("sqrt", add(mul(v, v), apply("neg", mul(number(1 / a, z), log)))))
    return mul(number(math.sqrt(2), z), mul(apply("sign", z), apply("sqrt", inner)))


def _softmax_zero(to: Lowering, scores: View) -> View:
    """Softmax over what is not zero; zeros stay."""
    x = operand(0, scores.buffer.dtype)
    zero = apply("less_equal", apply("abs", x), number(1e-7, x))
    soft = to.call(
        Normalize((1,), "softmax", x.dtype), [to.map(where(zero, number(-math.inf, x), x), [scores])], scores.type
    )[0]
    return to.map(where(zero, number(0, x), operand(1, x.dtype)), [scores, soft])


def best_label(to: Lowering, scores: View, labels: Labels) -> View:
    """The label of the largest score in each row; the first of equal ones."""
    rows = scores.shape[0]
    best = to.call(ArgReduce(1, True), [scores], TensorType(i64, (rows, 1)))[0]
    return labels_of(to, to.reshape(best, (rows,)), labels)


def labels_of(to: Lowering, positions: View, labels: Labels) -> View:
    if list(labels) == list(range(len(labels))):
        return to.cast(positions, i64)
    dtype = label_type(labels)
    table = to.constant(np.array(labels, dtype.numpy), "labels")
    return to.call(Gather((-1,), in_range=True), [table, positions], TensorType(dtype, positions.shape))[0]


def two_columns(to: Lowering, first: Expr, second: Expr, score: View) -> View:
    """Two scores made of one: [rows, 1] to [rows, 2]."""
    type = TensorType(first.dtype, (score.shape[0], 2))
    return to.call(Concat(1), [to.map(first, [score]), to.map(second, [score])], type)[0]


def binary_scores(to: Lowering, score: View, transform: str, positive: bool) -> View:
    """Scores of both classes, given the sum [rows, 1] of the second."""
    x = operand(0, score.buffer.dtype)
    if transform == PROBIT:
        return two_columns(to, probit(x), probit(x), score)
    if transform == LOGISTIC:
        return two_columns(to, logistic(apply("neg", x)), logistic(x), score)
    if positive:
        return complement_and(to, score)
    return two_columns(to, apply("neg", x), x, score)


def complement_and(to: Lowering, score: View) -> View:
    """Scores of both classes, where that of the second is how likely it is."""
    x = operand(0, score.buffer.dtype)
    return two_columns(to, add(number(1, x), apply("neg", x)), x, score)


def give_classes(
    to: Lowering, sums: View, labels: Labels, transform: str, threshold: float | None = None, positive: bool = True
) -> None:
    """Sets the results of a classifier: labels and scores. With a threshold, `sums` are those of the second of two
    labels; what that leaves for the first one, `positive` tells (see `binary_scores`)."""
    if to.wants(0):
        to.set(0, best_label(to, sums, labels) if threshold is None else binary_label(to, sums, threshold, labels))
    if to.wants(1):
        binary = threshold is not None
        scores = binary_scores(to, sums, transform, positive) if binary else transformed(to, sums, transform)
        to.set(1, to.cast(scores, f32))


def binary_label(to: Lowering, score: View, threshold: float, labels: Labels) -> View:
    """The second of two labels where the score [rows, 1] is above a threshold."""
    above = apply("greater", operand(0, score.buffer.dtype), literal(threshold, score.buffer.dtype))
    chosen = to.map(cast(above, i32), [score])
    return labels_of(to, to.reshape(chosen, (score.shape[0],)), labels)
