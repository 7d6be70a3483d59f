"""What no table of operators shows: sums over readers, zeros, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.passes.learn.gradients import gradients
from tests.gradients.compare import compared
from tests.gradients.evaluate import Evaluator


def loaded(text: str) -> Graph:
    return load_proto(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}'))


def slopes(text: str, **feeds: object) -> list[np.ndarray]:
    """Of the only output, by all inputs."""
    graph = loaded(text)
    found = gradients(graph, graph.outputs[0], graph.inputs)
    graph.outputs.extend(found)
    verify(graph)
    return Evaluator(graph)({name: np.array(value, np.float64) for name, value in feeds.items()}, found)


def test_all_readers_of_a_value_count() -> None:
    (x,) = slopes("g (double x) => (double y) { a = Mul(x, x) b = Add(a, x) y = Mul(a, b) }", x=3.0)
    assert x == pytest.approx(4 * 27 + 3 * 9)  # of x^4 + x^3


def test_what_nothing_depends_on_has_zeros() -> None:
    text = "g (double[2] x, double[3] k) => (double y) { y = ReduceSum <keepdims = 0> (x) }"
    x, k = slopes(text, x=[1, 2], k=[1, 1, 1])
    assert x.tolist() == [1, 1]
    assert k.tolist() == [0, 0, 0]


def test_steps_have_the_gradient_zero() -> None:
    text = "g (double[2] x) => (double y) { a = Floor(x) b = Mul(a, x) y = ReduceSum <keepdims = 0> (b) }"
    assert slopes(text, x=[1.5, 2.5])[0].tolist() == [1, 2]


def test_large_arguments_give_no_nan() -> None:
    for op in ("Sigmoid", "Softplus", "Mish", "Elu", "Selu", "Celu", "HardSwish", "Softsign", "Tanh"):
        text = f"g (float[3] x) => (float y) {{ a = {op}(x) y = ReduceSum <keepdims = 0> (a) }}"
        found = slopes(text, x=[-800.0, 0.0, 800.0])[0]
        assert np.isfinite(found).all(), (op, found)
    assert slopes("g (double x) => (double y) { y = Softplus(x) }", x=0.0)[0] == 0.5


def test_a_branch_that_is_not_taken_has_no_part_in_an_infinite_slope() -> None:
    text = "g (double[2] x) => (double y) { a = Relu(x) b = Sqrt(a) y = ReduceSum <keepdims = 0> (b) }"
    assert slopes(text, x=[-1.0, 4.0])[0].tolist() == [0, 0.25]


def test_trips_of_a_loop_are_written_out() -> None:
    """Of x * w^3, whose w only the body reads."""
    nodes = "on = Identity(go) t = Mul(s, w) c = Neg(t)"
    body = f"body (int64 i, bool go, double s) => (bool on, double t, double c) {{ {nodes} }}"
    text = f"""g (double x, double w) => (double z) <int64 n = {{3}}, bool yes = {{1}}> {{
        y, all = Loop (n, yes, x) <body = {body}> sum = ReduceSum <keepdims = 0> (all) z = Add(y, sum) }}"""
    x, w = slopes(text, x=2.0, w=3.0)  # x * w^3 - x * (w + w^2 + w^3)
    assert (x, w) == (pytest.approx(-12), pytest.approx(-14))


def test_slices_of_a_scan_are_taken_backwards() -> None:
    body = "body (double s, double e) => (double t, double c) { h = Mul(s, k) t = Add(h, e) c = Identity(t) }"
    text = f"""g (double s, double[3] x) => (double y) <double k = {{2.0}}> {{
        y, all = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = {body}> (s, x) }}"""
    s, x = slopes(text, s=1.0, x=[1, 1, 1])  # ((s * 2 + x2) * 2 + x1) * 2 + x0
    assert s == 8
    assert x.tolist() == [1, 2, 4]


def test_what_has_no_rule_is_refused_by_node() -> None:
    graph = loaded("g (double[2, 2] x) => (double y) { a = Det(x) y = Mul(a, a) }")
    with pytest.raises(UnsupportedModel) as refused:
        gradients(graph, graph.outputs[0], graph.inputs)
    text = str(refused.value)
    assert "Det" in text
    assert "fix" in text


def test_a_tensor_is_no_loss() -> None:
    graph = loaded("g (double[2] x) => (double[2] y) { y = Exp(x) }")
    with pytest.raises(UnsupportedModel, match="ReduceMean"):
        gradients(graph, graph.outputs[0], graph.inputs)


NETWORKS = {
    "classifier": """g (double[3, 4] x, double[5, 4] w, double[5] b, int64[3] t) => (double loss) {
        h = Gemm <transB = 1> (x, w, b) r = Relu(h) loss = SoftmaxCrossEntropyLoss(r, t) }""",
    "attention": """g (double[2, 3, 4] q, double[2, 3, 4] k, double[2, 3, 4] v) => (double[2, 3, 4] y) {
        kt = Transpose <perm = [0, 2, 1]> (k) s = MatMul(q, kt) p = Softmax(s) y = MatMul(p, v) }""",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {NETWORKS[name]}')
    chance = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        whole = value.type.tensor_type.elem_type == 7
        feeds[value.name] = chance.integers(0, 5, shape) if whole else chance.normal(size=shape)
    found = compared(model, feeds, chance)
    assert not found.wrong
    assert found.checked > 10


@pytest.mark.parametrize("op", ["AveragePool", "LpPool"])
@pytest.mark.parametrize(("kernel", "is_whole"), [("[3, 4]", True), ("[3, 2]", False)])
def test_a_window_over_all_of_x_hands_its_gradient_back_without_a_convolution(
    op: str, kernel: str, is_whole: bool
) -> None:
    text = f"g (double[1, 2, 3, 4] x) => (double y) {{ p = {op} <kernel_shape = {kernel}> (x) y = ReduceSum (p) }}"
    graph = loaded(text.replace("ReduceSum", "ReduceSum <keepdims = 0>"))
    found = gradients(graph, graph.outputs[0], graph.inputs)
    assert ("ConvTranspose" not in {node.op.name for node in graph.nodes}) == is_whole
    graph.outputs.extend(found)
    x = np.arange(24).reshape(1, 2, 3, 4) - 11.5
    slope = Evaluator(graph)({"x": x}, found)[0]
    if op == "AveragePool":
        np.testing.assert_allclose(slope, 1 / 12 if is_whole else 1 / 6 * np.array([1, 2, 2, 1]) + np.zeros_like(x))
    elif is_whole:
        np.testing.assert_allclose(slope, x / np.sqrt((x**2).sum((2, 3), keepdims=True)))
