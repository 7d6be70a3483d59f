"""The reference, with onnxruntime and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

from mccompile.base.errors import CheckFailed
from mccompile.check import oracle
from mccompile.check.oracle import Oracle
from mccompile.frontend.original import nudged
from tests import small_models
from tests.small_models import random_inputs, reference, save


def test_outputs_and_inner_tensors(either_reference: str, tmp_path: Path) -> None:
    made = small_models.conv()
    found = Oracle(save(made, tmp_path), ["sum", "c1"])
    inputs = random_inputs(made)
    results = found.run(inputs)
    assert found.name == either_reference
    assert list(results) == ["y", "sum", "c1"]
    np.testing.assert_allclose(results["y"], reference(made, inputs)["y"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(results["y"], np.maximum(results["sum"], 0))


@pytest.mark.parametrize("labels", [[3, 1, 2], ["b", "c", "a"]], ids=["integers", "strings"])
def test_maps_are_rows_of_scores_in_the_order_of_the_labels(labels: list[int | str], tmp_path: Path) -> None:
    attribute = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **{attribute: labels})
    key = onnx.TensorProto.STRING if isinstance(labels[0], str) else onnx.TensorProto.INT64
    scores = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, scores))
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph([node], "g", [x], [helper.make_value_info("y", maps)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    path = tmp_path / "zip.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(Oracle(path).run({"x": given})["y"], given)


def test_inputs_that_do_not_suit_are_said_to_be_the_reason(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    head = '<ir_version: 8, opset_import: ["": 17]> '
    made = onnx.parser.parse_model(head + "g (float[3] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }")
    found = Oracle(save(made, tmp_path))
    with pytest.raises(CheckFailed, match=r"onnxruntime cannot run the model[^$]*idx=9[^$]*--data"):
        found.run({"x": np.zeros(3, np.float32), "i": np.array([9])})


def test_others_move_a_little_and_doubles_are_exact(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    head = '<ir_version: 8, opset_import: ["": 17]> '
    made = onnx.parser.parse_model(
        head + "g (float[9] x, int64[1] i) => (float[9] y) <float s = {3.3}> { y = Mul(x, s) }"
    )
    x = np.linspace(0.1, 0.7, 9, dtype=np.float32)
    plain, optimised, wide, *moved = [
        other({"x": x, "i": np.array([1])}) for other in Oracle(save(made, tmp_path)).others()
    ]
    assert plain is not None and optimised is not None and wide is not None
    np.testing.assert_array_equal(plain["y"], optimised["y"])
    np.testing.assert_array_equal(optimised["y"], x * np.float32(3.3))
    np.testing.assert_array_equal(wide["y"], x.astype(np.float64) * np.float32(3.3))
    found = np.array([each["y"] for each in moved if each is not None])
    assert len(found) == oracle.NUDGED and (found != optimised["y"]).any(axis=0).all()
    np.testing.assert_allclose(found, np.broadcast_to(optimised["y"], found.shape), rtol=4e-7)


def test_numbers_that_are_definitions_are_not_moved() -> None:
    exact = np.array([0, 1, -2, 0.5, 1e4, np.inf, 3e-3], np.float32)
    moved = [nudged(exact, np.random.default_rng(seed)) for seed in range(20)]
    assert {tuple(np.flatnonzero(each != exact)) for each in moved} == {(), (6,)}


def test_products_with_packed_weights_are_computed_in_full(tmp_path: Path) -> None:
    """accuracy_level 4 lets onnxruntime make activations bytes, which is not a reference."""
    pytest.importorskip("onnxruntime")
    chance = np.random.default_rng(0)
    packed = chance.integers(0, 256, (4, 1, 16)).astype(np.uint8)
    scales = np.full(4, 0.1, np.float32)
    more = {"K": 32, "N": 4, "bits": 4, "block_size": 32, "accuracy_level": 4}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **more)
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, size]) for n, size in (("x", 32), ("y", 4)))
    constants = [onnx.numpy_helper.from_array(packed, "w"), onnx.numpy_helper.from_array(scales, "s")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(helper.make_graph([node], "g", [x], [y], constants), opset_imports=opsets, ir_version=8)
    given = chance.standard_normal((2, 32)).astype(np.float32)
    weights = np.stack([packed & 15, packed >> 4], -1).reshape(4, 32).astype(np.float32) - 8
    found = Oracle(save(made, tmp_path)).run({"x": given})["y"]
    np.testing.assert_allclose(found, given @ weights.T * np.float32(0.1), rtol=1e-5, atol=1e-5)
