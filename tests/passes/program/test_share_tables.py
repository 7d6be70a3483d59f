"""A table that is embedding and head lies once in the blob, whatever its format, and both read the right elements."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import mccompile
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.passes.program import narrow_weights
from tests.thorough import some

ROWS, DEPTH, BLOCK = 203, 64, 32  # rows fill no tile of vectors
PLACES = [0, 1, 47, 48, 95, 96, 191, 192, 202, -1, -203, 7]


def tied(kind: str, zeros: bool = False) -> tuple[ModelProto, np.ndarray]:
    """Gather and MatMul of one table, beside an input of their own; the table as floats."""
    chance = np.random.default_rng(4)
    held, nodes = [], []
    if kind.startswith("float"):
        table = chance.standard_normal((ROWS, DEPTH)).astype(kind).astype(np.float32)
        held.append(numpy_helper.from_array(table.astype(kind), "w"))
        nodes.append(helper.make_node("Cast", ["w"], ["d"], to=TensorProto.FLOAT))
    else:
        bits, half = int(kind[-1]), 0 if kind[0] == "u" else 1 << int(kind[-1]) - 1
        levels = chance.integers(-half, (1 << bits) - half, (ROWS, DEPTH))
        scales = chance.uniform(0.1, 1, (ROWS, DEPTH // BLOCK)).astype(np.float32)
        points = chance.integers(-half, (1 << bits) - half, scales.shape) * zeros
        type = getattr(TensorProto, kind.upper())
        held = [helper.make_tensor("w", type, levels.shape, levels.reshape(-1)), numpy_helper.from_array(scales, "s")]
        held += [helper.make_tensor("z", type, points.shape, points.reshape(-1))] * zeros
        each = levels.reshape(ROWS, -1, BLOCK) - points[..., None]
        table = np.float32(each * scales[..., None]).reshape(ROWS, DEPTH)
        names = [tensor.name for tensor in held]
        nodes.append(helper.make_node("DequantizeLinear", names, ["d"], axis=1, block_size=BLOCK))
    nodes += [
        helper.make_node("Gather", ["d", "i"], ["rows"], axis=0),
        helper.make_node("Transpose", ["d"], ["t"]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    ins = [helper.make_tensor_value_info("i", TensorProto.INT64, [len(PLACES)])]
    ins.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, DEPTH]))
    outs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [len(PLACES), DEPTH])]
    outs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, ROWS]))
    graph = helper.make_graph(nodes, "g", ins, outs, held)
    opset = 25 if kind.endswith("2") else 21
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), table


KINDS = [
    ("float32", False, 4),
    ("float16", False, 2),
    ("uint2", True, 0.25),
    ("int4", False, 0.5),
    ("int4", True, 0.5),
    ("uint4", True, 0.5),
    ("int8", False, 1),
]


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("how", ["generic", "native", "rounded"])
@some(3, ("kind", "zeros"), [kind[:2] for kind in KINDS])
def test_rows_and_products_read_one_table(kind: str, zeros: bool, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_weights, "LARGE", 1)
    model, table = tied(kind, zeros)
    rounds = {"block_activations": "int8"} if how == "rounded" else {}
    net = mccompile.load(model, target="generic" if how == "generic" else "native", prefer="time", **rounds)
    x = np.random.default_rng(5).standard_normal((1, DEPTH)).astype(np.float32)
    found = net(i=np.array(PLACES), x=x)
    np.testing.assert_allclose(found["rows"], table[PLACES], rtol=1e-6)
    np.testing.assert_allclose(
        found["y"], x @ table.T, rtol=1e-4, atol=0.01 * np.abs(x @ table.T).max() if rounds else 1e-3
    )


@pytest.mark.parametrize("target", ["generic", "x86-64-v3", "aarch64", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize(("kind", "zeros", "size"), KINDS)
def test_it_lies_once(kind: str, zeros: bool, size: float, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_weights, "LARGE", 1)
    if kind == "float16" and target not in ("x86-64-v3", "aarch64"):  # which cannot widen it in a few instructions
        size = 4
    package = compile_graph(load_proto(tied(kind, zeros)[0]), Options(target=target), "g")
    scales = ROWS * DEPTH // BLOCK * (4 + zeros) if "int" in kind else 0
    assert package.weights_bytes < 1.25 * (ROWS * DEPTH * size + scales) + 300


def test_tables_that_differ_lie_apart() -> None:
    model, table = tied("float32")
    other = table.copy()
    other[3, 3] += 1
    model.graph.initializer.append(numpy_helper.from_array(other, "o"))
    model.graph.node[2].input[0] = "o"
    assert compile_graph(load_proto(model), Options(), "g").weights_bytes > 2 * table.nbytes
