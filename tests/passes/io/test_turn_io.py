"""`--io-layout nhwc`: what goes in and comes out is channels-last, and nothing is transposed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.dtypes import u8
from mccompile.base.errors import WrongUse
from mccompile.base.streaming import Stream
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.passes.io.io_forms import InputForm, OutputForm
from mccompile.passes.io.turn_io import turn_io, turned
from tests import small_models

NHWC = Options(io_layout="nhwc")


def test_two_convolutions_need_no_transpose() -> None:
    package = compile_graph(load_proto(small_models.conv()), NHWC, "conv")
    plan = package.plan
    assert [tensor.type.static_shape for tensor in (*plan.inputs, *plan.outputs)] == [(1, 6, 6, 2), (1, 6, 6, 4)]
    steps = list(plan.steps())
    assert [step.op for step in steps] == ["conv", "conv"]
    views = [step.function.call.outs[0] for step in steps] + [step.function.call.ins[0] for step in steps]
    assert all(view.strides[1] == 1 for view in views)


@pytest.mark.parametrize("name", sorted(small_models.ALL))
@pytest.mark.parametrize("optimize", [True, False])
def test_results_are_the_same(name: str, optimize: bool, tmp_path: Path) -> None:
    path = small_models.save(small_models.ALL[name](), tmp_path)
    assert correctness.check(path, Options(io_layout="nhwc", optimize=optimize), runs=1).ok


def test_lines_are_turned_only_for_convolutions() -> None:
    nodes = [small_models.node("Conv", "x w", "y"), small_models.node("Softmax", "t", "z")]
    w = {"w": np.ones((2, 3, 1), np.float32)}
    made = small_models.model(
        "lines", nodes, [("x", (1, 3, 8)), ("t", (1, 3, 8))], [("y", (1, 2, 8)), ("z", (1, 3, 8))], w
    )
    plan = compile_graph(load_proto(made), NHWC, "lines").plan
    shapes = {tensor.name: tensor.type.static_shape for tensor in (*plan.inputs, *plan.outputs)}
    assert shapes == {"x": (1, 8, 3), "t": (1, 3, 8), "y": (1, 8, 2), "z": (1, 3, 8)}


def lines_of(pool: str, tmp_path: Path) -> Path:
    node = small_models.node(pool, "x", "y", kernel_shape=[1], strides=[2])
    return small_models.save(small_models.model("pool", [node], [("x", (3, 5, 16))], [("y", (3, 5, 8))], {}), tmp_path)


def test_lines_stay_pictures_frame_by_frame(tmp_path: Path) -> None:
    """A streamed input is not read by the pool itself."""
    options = Options(io_layout="nhwc", stream=Stream({"x": 2}, hop=4))
    verdict = correctness.check(lines_of("MaxPool", tmp_path), options, runs=1)
    plan = verdict.package.plan
    assert verdict.ok
    assert [tensor.type.static_shape for tensor in (*plan.inputs, *plan.outputs)] == [(3, 4, 5), (3, 2, 5)]


def test_lines_of_other_numbers_stay_pictures(tmp_path: Path) -> None:
    inputs, outputs = {"x": InputForm(u8, scale=(0.5,))}, {"y": OutputForm(scale=(2,))}
    options = Options(io_layout="nhwc", inputs=inputs, outputs=outputs)
    verdict = correctness.check(lines_of("AveragePool", tmp_path), options, runs=1)
    plan = verdict.package.plan
    assert verdict.ok
    assert [tensor.type.static_shape for tensor in (*plan.inputs, *plan.outputs)] == [(3, 16, 5), (3, 8, 5)]


def test_what_is_observed_is_compared_channels_last(tmp_path: Path) -> None:
    path = small_models.save(small_models.conv(), tmp_path)
    inner = next(iter(load_proto(small_models.conv()).nodes)).output.name
    verdict = correctness.check(path, Options(io_layout="nhwc", observe=(inner,)), runs=1)
    assert verdict.ok and inner in {output.name for output in verdict.worst()}


def test_pictures_are_looked_at_in_onnx_order_inside(check: Any) -> None:
    check(
        lambda graph, context: turn_io(graph, turned(graph)),
        """
        input %x: f32[1,3,4,5]
        input %v: f32[7]
        %y: f32[1,3,4,5] = Relu(%x) from "y"
        %w: f32[7] = Neg(%v) from "w"
        output %y
        output %w
        """,
        """
        input %x: f32[1,4,5,3]
        input %v: f32[7]
        %"x/onnx": f32[1,3,4,5] = Transpose(%x) {perm=(0, 3, 1, 2)} from "x"
        %"y/onnx": f32[1,3,4,5] = Relu(%"x/onnx") from "y"
        %w: f32[7] = Neg(%v) from "w"
        %y: f32[1,4,5,3] = Transpose(%"y/onnx") {perm=(0, 2, 3, 1)} from "y"
        output %y
        output %w
        """,
    )


def test_what_is_handed_out_as_it_comes_in_stays_as_it_is() -> None:
    """Its output has its name, and would lose it."""
    shape = (1, 2, 3, 4)
    nodes = [small_models.node("Relu", "x", "y")]
    made = small_models.model("through", nodes, [("x", shape)], [("y", shape), ("x", shape)])
    plan = compile_graph(load_proto(made), NHWC, "through").plan
    shapes = [(tensor.name, tensor.type.static_shape) for tensor in (*plan.inputs, *plan.outputs)]
    assert shapes == [("x", shape), ("y", (1, 3, 4, 2)), ("x", shape)]
    with pytest.raises(WrongUse, match="passes it on unchanged as an output"):
        compile_graph(load_proto(made), Options(inputs={"x": InputForm(nhwc=True)}), "through")
