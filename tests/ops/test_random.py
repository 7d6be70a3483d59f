"""Random numbers: those of ONNX's reference evaluator where there is a seed, others in every run without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mccompile
from mccompile import backend

X = np.arange(1, 61, dtype=np.float32).reshape(3, 4, 5)
FLOAT, HALF, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE


def model(nodes: Sequence[NodeProto], outs: Sequence[str], opset: int = 22, **constants: np.ndarray) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "random",
        [helper.make_tensor_value_info("x", FLOAT, X.shape)],
        [helper.make_empty_tensor_value_info(name) for name in outs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(made: ModelProto) -> Any:
    return backend.prepare(made, flags=("-O1",))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("RandomUniform", {"shape": [700], "seed": 3.0, "low": -2.0, "high": 5.0}),
        ("RandomUniform", {"shape": [2, 5], "seed": 0.0, "dtype": HALF, "high": 3.0}),
        ("RandomNormal", {"shape": [701], "seed": 9.0, "mean": 1.0, "scale": 4.0}),
        ("RandomNormal", {"shape": [3, 3], "seed": 1.0, "dtype": DOUBLE}),
        ("RandomUniformLike", {"seed": 4.0, "low": 1.0, "high": 1.5}),
        ("RandomNormalLike", {"seed": 5.0, "dtype": DOUBLE, "scale": 0.5}),
    ],
)
def test_a_seed_draws_what_the_reference_draws(op: str, attributes: dict[str, Any]) -> None:
    node = helper.make_node(op, ["x"] if op.endswith("Like") else [], ["y"], **attributes)
    made = model([node, helper.make_node("Identity", ["x"], ["z"])], ["y", "z"])
    (want, _) = ReferenceEvaluator(made).run(None, {"x": X})
    rep = run(made)
    for _ in range(2):
        (got, _) = rep.run([X])
        np.testing.assert_allclose(got, want, rtol=1e-3 if got.dtype == np.float16 else 1e-6)


def test_dropout_in_training_inside_of_a_network() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Dropout", ["a", "ratio", "training"], ["b", "mask"], seed=6),
        helper.make_node("Dropout", ["b", "ratio", "training"], ["c"], seed=7),
        helper.make_node("Neg", ["c"], ["y"]),
    ]
    made = model(nodes, ["y", "mask"], ratio=np.array(0.3, np.float32), training=np.array(True))
    want, mask = ReferenceEvaluator(made).run(None, {"x": X})
    got, got_mask = run(made).run([X])
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert (got_mask == mask).all() and 0 < mask.sum() < mask.size


def test_a_ratio_of_zero_draws_nothing() -> None:
    nodes = [helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"])]
    made = model(nodes, ["y", "mask"], ratio=np.array(0, np.float32), training=np.array(True))
    got, mask = run(made).run([X])
    assert (got == X).all() and mask.all()
    steps = mccompile.compile(made).report["steps"]
    assert "random" not in [step["op"] for step in steps]


def test_without_a_seed_every_run_draws_others() -> None:
    nodes = [helper.make_node("RandomNormalLike", ["x"], [name]) for name in "ab"]
    rep = run(model(nodes, ["a", "b"]))
    (a, b), (c, d) = rep.run([X]), rep.run([X])
    found = [array.tobytes() for array in (a, b, c, d)]
    assert len(set(found)) == 4
    again = run(model(nodes, ["a", "b"])).run([X])
    assert [array.tobytes() for array in again] == found[:2], "a new start draws the same"


def test_the_trips_of_a_loop_draw_others() -> None:
    body = helper.make_graph(
        [
            helper.make_node("RandomUniform", [], ["r"], shape=[2]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("r", FLOAT, (2,)),
        ],
    )
    nodes = [helper.make_node("Loop", ["trips", ""], ["y"], body=body), helper.make_node("Neg", ["x"], ["z"])]
    (y, _) = run(model(nodes, ["y", "z"], trips=np.array(5, np.int64))).run([X])
    assert len(np.unique(y)) == 10


def test_samples_are_as_likely_as_they_should_be() -> None:
    shares = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)
    with np.errstate(divide="ignore"):
        logarithms = np.log(shares)
    nodes = [
        helper.make_node("Multinomial", ["shares"], ["drawn"], sample_size=4000, seed=1.0),
        helper.make_node("Bernoulli", ["half"], ["flips"], seed=2.0, dtype=TensorProto.INT8),
        helper.make_node("Neg", ["x"], ["z"]),
    ]
    made = model(nodes, ["drawn", "flips", "z"], shares=logarithms, half=np.full(4000, 0.3, np.float32))
    drawn, flips, _ = run(made).run([X])
    assert drawn.dtype == np.int32 and flips.dtype == np.int8
    for row, share in zip(drawn, shares, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 4000, share, atol=0.03)
    assert (flips == (np.random.RandomState(2).rand(4000) < np.float32(0.3))).all()
