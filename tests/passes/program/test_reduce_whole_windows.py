"""Pools over whole pictures become reductions of the same value where these are faster."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.targets.api import Prefer

SHAPE = (9, 33, 12, 13)  # a copy with channels last, and a pool of that, would be quicker than the pool


def compiled(op: str, target: str, **options: object) -> Package:
    """The pool, and what the epilogue makes of its result and another operand."""
    nodes = [helper.make_node(op, ["x"], ["p"]), helper.make_node("Sub", ["e", "p"], ["y"])]
    small = (*SHAPE[:2], 1, 1)
    ins = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", SHAPE), ("e", small))]
    outs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, small)]
    model = helper.make_model(helper.make_graph(nodes, "g", ins, outs), opset_imports=[helper.make_opsetid("", 20)])
    return compile_graph(load_proto(model, Path()), Options(target=target, **options), "pooled")  # type: ignore[arg-type]


def kernels(package: Package) -> list[str]:
    return [step.function.kernel.id.split("/")[0] for step in package.plan.steps()]


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_pools_over_pictures_are_reductions_with_the_epilogue(op: str) -> None:
    package = compiled(op, "native", prefer=Prefer.TIME)
    if "vec" not in Options(target="native").resolved_target().isas:
        pytest.skip("this machine has no vectors")
    assert kernels(package) == ["reduce"]
    rng = np.random.default_rng(0)
    x, e = (rng.normal(size=shape).astype(np.float32) for shape in (SHAPE, (*SHAPE[:2], 1, 1)))
    y = build(package, Options(target="native", prefer=Prefer.TIME).resolved_target()).run({"x": x, "e": e})["y"]
    pooled = (x.mean if op == "GlobalAveragePool" else x.max)(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(y, e - pooled, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("axis", "kind"), [(1, "pool"), (2, "reduce")])
def test_integers_are_combined_in_lanes(axis: int, kind: str) -> None:
    """Those that lie apart are a pool's; compilers make vectors of others."""
    shape = (2, 70, 90)
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [axis])
    ends = [helper.make_tensor_value_info(n, TensorProto.INT32, s) for n, s in (("x", shape), ("y", None))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    options = Options(target="native", prefer=Prefer.TIME)
    if "vec" not in options.resolved_target().isas:
        pytest.skip("this machine has no vectors")
    package = compile_graph(load_proto(model, Path()), options, "summed")
    assert kernels(package) == [kind] and not package.plan.portable
    x = np.random.default_rng(0).integers(-(2**31), 2**31, shape).astype(np.int32)
    np.testing.assert_array_equal(build(package, options.resolved_target()).run({"x": x})["y"], x.sum(axis, np.int32))


def test_sums_of_bytes_in_planes_are_one_reduction() -> None:
    """Not a copy with channels last, and a pool of that."""
    shape = (2, 32, 14, 15)
    scales = [helper.make_tensor("s", TensorProto.FLOAT, [], [0.5]), helper.make_tensor("z", TensorProto.INT8, [], [3])]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["real"]),
        helper.make_node("GlobalAveragePool", ["real"], ["mean"]),
        helper.make_node("QuantizeLinear", ["mean", "s", "z"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.INT8, s) for n, s in (("x", shape), ("y", (*shape[:2], 1, 1)))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], scales)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    options = Options(target="native", prefer=Prefer.TIME)
    if "vec" not in options.resolved_target().isas:
        pytest.skip("this machine has no vectors")
    package = compile_graph(load_proto(model, Path()), options, "mean")
    assert kernels(package) == ["reduce"] and not package.plan.portable
    x = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    y = build(package, options.resolved_target()).run({"x": x})["y"]
    assert np.abs(y - x.mean((2, 3), keepdims=True)).max() <= 0.51


def test_pools_stay_where_pictures_come_row_by_row() -> None:
    assert kernels(compiled("GlobalAveragePool", "cortex-m4")) == ["pool"]
