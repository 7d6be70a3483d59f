"""Tensors without elements: a result of the right shape, made without a step that reads what is not there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto

from mccompile import backend
from mccompile.driver import Options, compile
from tests.ops.test_free_sizes import compare, floats, graph, ints

EMPTY = {
    "reduce": graph(
        "(float[2,2,0,0] x) => (float[2,2,1,0] y, float[2,2,1,1] z)"
        "{ y = ReduceMax<axes=[2]>(x) z = ReduceL2<axes=[2,3]>(x) }"
    ),
    "reduce_integers": graph("(int64[0,3] x) => (int64[0,1] y) { y = ReduceMax<axes=[1]>(x) }"),
    "slice": graph(
        "(float[0,4] x, int64[1] from) => (float[0,o] y) { y = Slice(x, from, e, a) }", e=ints(4), a=ints(1)
    ),
    "resize": graph(
        '(float[batch,1,3] x) => (float[batch,1,0] y) { y = Resize<mode="linear">(x, , s) }',
        s=np.array([1, 1, 0.3], np.float32),
    ),
    "pad": graph("(float[batch,0] x) => (float[o,4] y) { y = Pad(x, p) }", p=ints(1, 2, 0, 2)),
    "pad_rows": graph("(float[0,3] x) => (float[2,5] y) { y = Pad(x, p) }", p=ints(1, 1, 1, 1)),
    "non_zero": graph("(float[2,3,0] x) => (int64[3,o] y) { a = Neg(x) y = NonZero(a) }"),
    "unique": graph(
        "(float[batch,0] x) => (float[n] y, int64[n] i, int64[m] j, int64[n] k) { y, i, j, k = Unique(x) }"
    ),
    "scan": graph(
        "(float[4,batch,0] x, float[batch,0] s) => (float[batch,0] y, float[4,batch,0] z)"
        "{ y, z = Scan<num_scan_inputs=1, body=b (float[batch,0] t, float[batch,0] r)"
        " => (float[batch,0] u, float[batch,0] v) { u = Add(t, r) v = Neg(u) }>(s, x) }"
    ),
    "filled": graph(
        "(float[batch,2] x) => (int64[0,batch] y)"
        "{ n = Shape<end=1>(x) s = Concat<axis=0>(none, n) y = ConstantOfShape<value=int64[1] {3}>(s) }",
        none=ints(0),
    ),
    "carried": graph(
        "(float[4,0] x, float[0] s) => (float[0] y, float[4,0] z)"
        "{ y, z = Scan<num_scan_inputs=1, body=b (float[0] t, float[0] r)"
        " => (float[0] u, float[0] v) { u = Add(t, r) v = Neg(u) }>(s, x) }"
    ),
    "matmul": graph("(float[batch,0] x) => (float[batch,3] y) { y = MatMul(x, w) }", w=floats(0, 3)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_results_are_those_of_onnxruntime(name: str) -> None:
    made: ModelProto = EMPTY[name]
    session = onnxruntime.InferenceSession(made.SerializeToString())
    is_free = any("batch" in entry.shape for entry in session.get_inputs())
    dims = {"batch": (1, 5)} if is_free else {}
    rep = backend.prepare(made, flags=("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror"), dims=dims)
    for batch in (1, 3, 5) if is_free else (0,):
        inputs = {}
        for entry in session.get_inputs():
            shape = [batch if isinstance(dim, str) else dim for dim in entry.shape]
            inputs[entry.name] = np.ones(shape, np.int64 if "int64" in entry.type else np.float32)
        compare([each.name for each in made.graph.output], rep.run(inputs), session.run(None, inputs), 1e-6)


def test_what_has_no_result_is_not_computed(tmp_path: Path) -> None:
    path = tmp_path / "pool.onnx"
    onnx.save(graph("(float[0,4,3,3] x) => (float[0,4,1,1] y) { y = MaxPool<kernel_shape=[3,3]>(x) }"), path)
    assert not json.loads(compile(path, Options(optimize=False)).files["report.json"])["steps"]
