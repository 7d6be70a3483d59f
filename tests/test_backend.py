"""The ONNX backend interface."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from mccompile import backend
from mccompile.base.errors import MccError
from tests import small_models
from tests.small_models import random_inputs, reference


def test_a_prepared_model_runs_as_often_as_one_likes() -> None:
    made = small_models.branches()
    prepared = backend.prepare(made)
    for seed in (0, 1):
        inputs = random_inputs(made, seed)
        for given in (list(inputs.values()), inputs, inputs["x"]):
            results = prepared.run(given)
            for name, array in reference(made, inputs).items():
                np.testing.assert_allclose(getattr(results, name), array, rtol=1e-4, atol=1e-5)


def test_a_single_node_is_run() -> None:
    node = helper.make_node("Sub", ["a", "b"], ["c"])
    a, b = np.array([3, 5], np.int32), np.array([[1], [2]], np.int32)
    (result,) = backend.run_node(node, [a, b])
    np.testing.assert_array_equal(result, [[2, 4], [1, 3]])


def test_a_node_is_read_by_the_opset_that_is_named() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"])
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    flat = np.exp(x.reshape(2, 4) - x.reshape(2, 4).max(1, keepdims=True))
    (old,) = backend.run_node(node, x, opset_version=11)  # axis 1 and all that follow, taken together
    np.testing.assert_allclose(old, (flat / flat.sum(1, keepdims=True)).reshape(2, 2, 2), rtol=1e-5)


def test_what_an_input_holds_is_not_taken_for_known() -> None:
    """One compiled node serves other contents; sizes that they decide have a bound by default."""
    shapes = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]), shapes],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    prepared = backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    for shape in ([3, 2], [6, 1]):
        (y,) = prepared.run([np.arange(6, dtype=np.float32).reshape(2, 3), np.array(shape, np.int64)])
        np.testing.assert_array_equal(y, np.arange(6).reshape(shape))


def test_compatible_means_that_it_can_be_compiled() -> None:
    made = small_models.conv()
    assert backend.is_compatible(made)
    made.graph.node[0].op_type = "NoSuchOperator"
    assert not backend.is_compatible(made)


def test_only_the_cpu_is_a_device() -> None:
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="CUDA"):
        backend.prepare(small_models.conv(), "CUDA")


def test_the_wrong_number_of_inputs_is_an_error() -> None:
    with pytest.raises(ValueError, match="the model takes x, not"):
        backend.prepare(small_models.passthrough()).run([np.zeros((2, 3), np.float32)] * 2)


@pytest.mark.parametrize("target", ["generic", "native"])
def test_a_target_is_built_with_its_flags(target: str) -> None:
    made = small_models.branches()
    inputs = random_inputs(made, 0)
    results = backend.prepare(made, target=target).run(inputs)
    for name, array in reference(made, inputs).items():
        np.testing.assert_allclose(getattr(results, name), array, rtol=1e-4, atol=1e-5)


def test_a_target_that_does_not_run_here_is_refused() -> None:
    with pytest.raises(MccError, match="cortex-m4 does not run on this machine"):
        backend.prepare(small_models.branches(), target="cortex-m4")


def test_several_sizes_that_a_run_computes_share_what_a_result_may_have() -> None:
    """64 along each of six axes would be 275 GB."""
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"])
    (result,) = backend.run_node(node, np.array([2, 3, 4, 5, 6, 7], np.int64))
    np.testing.assert_array_equal(result, np.zeros((2, 3, 4, 5, 6, 7)))


def test_more_than_the_usual_bound_is_refused_with_one_that_suits() -> None:
    node, size = helper.make_node("ConstantOfShape", ["shape"], ["y"]), np.array([100], np.int64)
    with pytest.raises(MccError, match=r"bounds=\{'\*': \(128,\)\}"):
        backend.run_node(node, size)
    (result,) = backend.run_node(node, size, bounds={"*": (128,)})
    assert result.shape == (100,)
