"""OneHot times a matrix: rows of the matrix, also for indices that count from the end or lie outside."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.passes.api import Context
from mccompile.passes.graph.eliminate_dead import eliminate_dead
from mccompile.passes.graph.gather_onehot_products import gather_onehot_products
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

MATRIX = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
LINES = "l = OneHot(p, depth, values)"
BODIES = {
    "plain": f"{LINES} y = MatMul(l, m)",
    "flattened": f"{LINES} f = Reshape(l, flat) z = MatMul(f, m) y = Reshape(z, shape)",
    "compared": "u = Unsqueeze(p, last) e = Equal(u, counted) l = Cast <to = 1> (e) y = MatMul(l, m)",
    "compared the other way": "u = Unsqueeze(p, last) e = Equal(line, u) l = Cast <to = 1> (e) y = MatMul(l, m)",
    "cast": "l = OneHot(p, depth, whole) f = Cast <to = 1> (l) y = MatMul(f, m)",
}


def graph_of(
    body: str,
    dtype: str = "int32",
    matrix: np.ndarray = MATRIX,
    values: tuple[float, ...] = (0, 1),
    counted: tuple[int, ...] = (0, 1, 2, 3),
) -> Graph:
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]>\ng ({dtype}[2,5] p) => (float[2,5,3] y) {{ {body} }}'
    )
    arrays = {
        "depth": np.array(4), "values": np.array(values, np.float32), "whole": np.array(values, np.int64), "m": matrix,
        "flat": np.array([10, 4]), "shape": np.array([2, 5, 3]),
        "last": np.array([-1]), "counted": np.array([[counted]], dtype.replace("float", "float32")),
        "line": np.array(counted, dtype.replace("float", "float32")),
    }  # fmt: skip
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items() if n in used)
    return load_proto(model)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8"])
def test_a_product_becomes_rows(body: str, dtype: str, context: Context) -> None:
    graph = graph_of(BODIES[body], dtype)
    type = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype.upper()))
    places = np.array([[0, 1, 2, 3, 4], [100, -1, -4, -5, -100]]).astype(type)
    before = outputs(lower(copy.deepcopy(graph)), {"p": places})["y"]
    gather_onehot_products(graph, context)
    eliminate_dead(graph, context)
    verify(graph, "gather_onehot_products")
    names = [node.op.name for node in graph.nodes]
    assert not {"OneHot", "Equal"} & set(names) and "MatMul" not in names and "Gather" in names
    np.testing.assert_array_equal(outputs(lower(graph), {"p": places})["y"], before)


@pytest.mark.parametrize(
    "graph",
    [
        graph_of("l = OneHot <axis = 1> (p, depth, values) t = Transpose <perm = [0, 2, 1]> (l) y = MatMul(t, m)"),
        graph_of(BODIES["plain"], values=(0, 2)),
        graph_of(BODIES["plain"], matrix=np.where(MATRIX > 0, np.inf, MATRIX).astype(np.float32)),
        graph_of(BODIES["plain"], dtype="float"),
        graph_of(BODIES["compared"], counted=(0, 1, 2, 4)),
        graph_of(BODIES["compared"], dtype="float"),
    ],
    ids=["another axis", "not one", "infinite", "floats as indices", "not counted", "floats compared"],
)
def test_what_is_no_row_stays_a_product(graph: Graph, context: Context) -> None:
    gather_onehot_products(graph, context)
    assert "MatMul" in [node.op.name for node in graph.nodes]
