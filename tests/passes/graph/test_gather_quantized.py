"""Rows of quantized tables: gathered as they are stored, and the same floats."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.passes.api import Context
from mccompile.passes.graph.gather_quantized import gather_quantized
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

SIZE, DEPTH, BLOCK = 20, 40, 16
TYPES = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "int8": TensorProto.INT8}


def graph_of(
    scales: tuple[int, ...],
    axis: int = 1,
    block: int = 0,
    dtype: str = "int4",
    table: tuple[int, ...] = (SIZE, DEPTH),
    indices: tuple[int, ...] = (2, 3),
    along: int = 0,
    zeros: bool = True,
    tied: bool = False,
) -> Graph:
    chance = np.random.default_rng(3)
    low, high = (0, 16) if dtype == "uint4" else (-8, 8)

    def integers(name: str, shape: tuple[int, ...]) -> onnx.TensorProto:
        return helper.make_tensor(name, TYPES[dtype], shape, chance.integers(low, high, shape).reshape(-1))

    held = [integers("w", table), numpy_helper.from_array(np.float32(chance.uniform(0.1, 1, scales)), "s")]
    held += [integers("z", scales)] * zeros
    nodes = [
        helper.make_node("DequantizeLinear", [t.name for t in held], ["d"], axis=axis, block_size=block),
        helper.make_node("Gather", ["d", "i"], ["x" if tied else "y"], axis=along),
    ]
    made = (*table[:along], *indices, *table[along + 1 :])
    if tied:
        nodes += [helper.make_node("Transpose", ["d"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])]
        made = (*made[:-1], table[0])
    i = helper.make_tensor_value_info("i", TensorProto.INT64, indices)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, made)
    graph = helper.make_graph(nodes, "g", [i], [y], held)
    return load_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def operators(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8"])
@pytest.mark.parametrize(
    "how",
    [
        {"scales": ()},
        {"scales": (DEPTH,)},
        {"scales": (SIZE,), "axis": 0},
        {"scales": (SIZE,), "axis": 0, "zeros": False},
        {"scales": (SIZE, 3), "block": BLOCK},
        {"scales": (SIZE, 3), "block": BLOCK, "indices": ()},
        {"scales": (2, DEPTH), "axis": 0, "block": BLOCK, "along": 1},
        {"scales": (DEPTH,), "axis": 1, "along": 1},
        {"scales": (SIZE,), "axis": 0, "along": 1},
        {"scales": (5,), "axis": 2, "table": (4, SIZE, 5), "along": 1},
        {"scales": (4,), "axis": 0, "table": (4, SIZE, 5), "along": 1},
    ],
)
def test_rows_are_gathered_before_they_become_floats(how: dict[str, Any], dtype: str, context: Context) -> None:
    graph = graph_of(dtype=dtype, **how)
    shape = graph.inputs[0].type.static_shape
    feeds = {"i": np.random.default_rng(1).integers(-4, 4, shape)}
    before = outputs(lower(copy.deepcopy(graph)), feeds)["y"]
    gather_quantized(graph, context)
    verify(graph)
    assert set(operators(graph)[:-1]) == {"Gather"} and operators(graph)[-1] == "DequantizeLinear"
    np.testing.assert_array_equal(outputs(lower(graph), feeds)["y"], before)


@pytest.mark.parametrize(
    "how",
    [
        {"scales": (2, DEPTH), "axis": 0, "block": BLOCK},
        {"scales": (SIZE,), "axis": 1, "table": (4, SIZE, 5), "along": 1},
    ],
)
def test_scales_along_the_gathered_axis_stay(how: dict[str, Any], context: Context) -> None:
    graph = graph_of(**how)
    gather_quantized(graph, context)
    assert operators(graph) == ["DequantizeLinear", "Gather"]


@pytest.mark.parametrize("prefer", ["ram", "time", "flash", "balanced"])
@pytest.mark.parametrize("target", ["generic", "native", "cortex-m4"])
def test_a_table_that_is_a_head_too_is_never_unpacked(target: str, prefer: str) -> None:
    graph = graph_of((512, 4), block=BLOCK, tied=True, table=(512, 64))
    package = compile_graph(graph, Options(target=target, prefer=prefer), "g")
    floats = 512 * 64 * 4
    assert package.plan.arena_bytes < floats and package.weights_bytes < floats
