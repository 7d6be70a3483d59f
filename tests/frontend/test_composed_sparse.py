"""SparseAttention against onnxruntime, which wants the caches before and after a run at one place."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

from mccompile import backend

HEADS, GROUPS, WIDTH, BLOCK, ROOM = 4, 2, 16, 16, 48
CACHES = ("past_key", "past_value", "present_key", "present_value")
ROWS = np.array([[0, 1, 3, 6], [0, 1, 2, 4]], np.int32)  # a full layout, and one that leaves out blocks
COLUMNS = np.array([[0, 0, 1, 0, 1, 2], [0, 1, 0, 2, -1, -1]], np.int32)


def model(batch: int, length: int, total: int, packed: bool, turned: bool) -> ModelProto:
    parts = [HEADS + 2 * GROUPS] if packed else [HEADS, GROUPS, GROUPS]
    shapes = {name: [batch, length, n * WIDTH] for name, n in zip(("q", "k", "v"), parts, strict=False)}
    shapes |= {name: [batch, GROUPS, ROOM, WIDTH] for name in CACHES[:2]}
    ins = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    ins.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [batch]))
    outs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, length, HEADS * WIDTH])]
    outs += [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, GROUPS, ROOM, WIDTH]) for name in CACHES[2:]
    ]
    angles = np.arange(ROOM * WIDTH // 2, dtype=np.float32).reshape(ROOM, -1) / 9
    tables = {"rows": ROWS, "columns": COLUMNS, "total": np.array([total], np.int32)}
    tables |= {"cos": np.cos(angles), "sin": np.sin(angles)} if turned else {}
    names = ["q", *(["", ""] if packed else ["k", "v"]), *CACHES[:2], "rows", "columns", "total", "lengths"]
    form = {"num_heads": HEADS, "kv_num_heads": GROUPS, "sparse_block_size": BLOCK, "do_rotary": int(turned)}
    node = helper.make_node(
        "SparseAttention",
        names + (["cos", "sin"] if turned else []),
        ["y", *CACHES[2:]],
        domain="com.microsoft",
        scale=0.5,
        **form,
    )
    known = [helper.make_tensor(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, a) for n, a in tables.items()]
    graph = helper.make_graph([node], "sparse", ins, outs, known)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(
    ("lengths", "length", "packed", "turned"),
    [([40, 40], 40, False, False), ([20], 20, True, True), ([37, 20], 1, False, True), ([48], 1, True, False)],
    ids=["prompt", "turned prompt", "next tokens", "last token"],
)
def test_blocks_that_a_layout_leaves_out_are_not_seen(
    lengths: list[int], length: int, packed: bool, turned: bool
) -> None:
    made = model(len(lengths), length, max(lengths), packed, turned)
    chance = np.random.default_rng(0)
    given = {
        v.name: chance.standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim]) for v in made.graph.input
    }
    given = {name: array.astype(np.float32) for name, array in given.items()}
    given["lengths"] = np.array(lengths, np.int32)
    for name in CACHES[:2]:
        for cache, taken in zip(given[name], lengths, strict=True):
            cache[:, taken - length :] = 0
    results = backend.run_model(made, given)
    for sample, total in enumerate(lengths):
        alone = {name: array[sample : sample + 1] for name, array in given.items()}
        wanted = of_onnxruntime(model(1, length, total, packed, turned), alone)
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got[sample : sample + 1], want, 1e-4, 3e-5)


def of_onnxruntime(made: ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """One sample a run: of several it mixes up those that are shorter than the longest."""
    session = onnxruntime.InferenceSession(made.SerializeToString())
    bound, caches = session.io_binding(), {}
    bound.bind_output("y")
    for name, array in given.items():
        caches[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array.copy())
        bound.bind_ortvalue_input(name, caches[name])
    for before, after in zip(CACHES[:2], CACHES[2:], strict=True):
        bound.bind_ortvalue_output(after, caches[before])
    session.run_with_iobinding(bound)
    return [*bound.copy_outputs_to_cpu()]
