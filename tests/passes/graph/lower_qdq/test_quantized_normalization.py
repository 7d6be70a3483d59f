"""Softmax and normalizations of bytes are those of floats, rounded, but for what is closer to a half than their
precision; every size of group, and gains of every size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

from mccompile.frontend.load import load_proto
from mccompile.kernels.registry import Registry
from mccompile.passes.api import GRAPH, PROGRAM, Context, PassManager
from mccompile.passes.lower import lower
from mccompile.pipeline import GRAPH_PASSES, PROGRAM_PASSES
from mccompile.targets import api as targets
from tests.passes.graph.exact_qdq import run
from tests.passes.program.interpreter import outputs
from tests.passes.qdq_graphs import some_integers
from tests.thorough import some

CONTEXT = Context(targets.load("generic"), Registry.load(()))
SHAPES = {"Softmax": (6, 40), "LayerNormalization": (9, 96), "InstanceNormalization": (2, 5, 9, 7)}


def model(
    op: str,
    shape: Sequence[int],
    x_scale: float,
    y_scale: float,
    gain: float = 1,
    opset: int = 18,
    **attributes: object,
) -> ModelProto:
    chance = np.random.default_rng(3)
    weights: dict[str, np.ndarray] = {
        "s": np.array(x_scale, np.float32),
        "z": np.array(-11, np.int8),
        "t": np.array(y_scale, np.float32),
        "u": np.array(128, np.uint8),
    }
    ins = ["x"]
    count = shape[1] if op in ("InstanceNormalization", "GroupNormalization") else shape[-1]
    for name, around in (("gain", gain), ("bias", 1.0))[: 0 if op == "Softmax" else 1 if op.startswith("RMS") else 2]:
        weights[name] = (around * chance.normal(0, 1, count)).astype(np.float32)
        ins.append(name)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node(op, ins, ["y"], name="anchor", **attributes),
        helper.make_node("QuantizeLinear", ["y", "t", "u"], ["r"]),
    ]
    ends = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), shape) for n, t in ENDS]
    graph = helper.make_graph(
        nodes, op, ends[:1], ends[1:], [numpy_helper.from_array(a, n) for n, a in weights.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


ENDS = (("q", np.int8), ("r", np.uint8))


def computed(proto: ModelProto) -> np.ndarray:
    graph = load_proto(proto)
    PassManager(CONTEXT).run(GRAPH, graph, GRAPH_PASSES)
    assert not graph.left_in_float
    program = lower(graph)
    PassManager(CONTEXT).run(PROGRAM, program, PROGRAM_PASSES[:1])
    return outputs(program, some_integers(proto))["r"].astype(np.int64)


@pytest.mark.parametrize("op", SHAPES)
@pytest.mark.parametrize(("x_scale", "y_scale"), [(0.05, 1 / 256), (0.3, 0.02), (1e-3, 0.004), (4.0, 0.05)])
def test_results_are_those_of_doubles(op: str, x_scale: float, y_scale: float) -> None:
    proto = model(op, SHAPES[op], x_scale, y_scale)
    np.testing.assert_array_equal(computed(proto), run(proto, some_integers(proto))["r"])


@some(1, ("gain", "share"), [(1e-4, 0.0), (1.0, 2e-4), (9.0, 4e-3)])
@pytest.mark.parametrize("count", [1, 2, 31, 1000, 30000])
def test_groups_of_any_size(count: int, gain: float, share: float) -> None:
    proto = model("LayerNormalization", (2, count), 0.02, 0.05, gain)
    different = computed(proto) != run(proto, some_integers(proto))["r"]
    assert different.sum() <= share * different.size


@pytest.mark.parametrize(
    ("op", "shape", "attributes"),
    [("RMSNormalization", (4, 64), {}), ("GroupNormalization", (2, 6, 5, 4), {"num_groups": 3})],
)
def test_other_normalizations(op: str, shape: Sequence[int], attributes: dict[str, int]) -> None:
    proto = model(op, shape, 0.02, 0.03, opset=23, **attributes)
    weights = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in proto.graph.initializer}
    x = (some_integers(proto)["q"].astype(np.float64) + 11) * weights["s"]
    if op.startswith("RMS"):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weights["gain"]
    else:
        groups = x.reshape(2, 3, -1)
        off = groups - groups.mean(-1, keepdims=True)
        normal = (off / np.sqrt((off * off).mean(-1, keepdims=True) + 1e-5)).reshape(shape)
        y = normal * weights["gain"].reshape(-1, 1, 1) + weights["bias"].reshape(-1, 1, 1)
    want = np.clip(np.rint(y / weights["t"]) + 128, 0, 255)
    np.testing.assert_array_equal(computed(proto), want)


@pytest.mark.parametrize("op", SHAPES)
def test_at_most_one_step_from_onnxruntime(op: str) -> None:
    proto = model(op, SHAPES[op], 0.05, 0.01)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    floats = session.run(["r"], some_integers(proto))[0].astype(np.int64)
    assert np.abs(computed(proto) - floats).max() <= 1


def test_halves_are_rounded_to_even_numbers() -> None:
    """512 elements that are alike have a share of half a step each; one alone has what the bias says."""
    shares = model("Softmax", (1, 512), 0.1, 1 / 256)
    shares.graph.node[0].input[0] = "alike"
    shares.graph.initializer.append(numpy_helper.from_array(np.zeros(512, np.int64), "none"))
    shares.graph.node.insert(0, helper.make_node("Gather", ["q", "none"], ["alike"], axis=1))
    assert (computed(shares) == 128).all()
    for bias, want in ((0.5, 128), (1.5, 130), (-0.5, 128), (-1.5, 126)):
        lone = model("LayerNormalization", (1, 1), 0.1, 1.0)
        lone.graph.initializer[-1].CopyFrom(numpy_helper.from_array(np.array([bias], np.float32), "bias"))
        assert computed(lone).item() == want


def test_scales_beyond_the_precision_stay_in_float() -> None:
    graph = load_proto(model("LayerNormalization", (2, 8), 1e-9, 0.1))
    PassManager(CONTEXT).run(GRAPH, graph, GRAPH_PASSES)
    assert list(graph.left_in_float) == ["anchor"]
