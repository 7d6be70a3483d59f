"""Products with weights of few bits in all spellings: one operator, no floats made of the weights, the same results."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mccompile.driver import Options, compile
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.ops.block_matmul import BlockMatMul
from mccompile.passes.api import Context
from mccompile.passes.graph.block_products import block_products
from mccompile.passes.graph.eliminate_dead import eliminate_dead
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

DEPTH, COLUMNS, BLOCK = 40, 6, 16
TYPES = {n: getattr(TensorProto, n.upper()) for n in ("int2", "uint2", "int4", "uint4", "int8", "uint8")}  # fmt: skip


def graph_of(
    dtype: str,
    axis: int,
    product: str,
    blocks: bool = True,
    zeros: bool = True,
    shape: tuple[int, ...] = (3, DEPTH),
    across: bool = True,
) -> Graph:
    """y = x @ dequantized weights, which are summed along `axis`. Without blocks there is a scale for each column, or
    for each element of the sum."""
    chance = np.random.default_rng(5)
    type = TYPES[dtype]
    low, high = {"i": (-1, 1), "u": (0, 2)}[dtype[0]]
    half = 1 << (int(dtype[-1]) - 1)
    size = (DEPTH, COLUMNS) if axis == 0 else (COLUMNS, DEPTH)
    many = -(-DEPTH // BLOCK)
    each = ((many, COLUMNS) if axis == 0 else (COLUMNS, many)) if blocks else (COLUMNS if across else DEPTH,)

    def integers(name: str, shape: tuple[int, ...]) -> onnx.TensorProto:
        return helper.make_tensor(name, type, shape, chance.integers(low * half, high * half, shape).reshape(-1))

    scales = numpy_helper.from_array(chance.uniform(0.1, 1, each).astype(np.float32), "s")
    held = [integers("w", size), scales, *[integers("z", each)] * zeros]
    along = {"axis": axis, "block_size": BLOCK} if blocks else {"axis": 1 - axis if across else axis}
    nodes = [helper.make_node("DequantizeLinear", [t.name for t in held], ["d"], **along)]
    if product == "Gemm":
        held.append(numpy_helper.from_array(chance.uniform(-1, 1, COLUMNS).astype(np.float32), "c"))
        nodes.append(helper.make_node("Gemm", ["x", "d", "c"], ["y"], transB=axis, alpha=0.5, beta=2.0))
    else:
        nodes += [helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0])] * axis
        nodes.append(helper.make_node("MatMul", ["x", "dt"[axis]], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (*shape[:-1], COLUMNS))
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    newest = 25 if dtype.endswith("2") else 21
    return load_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", newest)], ir_version=10))


def same_with_one_operator(graph: Graph, context: Context, shape: tuple[int, ...] = (3, DEPTH)) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    before = outputs(lower(copy.deepcopy(graph)), {"x": x})["y"]
    block_products(graph, context)
    eliminate_dead(graph, context)
    verify(graph)
    names = [node.op.name for node in graph.nodes]
    assert BlockMatMul.name in names and not {"DequantizeLinear", "MatMul", "Gemm"} & set(names)
    np.testing.assert_allclose(outputs(lower(graph), {"x": x})["y"], before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("zeros", [False, True])
def test_blocks(dtype: str, axis: int, zeros: bool, context: Context) -> None:
    same_with_one_operator(graph_of(dtype, axis, "MatMul", zeros=zeros), context)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_scale_for_each_column(axis: int, zeros: bool, context: Context) -> None:
    same_with_one_operator(graph_of("int4", axis, "MatMul", False, zeros), context)


@pytest.mark.parametrize("axis", [0, 1])
def test_gemm_with_factors(axis: int, context: Context) -> None:
    same_with_one_operator(graph_of("uint4", axis, "Gemm"), context)


@pytest.mark.parametrize("shape", [(DEPTH,), (2, 3, DEPTH)])
def test_rows_of_any_rank(shape: tuple[int, ...], context: Context) -> None:
    same_with_one_operator(graph_of("uint4", 1, "MatMul", shape=shape), context, shape)


def test_a_scale_for_each_element_of_the_sum_stays(context: Context) -> None:
    graph = graph_of("int4", 0, "MatMul", False, False, across=False)
    block_products(graph, context)
    assert BlockMatMul.name not in [node.op.name for node in graph.nodes]


@pytest.mark.parametrize("target", ["generic", "cortex-m4", "x86-64-v3"])
@pytest.mark.parametrize("prefer", ["time", "ram", "flash"])
def test_neither_blob_nor_arena_holds_weights_as_floats(target: str, prefer: str, tmp_path: Path) -> None:
    chance, sizes = np.random.default_rng(3), (64, 512, 64)
    nodes, held = [], []
    for number, (depth, columns) in enumerate(itertools.pairwise(sizes)):
        packed = chance.integers(0, 256, (columns, depth // 32, 16), np.uint8)
        held += [numpy_helper.from_array(packed, f"w{number}")]
        held += [numpy_helper.from_array(np.ones((columns, depth // 32), np.float32), f"s{number}")]
        ins, more = [f"y{number}", f"w{number}", f"s{number}"], {"K": depth, "N": columns, "bits": 4, "block_size": 32}
        nodes.append(helper.make_node("MatMulNBits", ins, [f"y{number + 1}"], domain="com.microsoft", **more))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 64)) for name in ("y0", "y2"))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], held), opset_imports=opsets, ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    plan = compile(tmp_path / "m.onnx", Options(target=target, prefer=prefer)).plan
    weights = 2 * 64 * 512
    assert sum(arena.bytes for arena in plan.arenas) <= 4 * (64 + 512) + 8192  # and workspace of a tile
    assert plan.data_bytes <= weights * (0.5 + 4 / 32) + 4096
