"""Normalizations: what onnxruntime cannot say, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from mccompile import backend
from mccompile.base.dims import symbol
from mccompile.base.dtypes import f32
from mccompile.base.errors import UnsupportedModel
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Invalid, Site, Unsupported
from mccompile.ops.api import registry
from mccompile.ops.normalization import BatchNormalization, GroupNormalization

from .bundle import One, outcomes

IMAGE = TensorType(f32, (2, 6, 3, 4))
CHANNELS = TensorType(f32, (6,))


def infer(op: str, *types: TensorType, outputs: int = 1) -> None:
    registry()["", op]().infer(Site(tuple(Fact(type) for type in types), outputs))


def test_batch_normalization_per_place_of_opset_7() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    scale, bias, mean, variance = (rng.uniform(0.5, 2, (3, 4)).astype(np.float32) for _ in range(4))
    names = ["x", "scale", "bias", "mean", "variance"]
    node = helper.make_node("BatchNormalization", names, ["y"], spatial=0)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, 4)) for name in names[1:]]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)]
    graph = helper.make_graph([node], "per_place", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=8)
    (y,) = backend.prepare(model, flags=("-O1",)).run([x, scale, bias, mean, variance])
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 1e-5) * scale + bias, rtol=1e-5, atol=1e-6)


def test_equal_elements_normalize_to_nothing() -> None:
    x = np.full((3, 40), 20.1, np.float32)
    node = One("equal", "LayerNormalization", [x, np.ones(40, np.float32)], {"axis": 1, "epsilon": 1e-6})
    assert np.abs(outcomes(17, [node])["equal"][0].got).max() == 0


@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 4, 5), (2, 3, 4, 5)])
def test_default_axes_are_those_that_the_tensor_has(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (result,) = outcomes(13, [One("mean", "MeanVarianceNormalization", [x])])["mean"]
    axes = (0, 2, 3)[: max(1, len(shape) - 1)]
    np.testing.assert_allclose(result.got.mean(axes), 0, atol=1e-6)
    np.testing.assert_allclose(result.got, result.want, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "alpha", "beta", "bias"), [(5, 0.5, 0.75, 2.0), (4, 0.3, 0.5, 1.0), (9, 2.0, 0.6, 1.0)]
)
@pytest.mark.parametrize("shape", [(2, 7, 5, 3), (1, 3, 40), (3, 6)])
def test_neighbouring_channels(shape: tuple[int, ...], size: int, alpha: float, beta: float, bias: float) -> None:
    """onnxruntime has pictures and odd sizes alone; ONNX's evaluator counts pictures instead of channels."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    sums = [
        np.square(x[:, max(0, channel - (size - 1) // 2) : channel + size // 2 + 1].astype(np.float64)).sum(axis=1)
        for channel in range(shape[1])
    ]
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=alpha, beta=beta, bias=bias)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph([node], "lrn", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (y,) = backend.prepare(model, flags=("-O1",)).run([x])
    want = x / (bias + alpha / size * np.stack(sums, axis=1)) ** beta
    np.testing.assert_allclose(y, want, rtol=3e-6, atol=1e-7)


def test_statistics_without_training_are_refused() -> None:
    facts = (Fact(IMAGE), *(Fact(CHANNELS) for _ in range(4)))
    with pytest.raises(Unsupported, match="statistics"):
        BatchNormalization().infer(Site(facts, 3))


def test_parameters_per_channel() -> None:
    with pytest.raises(Invalid, match="variance"):
        infer("BatchNormalization", IMAGE, CHANNELS, CHANNELS, CHANNELS, TensorType(f32, (5,)))


def test_groups_divide_the_channels() -> None:
    with pytest.raises(Invalid, match="6 channels do not divide into 4 groups"):
        GroupNormalization(num_groups=4).infer(Site((Fact(IMAGE), Fact(CHANNELS), Fact(CHANNELS)), 1))


def test_a_scale_does_not_widen_x() -> None:
    with pytest.raises(Invalid, match="scale"):
        infer("LayerNormalization", TensorType(f32, (3,)), TensorType(f32, (2, 3)))


def test_free_dimensions_stay() -> None:
    n = symbol("n", 1, 9)
    x = TensorType(f32, (n, 6))
    facts = registry()["", "LayerNormalization"]().infer(Site((Fact(x), Fact(CHANNELS)), 3))
    assert [fact.type for fact in facts] == [x, TensorType(f32, (n, 1)), TensorType(f32, (n, 1))]


@pytest.mark.parametrize(("version", "mask"), [(7, TensorProto.FLOAT), (10, TensorProto.BOOL), (11, TensorProto.BOOL)])
def test_the_mask_of_an_old_dropout_is_refused(version: int, mask: int) -> None:
    """The standard leaves it open: onnxruntime fills it with zeros, ONNX's reference evaluator with ones."""
    node = helper.make_node("Dropout", ["x"], ["y", "mask"])
    types = {"x": TensorProto.FLOAT, "y": TensorProto.FLOAT, "mask": mask}
    value = [helper.make_tensor_value_info(name, type, (2,)) for name, type in types.items()]
    graph = helper.make_graph([node], "old_dropout", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
    with pytest.raises(UnsupportedModel, match="mask of Dropout"):
        backend.prepare(model)
