"""LinearClassifier, LinearRegressor, SVMClassifier and SVMRegressor of ai.onnx.ml.

Coefficients and support vectors become constant operands when a node is read, so what was learnt lies in the blob.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dims import Dim
from ..base.dtypes import f32, i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from ..expr.powers import power
from ..kinds.couple import Couple
from ..kinds.gemm import Gemm
from ..program.ir import View
from .activation import add, logistic, mul, number
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported
from .reduce import reduce_call
from .rules.scores import (
    NONE,
    PROBIT,
    SOFTMAX,
    SOFTMAX_ZERO,
    Labels,
    best_label,
    binary_scores,
    class_labels,
    classified,
    give_classes,
    labels_of,
    transform_of,
    transformed,
)

_LEAST = 1e-7  # no pair is more certain


def features_of(node: OnnxNode) -> int:
    x = node.inputs[0].type if node.inputs and node.inputs[0] else None
    if x is None or x.rank not in (1, 2) or not isinstance(x.shape[-1], int):
        raise Invalid(f"x is {x}, not [rows, features]")
    return x.shape[-1]


def _rows(site: Site) -> Dim:
    x = site.type(0)
    return x.shape[0] if x.rank == 2 else 1


def _constants(node: OnnxNode, *arrays: np.ndarray) -> None:
    """Sets the operands after x."""
    for position, array in enumerate(arrays, 1):
        node.set_input(position, node.constant(array.astype(np.float32)))


def _x(to: Lowering) -> View:
    x = to.input(0)
    return to.cast(to.reshape(x, (_rows(to.site), x.shape[-1])), f32)


def _product(to: Lowering, a: View, b: View, epilogue: Expr | None = None, extras: Sequence[View] = ()) -> View:
    shape = (a.shape[0], b.shape[1])
    ins = [a, b, *(extra.broadcast_to(shape) for extra in extras)]
    return to.call(Gemm(f32, epilogue), ins, TensorType(f32, shape))[0]


class Linear(Operator, abstract=True):
    """Operands: x, coefficients [outputs, features], and intercepts, if any."""

    no_gradient = "preparing data and classical models are not learned through"
    domain = "ai.onnx.ml"

    def sums(self, to: Lowering) -> View:
        b = to.input(1).permuted((1, 0))
        if not to.has(2):
            return _product(to, _x(to), b)
        return _product(to, _x(to), b, add(operand(0, f32), operand(1, f32)), [to.input(2)])

    writable = False  # operands and tables cannot be turned back


def _read_linear(node: OnnxNode, outputs: int) -> None:
    features = features_of(node)
    coefficients = np.array(node.attributes.pop("coefficients", ()))
    intercepts = np.array(node.attributes.pop("intercepts", ()))
    if coefficients.size != outputs * features or intercepts.size not in (0, outputs):
        raise Invalid(
            f"{coefficients.size} coefficients and {intercepts.size} intercepts do not fit {outputs} outputs "
            f"and {features} features"
        )
    _constants(node, coefficients.reshape(outputs, features), *[intercepts] * bool(intercepts.size))


@dataclass(frozen=True)
class LinearRegressor(Linear):
    versions = (1,)
    targets: int = 1
    transform: str = NONE

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        targets, transform = node.attributes.pop("targets", 1), transform_of(node)
        _read_linear(node, targets)
        return cls(targets, transform)

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(f32, (_rows(site), self.targets)))]

    def lower(self, to: Lowering) -> None:
        to.set(0, transformed(to, self.sums(to), self.transform))


@dataclass(frozen=True)
class LinearClassifier(Linear):
    """With two labels and one row of coefficients the sum is the score of the second class."""

    versions = (1,)
    labels: Labels
    transform: str = NONE
    binary: bool = False

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        labels = class_labels(node, "classlabels_ints", "classlabels_strings")
        transform = transform_of(node)
        node.attributes.pop("multi_class", 0)
        binary = len(labels) == 2 and len(node.attributes.get("coefficients", ())) == features_of(node)
        if binary and transform == PROBIT:
            why = f"post_transform {transform} of one score for two classes: implementations differ in what that is"
            raise Unsupported(why, "export it with a row of coefficients for each class")
        _read_linear(node, 1 if binary else len(labels))
        return cls(labels, transform, binary)

    def infer(self, site: Site) -> list[Fact]:
        rows = _rows(site)
        return classified(self.labels, rows, len(self.labels))[: site.outputs]

    def lower(self, to: Lowering) -> None:
        # onnxruntime applies no softmax to one score
        give_classes(to, self.sums(to), self.labels, self.transform, 0.0 if self.binary else None)


KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


@dataclass(frozen=True)
class Machine(Operator, abstract=True):
    """Operands: x, support vectors [vectors, features] (of a linear model: its coefficients), and then each its own."""

    no_gradient = "preparing data and classical models are not learned through"
    domain = "ai.onnx.ml"
    versions = (1,)
    kernel: str = "LINEAR"
    parameters: tuple[float, ...] = ()
    transform: str = NONE

    def products(self, to: Lowering, x: View) -> View:
        """The kernel function of every row and every support vector."""
        vectors = to.input(1)
        gamma, coefficient, degree = (*self.parameters, 0.0, 0.0, 0.0)[:3]
        total = operand(0, f32)
        if self.kernel == "RBF":
            return self.distances(to, x, vectors, gamma)
        if self.kernel == "LINEAR":
            return _product(to, x, vectors.permuted((1, 0)))
        scaled = add(mul(number(gamma, total), total), number(coefficient, total))
        shaped = apply("tanh", scaled) if self.kernel == "SIGMOID" else power(scaled, degree)
        return _product(to, x, vectors.permuted((1, 0)), shaped)

    def distances(self, to: Lowering, x: View, vectors: View, gamma: float) -> View:
        """exp(-gamma * |x - vector| ** 2); the difference first, so that what is near stays exact."""
        rows, features = x.shape
        count = vectors.shape[0]
        a = View(x.buffer, (rows, count, features), (x.strides[0], 0, x.strides[1]), x.offset)
        b = vectors.broadcast_to((rows, count, features))
        difference = add(operand(0, f32), apply("neg", operand(1, f32)))
        total = operand(0, f32)
        shaped = apply("exp", mul(number(-gamma, total), total))
        return to.reshape(reduce_call(to, (2,), "add", mul(difference, difference), [a, b], shaped), (rows, count))

    writable = False  # operands and tables cannot be turned back


def _read_machine(node: OnnxNode) -> tuple[int, dict[str, Any], dict[str, np.ndarray]]:
    """How many features x has, the fields of a machine, and the arrays among its attributes."""
    features, attributes = features_of(node), node.attributes
    kernel, parameters = attributes.pop("kernel_type", "LINEAR"), attributes.pop("kernel_params", ())
    if kernel not in KERNELS:
        raise Invalid(f"kernel_type {kernel!r} is not one of {', '.join(KERNELS)}")
    fields = {"kernel": kernel, "parameters": tuple(map(float, parameters)), "transform": transform_of(node)}
    names = ("coefficients", "rho", "support_vectors", "prob_a", "prob_b")
    return features, fields, {name: np.array(attributes.pop(name, ())) for name in names}


@dataclass(frozen=True)
class SVMRegressor(Machine):
    one_class: bool = False

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        features, fields, values = _read_machine(node)
        coefficients, rho, vectors = values["coefficients"], values["rho"], values["support_vectors"]
        supports, one_class = node.attributes.pop("n_supports", 0), bool(node.attributes.pop("one_class", 0))
        count = supports or 1
        if (
            rho.size != 1
            or coefficients.size != (count if supports else features)
            or vectors.size not in (0, count * features)
        ):
            raise Invalid(
                f"{coefficients.size} coefficients, {vectors.size} numbers of support vectors and {rho.size} of rho"
            )
        if supports:
            _constants(node, vectors.reshape(count, features), coefficients.reshape(count, 1), rho)
        else:
            _constants(node, coefficients.reshape(1, features), np.ones((1, 1)), rho)
            fields["kernel"] = "LINEAR"
        return cls(**fields, one_class=one_class)

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(f32, (_rows(site), 1)))]

    def lower(self, to: Lowering) -> None:
        total = add(operand(0, f32), operand(1, f32))
        if self.one_class:
            total = apply("select", apply("greater", total, literal(0, f32)), literal(1, f32), literal(-1, f32))
        sums = _product(to, self.products(to, _x(to)), to.input(2), total, [to.input(3)])
        to.set(0, sums if self.one_class else transformed(to, sums, self.transform))


@dataclass(frozen=True)
class SVMClassifier(Machine):
    """One against one: every pair of classes has a sum over the support vectors of both, and votes. Operands after the
    support vectors: one column of coefficients for each pair, rho; and probability factors a and b, if any."""

    labels: Labels = ()
    linear: bool = False  # coefficients of a linear model for each class, no support vectors
    positive: bool = False

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        features, fields, values = _read_machine(node)
        fields["labels"] = labels = class_labels(node, "classlabels_ints", "classlabels_strings")
        counts = node.attributes.pop("vectors_per_class", ())
        coefficients, rho = values["coefficients"], values["rho"]
        positive = bool(coefficients.size) and bool((coefficients >= 0).all())
        if not counts:
            classes = coefficients.size // max(features, 1)
            if coefficients.size != classes * features or classes != len(labels) or rho.size != 1:
                raise Unsupported(
                    "a linear model whose coefficients are not one row for each class", "use LinearClassifier"
                )
            _constants(node, coefficients.reshape(classes, features), rho)
            return cls(**{**fields, "kernel": "LINEAR"}, linear=True, positive=positive)
        classes, total = len(counts), sum(counts)
        pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
        if (
            len(labels) != classes
            or coefficients.size != (classes - 1) * total
            or values["support_vectors"].size != total * features
            or rho.size != len(pairs)
            or values["prob_a"].size not in (0, len(pairs))
            or values["prob_b"].size != values["prob_a"].size
        ):
            raise Invalid("the sizes of the attributes do not fit each other")
        columns = _columns(coefficients.reshape(classes - 1, total), counts, pairs)
        arrays = [values["support_vectors"].reshape(total, features), columns, rho]
        if values["prob_a"].size:
            arrays += [values["prob_a"], values["prob_b"]]
        _constants(node, *arrays)
        return cls(**fields, positive=positive)

    def infer(self, site: Site) -> list[Fact]:
        rows = _rows(site)
        return classified(self.labels, rows, self.width(site.has(4)))[: site.outputs]

    def width(self, probabilities: bool) -> int:
        classes = len(self.labels)
        return classes if self.linear or probabilities or classes == 2 else classes * (classes - 1) // 2

    def lower(self, to: Lowering) -> None:
        if self.linear:
            scores = _product(
                to, _x(to), to.input(1).permuted((1, 0)), add(operand(0, f32), operand(1, f32)), [to.input(2)]
            )
            label, shown = best_label(to, scores, self.labels), transformed(to, scores, self.transform)
        else:
            products = self.products(to, _x(to))
            sums = _product(to, products, to.input(2), add(operand(0, f32), operand(1, f32)), [to.input(3)])
            label, shown = self.voted(to, sums)
        for position, view in enumerate((label, shown)):
            if to.wants(position):
                to.set(position, view)

    def of_pairs(self, to: Lowering, sums: View) -> View:
        """How likely the first class of each pair is, never 0 or 1."""
        x = add(mul(operand(0, f32), operand(1, f32)), operand(2, f32))
        likely = logistic(apply("neg", x))
        bounded = apply("min", apply("max", likely, literal(_LEAST, f32)), literal(1 - _LEAST, f32))
        factors = [to.reshape(to.input(i), (1, sums.shape[1])).broadcast_to(sums.shape) for i in (4, 5)]
        return to.map(bounded, [sums, *factors])

    def voted(self, to: Lowering, sums: View) -> tuple[View, View]:
        classes = len(self.labels)
        pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
        first = np.zeros((len(pairs), classes), np.float32)
        second = np.zeros((len(pairs), classes), np.float32)
        for number_, (i, j) in enumerate(pairs):
            first[number_, i] = second[number_, j] = 1
        won = to.map(cast(apply("greater", operand(0, f32), literal(0, f32)), f32), [sums])
        lost = to.map(add(literal(1, f32), apply("neg", operand(0, f32))), [won])
        votes_first = _product(to, won, to.constant(first, "votes"))
        votes = _product(to, lost, to.constant(second, "votes"), add(operand(0, f32), operand(1, f32)), [votes_first])
        if to.has(4):
            shown = to.call(Couple(classes), [self.of_pairs(to, sums)], TensorType(f32, (sums.shape[0], classes)))[0]
            return best_label(to, votes, self.labels), transformed(to, shown, self.transform)
        if classes > 2:
            return best_label(to, votes, self.labels), transformed(to, sums, self.transform)
        x = operand(0, f32)
        softmax = self.transform in (SOFTMAX, SOFTMAX_ZERO)  # which onnxruntime does not apply to one score
        shown = binary_scores(to, sums, NONE, positive=softmax)
        second_wins = apply("select", apply("greater", x, literal(0, f32)), literal(0, i64), literal(1, i64))  # NaN too
        label = labels_of(to, to.reshape(to.map(second_wins, [sums]), (sums.shape[0],)), self.labels)
        return label, shown if softmax else transformed(to, shown, self.transform)


def _columns(coefficients: np.ndarray, counts: Sequence[int], pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Coefficients as libsvm has them (row j - 1 of the vectors of class i, for i < j), one column for each pair."""
    starts = np.cumsum([0, *counts])
    columns = np.zeros((coefficients.shape[1], len(pairs)))
    for number_, (i, j) in enumerate(pairs):
        of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        columns[of_i, number_] = coefficients[j - 1, of_i]
        columns[of_j, number_] = coefficients[i, of_j]
    return columns
