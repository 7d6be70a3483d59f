"""Graphs back to ONNX: the model that is written means what the model that was read means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from mccompile.base.dtypes import f32
from mccompile.base.errors import UnsupportedModel
from mccompile.base.tensor import TensorType
from mccompile.frontend.load import load_proto
from mccompile.frontend.reference import EvaluationFailed, run_graph, run_node
from mccompile.frontend.save import EXCHANGE, node_model, to_onnx, write
from mccompile.graph.ir import Fact, Graph, Node, Value
from mccompile.graph.text import show
from mccompile.ops.transpose import TransposeInMemory

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'
NET = """g (float[1,3,8,8] x) => (float[1,10] y, int64[1] best)
    <float[4,3,3,3] w = {0.5}, int64[2] s = {1, 10}, int64[5] pick = {0, 9, 3, 4, 8}> {
        c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, big)
        r = Clip(c, , six)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
        f = Flatten(p)
        g = Gemm <transB = 1, alpha = 0.5> (f, dense)
        y = Softmax <axis = 1> (g)
        best = ArgMax <axis = 1, keepdims = 0> (y)
    }"""


def model() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    proto = parser.parse_model(HEAD + NET)
    del proto.graph.initializer[:]
    for name, shape in (("big", (4, 3, 3, 3)), ("six", ()), ("dense", (10, 16))):
        array = np.asarray(rng.standard_normal(shape) + 1, np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return proto


def test_a_model_goes_through_unchanged_in_meaning() -> None:
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    wanted = ReferenceEvaluator(model()).run(None, {"x": x})
    graph = load_proto(model())
    written = to_onnx(graph)
    onnx.checker.check_model(written, full_check=True)
    for have, want in zip(run_graph(graph, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)


@pytest.mark.parametrize("opset", [2, 11, 13])
def test_equal_parts_say_how_many_they_are(opset: int) -> None:
    text = "g (float[2,6] x) => (float[2,3] a, float[2,3] b) { a, b = Split <axis = -1> (x) }"
    written = to_onnx(load_proto(parser.parse_model(HEAD.replace("17", str(opset)) + text)))
    onnx.checker.check_model(written, full_check=True)
    assert [attribute.i for attribute in written.graph.node[0].attribute if attribute.name == "num_outputs"] == [2]


def test_what_is_written_reads_back_the_same() -> None:
    graph = load_proto(model())
    assert show(load_proto(to_onnx(graph))) == show(graph)


def test_files_for_other_programs_are_of_an_opset_that_they_know(tmp_path: Path) -> None:
    graph = load_proto(model())
    write(graph, tmp_path / "g.onnx")
    written = onnx.load(tmp_path / "g.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert [entry.version for entry in written.opset_import] == [EXCHANGE]
    assert show(load_proto(written)) == show(graph)


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("(float[2] x) => (float[2] y) { y = RMSNormalization <epsilon = 0.5> (x, x) }", 23),
        ("(float[2] x) => (float[2] y) { y = Swish(x) }", 24),
        ("(bfloat16[2] x) => (bfloat16[2] y) { y = Elu(x) }", 22),  # known before, but not of this type
        ("(int8[2] x) => (float[2] y) { y = Cast <to = 1> (x) }", EXCHANGE),
        ("(bool b, float[2] x) => (float[2] y) { y = If (b) <then_branch = t () => (float[2] p) { p = Swish(x) },"
         "else_branch = e () => (float[2] q) { q = Neg(x) }> }", 24),
    ],
)  # fmt: skip
def test_the_oldest_opset_that_has_all_operators_is_written(text: str, opset: int, tmp_path: Path) -> None:
    graph = load_proto(parser.parse_model('<ir_version: 11, opset_import: ["" : 24]> g ' + text))
    write(graph, tmp_path / "g.onnx")
    written = onnx.load(tmp_path / "g.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert written.opset_import[0].version == opset
    assert [node.op for node in load_proto(written).nodes] == [node.op for node in graph.nodes]


def test_a_node_alone_with_an_absent_operand() -> None:
    graph = load_proto(model())
    node = next(node for node in graph.nodes if node.op.name == "Clip")
    proto = node_model(node)
    assert [entry.name for entry in proto.graph.input] == ["in0", "in2"]
    results = run_node(node, [np.full((1, 4, 4, 4), 9, np.float32), None, np.float32(3)])
    assert [r is not None and r.max() for r in results] == [3]


def test_what_only_an_old_opset_can_say_is_refused() -> None:
    """Below opset 13 Softmax goes over all axes from `axis` on."""
    text = """<ir_version: 4, opset_import: ["" : 9]>
        g (float[2,3,4] x) => (float[2,3,4] y) { [soft] y = Softmax <axis = 1> (x) }"""
    graph = load_proto(parser.parse_model(text))
    (node,) = graph.nodes
    assert node_model(node).opset_import[0].version == 12
    with pytest.raises(UnsupportedModel) as caught:
        to_onnx(graph)
    assert str(caught.value) == (
        'error: the graph cannot be written as ONNX\n  where  node "soft" (Softmax)\n'
        f"  why    what it does can be said in opset 12, but not in opset {onnx.defs.onnx_opset_version()}\n"
        "  fix    export the model with a newer opset"
    )


def test_operators_of_our_own_are_written_as_what_they_refine() -> None:
    x, y = Value("x", Fact(TensorType(f32, (2, 3)))), Value("y", Fact(TensorType(f32, (3, 2))))
    graph = Graph("g", [x], [y])
    graph.add(Node(TransposeInMemory(perm=(1, 0)), [x], [y], ("t",)))
    (result,) = run_graph(graph, {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})
    assert result.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_what_the_evaluator_raises_comes_out_as_one_exception() -> None:
    graph = load_proto(parser.parse_model(HEAD + "g (float[2] x) => (float[2] y) { y = Relu(x) }"))
    with pytest.raises(EvaluationFailed):
        run_graph(graph, {})


def test_attributes_that_an_older_opset_does_not_know_are_left_out(tmp_path: Path) -> None:
    text = "g (float[8] x) => (float[8] y) <int64 a = {0}, int64 b = {8}, int64 c = {1}> "
    proto = parser.parse_model(HEAD + text + "{ r = Range(a, b, c) f = Cast <to = 1> (r) y = Add(x, f) }")
    write(load_proto(proto), tmp_path / "written.onnx")
    written = onnx.load(tmp_path / "written.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert [list(node.attribute) for node in written.graph.node if node.op_type == "Range"] == [[]]
    assert show(load_proto(written)) == show(load_proto(proto))
