"""What is said of errors agrees with what becomes of them: of single calls, of errors that are added to their operands;
of networks, of what sums in 32-bit floats leave."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import ModelProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from mccompile.base import summation_error
from mccompile.base.summation_error import HALF_PLACE
from mccompile.driver import Options
from mccompile.frontend.load import load_proto
from mccompile.kernels.api import terms
from mccompile.passes.lower import lower
from mccompile.passes.program.limit_errors.noise import steps
from mccompile.targets.api import Prefer
from tests.passes.program.limit_errors.networks import cancelling, of_text, plain, prepared

IMAGE = "(float[1,8,12,12] x) => (float[1,8,12,12] y)"
ROWS = "(float[64,32] x) => (float[64,32] y)"
CALLS = {
    "relu": f"{IMAGE} {{ y = Relu(x) }}",
    "sigmoid": f"{IMAGE} {{ y = Sigmoid(x) }}",
    "exp": f"{IMAGE} {{ y = Exp(x) }}",
    "scaled": f"{IMAGE} {{ y = Mul(x, s) }}",
    "residual": f"{IMAGE} {{ r = Relu(x) y = Add(x, r) }}",
    "conv": "(float[1,8,12,12] x) => (float[1,16,10,10] y) { y = Conv(x, w) }",
    "groups": "(float[1,8,12,12] x) => (float[1,8,10,10] y) { y = Conv<group=8>(x, d) }",
    "behind relu": "(float[1,8,12,12] x) => (float[1,16,10,10] y) { r = Relu(x) y = Conv(r, w) }",
    "edges behind relu": "(float[1,8,12,12] x) => (float[1,16,10,10] y) { r = Relu(x) y = Conv(r, e) }",
    "matmul": "(float[64,32] x) => (float[64,24] y) { y = MatMul(x, m) }",
    "largest": "(float[1,8,12,12] x) => (float[1,8,6,6] y) { y = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) }",
    "concat": "(float[1,8,12,12] x) => (float[1,16,12,12] y) { r = Neg(x) y = Concat<axis=1>(x, r) }",
    "softmax": f"{ROWS} {{ y = Softmax(x) }}",
    "norm": f"{ROWS} {{ y = LayerNormalization(x, o) }}",
    "norm of large": f"{ROWS} {{ r = Mul(x, k) y = LayerNormalization(r, o) }}",
}
MEANS = {
    "average": (4, "(float[1,8,12,12] x) => (float[1,8,11,11] y) { y = AveragePool<kernel_shape=[2,2]>(x) }"),
    "of all": (144, "(float[1,8,12,12] x) => (float[1,8,1,1] y) { y = GlobalAveragePool(x) }"),
    "reduced": (12, "(float[1,8,12,12] x) => (float[1,8,1,12] y) { y = ReduceMean<axes=[2]>(x) }"),
}  # fmt: skip
CHANCE = np.random.default_rng(0)
EDGES = CHANCE.standard_normal((16, 8, 3, 3))
WEIGHTS = {
    "w": CHANCE.standard_normal((16, 8, 3, 3)),
    "e": EDGES - EDGES.mean((2, 3), keepdims=True),
    "b": np.full(16, 50.0),
    "d": CHANCE.standard_normal((8, 1, 3, 3)),
    "m": CHANCE.standard_normal((32, 24)),
    "s": CHANCE.standard_normal((1, 8, 1, 1)),
    "o": np.ones(32),
    "k": np.full((), 10.0),
}


def arriving(text: str) -> float:
    """Estimated: which part of the square of an error of x arrives at y, over the squares of y."""
    found = steps(lower(load_proto(of_text(text, **_weights(text, np.float32)))))
    return sum(kept * step.arrives for step in found for buffer, kept in step.kept.items() if buffer.name == "x")


def measured(text: str) -> float:
    """The same by adding errors to x."""
    chance, evaluator = np.random.default_rng(1), ReferenceEvaluator(_in_doubles(text))
    shape = (64, 32) if "[64,32] x" in text else (1, 8, 12, 12)
    moved = squares = 0.0
    for _ in range(8):
        x, error = chance.standard_normal(shape), 1e-5 * chance.standard_normal(shape)
        y, other = (np.stack([*evaluator.run(None, {"x": each})]) for each in (x, x + error))
        moved, squares = moved + np.mean((other - y) ** 2) / 1e-10, squares + np.mean(y**2)
    return float(moved / squares)


def _in_doubles(text: str) -> ModelProto:
    return of_text(text.replace("float[", "double["), **_weights(text, np.float64))


def _weights(text: str, dtype: type) -> dict[str, np.ndarray]:
    return {name: array.astype(dtype) for name, array in WEIGHTS.items() if re.search(rf", {name}\b", text)}


@pytest.mark.parametrize("name", CALLS)
def test_errors_that_a_call_keeps(name: str) -> None:
    assert 1 / 1.45 < arriving(CALLS[name]) / measured(CALLS[name]) < 1.45


@pytest.mark.parametrize("name", MEANS)
def test_means_are_of_elements_that_are_alike_to_some_degree(name: str) -> None:
    """Of those that are not, whose means are smaller, errors weigh as much as before."""
    many, text = MEANS[name]
    assert 1 / 1.45 < arriving(text) * many**0.5 / measured(text) < 1.45


def test_errors_arrive_along_all_ways() -> None:
    """Twice as much of them, over twice the square."""
    one, both = "y = Neg(x)", "r = Neg(x) p = Neg(r) q = Abs(r) y = Sub(p, q)"
    assert arriving(f"{IMAGE} {{ {both} }}") == pytest.approx(arriving(f"{IMAGE} {{ {one} }}"), rel=0.1)


def test_errors_of_an_operand_that_stands_twice_count_twice() -> None:
    one, twice = (arriving(f"{IMAGE} {{ {text} }}") for text in ("y = Neg(x)", "y = Add(x, x)"))
    assert twice == pytest.approx(one, rel=0.1)


def test_a_bias_is_taken_to_leave_no_mean() -> None:
    hidden = "(float[1,8,12,12] x) => (float[1,16,10,10] y) { c = Conv(x, w, b) r = Sigmoid(c) y = Neg(r) }"
    assert arriving(hidden) == pytest.approx(arriving(hidden.replace(", b)", ")")), rel=0.1)


def test_means_of_outputs_count() -> None:
    """Errors are small beside them."""
    text = "(float[1,8,12,12] x) => (float[1,16,10,10] y) { y = Conv(x, w, b) }"
    assert 1 / 1.45 < arriving(text) / measured(text) < 1.45


def test_errors_of_what_no_output_needs_do_not_arrive() -> None:
    text = "(float[1,8,12,12] x) => (float[1,8,12,12] y, int64[4] z) { y = Relu(x) n = Neg(x) z = Shape(n) }"
    found = {step.call.outs[0].buffer.name: step.arrives for step in steps(lower(load_proto(of_text(text))))}
    assert found.get("n", 0.0) == 0.0 < found["y"]


NETWORKS = {"plain": (plain(), "relu"), "cancelling": (cancelling(spread=0.02), "sigmoid")}


@pytest.mark.parametrize("name", NETWORKS)
def test_errors_of_networks(name: str) -> None:
    made, activation = NETWORKS[name]
    program = prepared(made, Options(target="x86-64-v3", prefer=Prefer.TIME, winograd=0))
    squares = sum(
        summation_error.plain(terms(step.call)) * HALF_PLACE**2 * step.products * step.arrives
        for step in steps(program)
    )
    exact, rounded = (network(made, activation, dtype) for dtype in (np.float64, np.float32))
    off = float(np.mean((rounded - exact) ** 2) / np.mean(exact**2))
    assert 1 / 3 < (squares / off) ** 0.5 < 3


def network(made: ModelProto, activation: str, dtype: type) -> np.ndarray:
    """A chain of convolutions whose sums are made term by term in a type."""
    stored = [numpy_helper.to_array(tensor) for tensor in made.graph.initializer]
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    y: np.ndarray = np.random.default_rng(5).standard_normal(shape).astype(np.float32).astype(dtype)
    for w, b in zip(stored[::2], stored[1::2], strict=True):
        windows = sliding_window_view(y[0].astype(np.float64), (3, 3), (1, 2)).transpose(0, 3, 4, 1, 2)
        products = np.einsum("cijyx,ocij->cijoyx", windows, w.astype(np.float64))
        total: np.ndarray = np.broadcast_to(b[:, None, None], products.shape[3:]).astype(dtype)
        for term in products.reshape(-1, *total.shape):
            total = (total + term).astype(dtype)
        last = w is stored[-2]
        wide = total.astype(np.float64)
        y = (wide if last else np.maximum(wide, 0) if activation == "relu" else 1 / (1 + np.exp(-wide)))[None]
        y = y.astype(dtype)
    return y.astype(np.float64)
