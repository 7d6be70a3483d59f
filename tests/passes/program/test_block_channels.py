"""A convolution and the pool behind it by blocks of channels: the same results, in less memory."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, parser

from mccompile.base.column_tiles import ColumnTiles
from mccompile.measure.correctness import build
from mccompile.targets import api as targets
from tests.passes.graph import exact_qdq
from tests.passes.graph.tile_columns.test_tile_columns import package, results
from tests.passes.qdq_graphs import Net, some_integers
from tests.thorough import some


def tail() -> ModelProto:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,4,5,6] x) => (float[1,64,1,1] y) {'
        " a = Conv(x, w, b) r = HardSwish(a) y = AveragePool<kernel_shape=[5, 6]>(r) }"
    )
    chance = np.random.default_rng(2)
    for name, shape in {"w": (64, 4, 1, 1), "b": (64,)}.items():
        made.graph.initializer.append(numpy_helper.from_array(chance.standard_normal(shape).astype(np.float32), name))
    return made


@pytest.mark.parametrize("count", [2, 4, 8])
def test_blocks_of_channels_take_less(count: int) -> None:
    made = tail()
    plain, found = package(made), package(made, column_tiles=(ColumnTiles("x", "y", count),))
    assert found.macs == plain.macs and found.plan.arena_bytes < plain.plan.arena_bytes
    names = [step.function.call.kind.name for step in found.plan.steps()]
    assert names.count("conv") == count == names.count("pool")
    np.testing.assert_array_equal(results(found, made)["y"], results(plain, made)["y"])


def test_it_is_offered_for_no_more_multiply_accumulates() -> None:
    offered = [cost for cost in package(tail(), recompute=1.1).column_tiles if cost.column_tiles.last == "y"]
    assert {cost.column_tiles.count for cost in offered} == {2, 4, 8} and {cost.macs for cost in offered} == {0}


@some(1, "seed", range(4))
def test_integers_are_exact(seed: int) -> None:
    net = Net(np.random.default_rng(seed), widest=8)
    q = net.input((1, 3, 6, 5))
    conv = net.node("Conv", net.floats(q), net.weight((16, 3, 1, 1), 0), net.bias(16))
    y = net.global_pool(net.integers(net.activation(conv), (1, 16, 6, 5)))
    zeros = {tensor.name: numpy_helper.to_array(tensor) for tensor in net.weights}
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(zeros[net.schemes[name][1]].dtype), net.shapes[name]
        )
        for name in (q, y)
    ]
    graph = helper.make_graph(net.nodes, "tail", infos[:1], infos[1:], net.weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    inputs, costs = some_integers(made), package(made, recompute=1.1).column_tiles
    for cost in costs:
        got = build(package(made, column_tiles=(cost.column_tiles,)), targets.load("generic")).run(inputs)
        np.testing.assert_array_equal(got[y], exact_qdq.run(made, inputs)[y], str(cost.column_tiles))
    assert costs
