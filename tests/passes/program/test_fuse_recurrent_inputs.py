"""fuse_recurrent_inputs: the layer gets the product's operands, in the order of axes that the layer wants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from mccompile.frontend.load import load_proto
from mccompile.kernels.registry import Registry
from mccompile.kinds.gemm import Gemm
from mccompile.kinds.recurrent import Recurrent
from mccompile.passes.api import Context, Memory
from mccompile.passes.lower import lower
from mccompile.passes.program.fuse import fuse
from mccompile.passes.program.fuse_recurrent_inputs import fuse_recurrent_inputs
from mccompile.program.ir import Program
from mccompile.program.verify import verify
from mccompile.targets import api as targets
from tests.passes.program.interpreter import outputs

TIME, BATCH, SIZE = 3, 2, 4
CONTEXT = Context(targets.load("generic"), Registry.load())


def program_of(
    layout: int = 0, direction: str = "forward", bias: bool = True, observed: bool = False, hidden: int = 5
) -> Program:
    directions = 1 + (direction == "bidirectional")
    shape = (BATCH, TIME, SIZE) if layout else (TIME, BATCH, SIZE)
    chance = np.random.default_rng(1)
    arrays = {"w": (directions, 3 * hidden, SIZE), "r": (directions, 3 * hidden, hidden), "b": (directions, 6 * hidden)}
    node = helper.make_node(
        "GRU", ["x", "w", "r", *(["b"] if bias else [])], ["y"], hidden_size=hidden, direction=direction, layout=layout
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(chance.standard_normal(s).astype(np.float32), n) for n, s in arrays.items()],
    )
    program = lower(load_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)))
    fuse(program, CONTEXT)
    if observed:
        product = next(call for call in program.calls() if isinstance(call.kind, Gemm))
        program.outputs.append(("product", product.outs[0]))
    return program


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_product_is_gone_and_nothing_changes(layout: int, direction: str, bias: bool) -> None:
    program = program_of(layout, direction, bias)
    x = np.random.default_rng(3).standard_normal(program.inputs[0][1].type.static_shape).astype(np.float32)
    before = outputs(program, {"x": x})
    fuse_recurrent_inputs(program, CONTEXT)
    verify(program, "fuse_recurrent_inputs")
    layer = next(call for call in program.calls() if isinstance(call.kind, Recurrent))
    assert "w" in layer.kind.names and not any(isinstance(call.kind, Gemm) for call in program.calls())
    np.testing.assert_allclose(outputs(program, {"x": x})["y"], before["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("program", "context"),
    [
        (program_of(observed=True), CONTEXT),
        (program_of(), replace(CONTEXT, target=replace(targets.load("x86-64-v3"), prefer="time"))),
        (program_of(hidden=64), replace(CONTEXT, target=replace(targets.load("x86-64-v3"), prefer="ram"))),
    ],
    ids=["the product is an output", "time comes first", "the product is faster in vectors"],
)
def test_a_product_stays(program: Program, context: Context) -> None:
    fuse_recurrent_inputs(program, context)
    assert any(isinstance(call.kind, Gemm) for call in program.calls())


def test_a_product_goes_where_the_layer_is_clearly_quicker_with_it() -> None:
    program = program_of(hidden=8)
    fuse_recurrent_inputs(program, replace(CONTEXT, target=replace(targets.load("cortex-m4"), prefer="time")))
    assert not any(isinstance(call.kind, Gemm) for call in program.calls())


@pytest.mark.parametrize(("worth", "is_kept"), [(0, True), (1, True), (2, False)])
def test_a_product_goes_where_its_memory_is_worth_the_time(worth: int, is_kept: bool) -> None:
    program = program_of(hidden=16)
    target = replace(targets.load("cortex-m55"), prefer="ram")
    fuse_recurrent_inputs(program, replace(CONTEXT, target=target, memory=Memory(worth=worth)))
    assert any(isinstance(call.kind, Gemm) for call in program.calls()) == is_kept
