"""A model in front of a network: what is matched, what is refused, and that both are computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

from mccompile.base.errors import MccError
from mccompile.driver import Options
from mccompile.importers.joining import Prepended, joined
from mccompile.measure.correctness import check

HEAD = '<ir_version: 8, opset_import: ["": 17]> g '
NETWORK = "(float[1,6,1] x, float[1] bias) => (float[1,6,1] y) { a = Add(x, bias) y = Neg(a) }"


def model(text: str, opset: int = 17) -> ModelProto:
    return parser.parse_model(HEAD.replace("17", str(opset)) + text)


def pairs(front: str, network: str = NETWORK, **asked: str) -> ModelProto:
    return joined(model(front), model(network), Prepended(Path("front.onnx"), asked))


def inputs(made: ModelProto) -> list[str]:
    return [entry.name for entry in made.graph.input]


@pytest.mark.parametrize(
    "front",
    [
        "(float[1,6] s) => (float[1,6,1] x) { t = Unsqueeze(s, two) x = Relu(t) }",
        "(float[1,6] s) => (float[1,6] other) { a = Relu(s) other = Identity(a) }",
        "(float[1,6] s) => (float[3,2] z) { y = Relu(s) z = Reshape(y, pairs) }",
    ],
    ids=["by name", "by sizes", "flat, and a name of both"],
)
def test_computes_one_after_the_other(front: str) -> None:
    first = model(front)
    constants = {"two": np.array([2]), "pairs": np.array([3, 2])}
    first.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    made = joined(first, model(NETWORK), Prepended(Path("front.onnx")))
    onnx.checker.check_model(made, full_check=True)
    s = np.linspace(-3, 3, 6, dtype=np.float32).reshape(1, 6)
    (got,) = ReferenceEvaluator(made).run(None, {"s": s, "bias": np.ones(1, np.float32)})
    np.testing.assert_array_equal(got, -(np.maximum(s, 0)[..., None] + 1))
    assert inputs(made) == ["s", "bias"]


def test_bodies_read_what_is_around_them() -> None:
    """A constant, a tensor and what is handed over, all under names that the network has too."""
    first = model(
        "(float[6,1] s) => (float[6,1] x) { y = Relu(s) a = Abs(y) x = Add(a, bias)"
        " e, z = Scan<num_scan_inputs=1, body = b (float[1] h, float[1] f) => (float[1] n, float[1] o)"
        " { y2 = Add(f, bias) n = Mul(x, y2) o = Add(a, n) }>(bias, s) }"
    )
    body = next(each.g for each in first.graph.node[-1].attribute if each.name == "body")
    body.node[1].CopyFrom(onnx.helper.make_node("ReduceMax", ["x"], ["n"], axes=[0], keepdims=0))
    body.node[2].CopyFrom(onnx.helper.make_node("Add", ["y2", "n"], ["o"]))
    first.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("z", 1, [6, 1]))
    first.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1, np.float32), "bias"))
    made = joined(first, model(NETWORK), Prepended(Path("front.onnx"), {"z": "x"}))
    onnx.checker.check_model(made, full_check=True)
    s = np.linspace(-3, 3, 6, dtype=np.float32).reshape(6, 1)
    (got,) = ReferenceEvaluator(made).run(None, {"s": s, "bias": np.zeros(1, np.float32)})
    np.testing.assert_array_equal(got[0], -(s + 1 + 4))


@pytest.mark.parametrize(
    ("front", "asked", "given"),
    [
        ("(float[1,6] x) => (float[1,6] f) { f = Abs(x) }", {"f": "x"}, "x"),
        ("(float[1,6] x) => (float[1,6] y) { y = Abs(x) }", {}, "x"),
        ("(float[1,6] s, float[1] b) => (float[1,6] f, float[1] b) { f = Abs(s) }", {"f": "x", "b": "bias"}, "s"),
        ("(float[6] s, float[1] bias) => (float[6] f, float[1] bias) { f = Abs(s) }", {"f": "x", "bias": "bias"}, "s"),
    ],
    ids=["its input", "both ends", "passed on", "passed on under its name"],
)  # fmt: skip
def test_inputs_that_both_name_alike(front: str, asked: dict[str, str], given: str) -> None:
    """What the network is handed over is no input any more, so its name is free."""
    made = pairs(front, **asked)
    onnx.checker.check_model(made, full_check=True)
    other = next(name for name in inputs(made) if name != given)
    shape = [dim.dim_value for dim in next(e for e in made.graph.input if e.name == given).type.tensor_type.shape.dim]
    fed = {given: -np.ones(shape, np.float32), other: np.full(1, 2, np.float32)}
    (got,) = ReferenceEvaluator(made).run(["y"], fed)
    np.testing.assert_array_equal(got, np.full((1, 6, 1), -3))
    assert not any("/" in name for name in inputs(made))


def test_sizes_that_the_network_leaves_open_are_those_in_front() -> None:
    network = "(float[n,6] x) => (float[n,6] y) { y = Neg(x) }"
    made = pairs("(float[1,6] s) => (float[1,6] f) { f = Abs(s) }", network)
    (got,) = ReferenceEvaluator(made).run(None, {"s": np.ones((1, 6), np.float32)})
    np.testing.assert_array_equal(got, -np.ones((1, 6)))
    with pytest.raises(MccError, match="nothing that is in front fits"):
        pairs("(float[1,1,6] s) => (float[1,1,6] f) { f = Abs(s) }", network)


def test_what_is_said_counts() -> None:
    made = pairs("(float[1] s) => (float[1] p, float[1] q) { p = Relu(s) q = Neg(s) }", q="bias")
    assert inputs(made) == ["s", "x"] and [entry.name for entry in made.graph.output] == ["y", "p"]


def test_the_older_opset_is_brought_to_the_newer_one() -> None:
    front = model("(float[1,6] s) => (float[1,6] f) { f = ReduceSumSquare<axes=[0]>(s) }", 13)
    made = joined(front, model(NETWORK, 18), Prepended(Path("front.onnx")))
    assert [entry.version for entry in made.opset_import] == [18]
    onnx.checker.check_model(made, full_check=True)


def test_several_stand_one_before_the_other() -> None:
    front = model("(float[1,6] s) => (float[1,6] f) { a = Relu(s) f = Abs(a) }")
    again = joined(
        model("(float[1,6] r) => (float[1,6] s) { a = Neg(r) s = Exp(a) }"),
        joined(front, model(NETWORK), Prepended(Path("front.onnx"))),
        Prepended(Path("first.onnx")),
    )
    onnx.checker.check_model(again, full_check=True)
    assert [node.op_type for node in again.graph.node if node.op_type != "Reshape"] == [
        "Neg", "Exp", "Relu", "Abs", "Add", "Neg"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("front", "asked", "said"),
    [
        ("(float[1,6] s) => (float[1,6] f) { f = Relu(s) }", {"g": "x"}, "no output of the model in front 'g'"),
        ("(float[1,6] s) => (float[1,6] f) { f = Relu(s) }", {"f": "z"}, "no input of the network 'z'"),
        ("(float[1,5] s) => (float[1,5] f) { f = Relu(s) }", {}, "leave out --prepend"),
        ("(float[1,5] s) => (float[1,5] f) { f = Relu(s) }", {"f": "x"}, "f float[1, 5], the network takes x float"),
        ("(int8[1,6] s) => (int8[1,6] f) { f = Identity(s) }", {"f": "x"}, "mccompile frontend --for NETWORK"),
        ("(float[1,6] a) => (float[1,6] f) { f = Relu(a) }", {"f": "x"}, "both models have a tensor 'a'"),
    ],
    ids=["output", "input", "nothing fits", "sizes", "types", "names"],
)  # fmt: skip
def test_refused(front: str, asked: dict[str, str], said: str) -> None:
    with pytest.raises(MccError) as refused:
        pairs(front, **asked)
    assert said in str(refused.value)


def test_checked_against_both_models(tmp_path: Path) -> None:
    """On windows and as a stream."""
    import mccompile
    from mccompile.base.streaming import Stream

    text = "(float[1,8,6] x) => (float[1,4,5] y) { t = Transpose<perm=[0,2,1]>(x) c = Conv(t, w) y = Relu(c) }"
    network = model(text.replace("[1,4,5]", "[1,4,6]"))
    weights = np.random.default_rng(1).standard_normal((4, 6, 3)).astype(np.float32)
    network.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(network, tmp_path / "net.onnx")
    front = mccompile.audio_frontend(network=network, mels=6, window=60, hop=40, rate=4000)
    onnx.save(front, tmp_path / "front.onnx")
    options = Options(prepend=(Prepended(tmp_path / "front.onnx"),))
    assert check(tmp_path / "net.onnx", options, runs=1).ok
    streamed = Options(prepend=options.prepend, stream=Stream({"samples": 1}, 40))
    assert check(tmp_path / "net.onnx", streamed, runs=20).ok
