"""Files into graphs: what a reader of ONNX has to get right before any operator is compiled."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, SparseTensorProto, helper, numpy_helper, parser

from mccompile.base.errors import MccError, MccWarning
from mccompile.frontend.load import load, load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.text import show
from mccompile.graph.verify import verify

HEAD = '<ir_version: 9, opset_import: ["" : 17, "my" : 1]>\n'


def graph_of(text: str, head: str = HEAD, **options: dict[str, tuple[int, ...]]) -> Graph:
    graph = load_proto(parser.parse_model(head + text), **options)
    verify(graph)
    return graph


def lines(graph: Graph) -> list[str]:
    return [line.strip() for line in show(graph).splitlines()[1:-1]]


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def test_operators_are_typed_and_know_their_nodes() -> None:
    graph = graph_of("g (float[2,3] x) => (float[2,3] y) { [first] a = Relu(x) y = Neg(a) }")
    assert lines(graph) == [
        "input %x: f32[2,3]",
        '%a: f32[2,3] = Relu(%x) from "first"',
        '%y: f32[2,3] = Neg(%a) from "y"',  # a node without a name goes by its result
        "output %y",
    ]


def test_nodes_in_any_order() -> None:
    graph = graph_of("g (float[4] x) => (float[4] y) { y = Neg(b) b = Abs(a) a = Relu(x) }")
    assert names(graph) == ["Relu", "Abs", "Neg"]


def test_initializers_and_constant_nodes_are_constants_even_where_they_are_listed_as_inputs() -> None:
    graph = graph_of(
        """g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> {
            c = Constant <value_floats = [3.0, 4.0]> ()
            a = Add(x, w)
            y = Add(a, c)
        }"""
    )
    assert [value.name for value in graph.inputs] == ["x"]
    contents = {value.name: value.constant.array.tolist() for value in graph.constants() if value.constant}
    assert contents == {"w": [1, 2], "c": [3, 4]}
    assert names(graph) == ["Add", "Add"]


def test_a_sparse_initializer_is_written_out() -> None:
    model = parser.parse_model(HEAD + "g (float[2,2] x) => (float[2,2] y) { y = Add(x, w) }")
    sparse = SparseTensorProto(
        values=numpy_helper.from_array(np.array([5, 7], np.float32), "w"),
        indices=numpy_helper.from_array(np.array([1, 2], np.int64)),
        dims=[2, 2],
    )
    model.graph.sparse_initializer.append(sparse)
    (value,) = load_proto(model).constants()
    assert value.constant is not None
    assert value.constant.array.tolist() == [[0, 5], [7, 0]]


def test_a_dimension_may_be_fixed_for_all_inputs_by_name() -> None:
    text = "g (float[batch,3] x, float[batch,3] z) => (float[batch,3] y) { y = Add(x, z) }"
    assert lines(graph_of(text, dims={"batch": (2, 2)}))[0] == "input %x: f32[2,3]"
    assert [str(v.type) for v in graph_of(text, shapes={"x": (4, 3)}).inputs] == ["f32[4,3]", "f32[4,3]"]


def test_a_dimension_with_a_range_is_a_symbol() -> None:
    graph = graph_of("g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }", dims={"batch": (1, 8)})
    assert lines(graph)[:2] == ["dim n_batch in 1..8", "input %x: f32[n_batch,3]"]


def test_a_shape_may_name_dimensions_of_its_own() -> None:
    text = "g (float[?,?] x) => (float[a,b] y) { y = Relu(x) }"
    graph = graph_of(text, shapes={"x": ("N", 3)}, dims={"N": (1, 4)})
    assert str(graph.outputs[0].type) == "f32[n_N,3]"


def test_absent_operands_are_absent() -> None:
    graph = graph_of("g (float[4] x, float high) => (float[4] y) { y = Clip(x, , high) }")
    (node,) = graph.nodes
    assert [value and value.name for value in node.inputs] == ["x", None, "high"]


def test_a_function_is_written_out_with_its_attributes() -> None:
    graph = graph_of(
        """g (float[4] x) => (float[4] y) {
            [f1] a = my.Twice <slope = 0.5> (x)
            [f2] y = my.Twice (a)
        }
        <domain: "my", opset_import: ["" : 17]>
        Twice <slope: float = 0.25> (v) => (w) {
            [inner] u = LeakyRelu <alpha: float = @slope> (v)
            w = LeakyRelu <alpha: float = @slope> (u)
        }"""
    )
    assert lines(graph) == [
        "input %x: f32[4]",
        '%"f1/u": f32[4] = LeakyRelu(%x) {alpha=0.5} from "f1/inner"',
        '%a: f32[4] = LeakyRelu(%"f1/u") {alpha=0.5} from "f1/w"',
        '%"f2/u": f32[4] = LeakyRelu(%a) {alpha=0.25} from "f2/inner"',
        '%y: f32[4] = LeakyRelu(%"f2/u") {alpha=0.25} from "f2/w"',
        "output %y",
    ]


def test_a_function_does_not_take_the_name_of_a_standard_operator() -> None:
    """The standard leaves it to runtimes; onnxruntime and ONNX's evaluator have the operator. It has no Triple."""
    graph = graph_of(
        """g (float[4] x) => (float[4] y) { a = Relu(x) y = Triple(a) }
        <domain: "", opset_import: ["" : 17]> Relu (v) => (w) { w = Neg(v) }
        <domain: "", opset_import: ["" : 17]> Triple (v) => (w) { w = Sum(v, v, v) }"""
    )
    assert names(graph) == ["Relu", "Sum"]


def test_a_function_that_gives_back_its_operand() -> None:
    graph = graph_of(
        """g (float[4] x) => (float[4] y) { y = my.Same(x) }
        <domain: "my", opset_import: ["" : 17]> Same (v) => (v) { unused = Relu(v) }"""
    )
    assert [value.name for value in graph.outputs] == ["y"]
    assert names(graph)[-1] == "Identity"


def test_an_operator_without_a_class_is_written_out_as_onnx_defines_it() -> None:
    graph = graph_of("g (float[4,3] x, int64[4] t) => (float y) { [loss] y = NegativeLogLikelihoodLoss(x, t) }")
    assert names(graph) and "NegativeLogLikelihoodLoss" not in names(graph)
    assert {node.provenance for node in graph.nodes} == {("loss",)}
    assert [value.name for value in graph.outputs] == ["y"]


def test_only_the_branch_that_is_taken_is_read() -> None:
    graph = graph_of(
        """g (float[1,4] x) => (float[4] y) {
            rank = Constant <value_int = 2> ()
            s = Shape(x)
            n = Size(s)
            c = Equal(n, rank)
            [choice] y = If (c) <
                then_branch = t () => (float[4] q) { axes = Constant <value_ints = [0]> () [cut] q = Squeeze(x, axes) },
                else_branch = e () => (float[4] q) { q = NoSuchOperator(x) }
            >
        }"""
    )
    assert names(graph)[-1] == "Squeeze"
    assert [value.name for value in graph.outputs] == ["y"]
    assert list(graph.assumptions) == ["the condition of choice is true"]


def test_what_a_type_rule_must_know_is_computed_from_constants() -> None:
    graph = graph_of(
        """g (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[2] ones = {1, 1}, float[2] two = {1, 1}> {
            twos = Add(two, two)
            scales = Concat <axis = 0> (ones, twos)
            y = Resize <mode = "nearest"> (x, , scales)
        }"""
    )
    assert str(graph.outputs[0].type) == "f32[1,1,8,8]"


def test_outputs_keep_their_names_whatever_they_are() -> None:
    graph = graph_of(
        """g (float[2] x) => (float[2] x, float[2] w, float[2] a, float[2] b) <float[2] w = {1, 2}> {
            a = my.Same(x)
            b = my.Same(x)
        }
        <domain: "my", opset_import: ["" : 17]> Same (v) => (v) { unused = Relu(v) }"""
    )
    assert [value.name for value in graph.outputs] == ["x", "w", "a", "b"]


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 20])
def test_every_supported_opset_is_read(opset: int) -> None:
    head = f'<ir_version: 4, opset_import: ["" : {opset}]>\n'
    assert names(graph_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", head)) == ["Relu"]


def test_packed_and_narrow_initializers_have_their_values() -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Identity", ["a"], ["y"]), helper.make_node("Identity", ["b"], ["z"])],
            "g",
            [],
            [helper.make_tensor_value_info("y", 22, [3]), helper.make_tensor_value_info("z", 16, [2])],
            [helper.make_tensor("a", 22, [3], [-8, 7, 1]), helper.make_tensor("b", 16, [2], [1.5, -2.0])],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    graph = load_proto(model)
    contents = [value.constant.array.astype(float).tolist() for value in graph.constants() if value.constant]
    assert contents == [[-8, 7, 1], [1.5, -2]]


def test_damaged_files_never_end_in_anything_but_an_error(tmp_path: Path) -> None:
    text = """g (float[1,4] x) => (float[1,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, int64[2] s = {1, 2}> {
        m = MatMul(x, w)
        r = Reshape(m, s)
        c = Concat <axis = 1> (r, r)
        y = Softmax <axis = -1> (r)
    }"""
    data = parser.parse_model(HEAD + text).SerializeToString()
    choose = random.Random(1)
    path = tmp_path / "net.onnx"
    refused = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(choose.randrange(1, 4)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        path.write_bytes(damaged)
        try:
            load(path)
        except MccError as error:
            refused += 1
            assert error.exit_code in (3, 4)
    assert refused > 200


def test_the_same_file_gives_the_same_text() -> None:
    model: ModelProto = parser.parse_model(
        HEAD + "g (float[4] x) => (float[4] y) { a = Relu(x) b = Neg(x) y = Add(a, b) }"
    )
    assert show(load_proto(model)) == show(load_proto(model))


def test_an_input_with_a_fixed_value_is_a_constant() -> None:
    model = parser.parse_model(HEAD + "g (float[2,3] x, int64[1] axes) => (float[2] y) { y = Squeeze(x, axes) }")
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    graph = load_proto(model, fixed={"axes": np.array([1])})
    assert [value.name for value in graph.inputs] == ["x"]
    assert str(graph.outputs[0].type) == "f32[2]"


def test_strings_are_elements_of_inputs_and_constants() -> None:
    made = parser.parse_model(
        HEAD.replace("17", "20").replace("version: 9", "version: 10")
        + "g (string[3] x) => (bool[3] y, string[3] z) { y = Equal(x, c) z = StringConcat(x, c) }"
    )
    made.graph.initializer.append(numpy_helper.from_array(np.array(["ä"], object), "c"))
    graph = load_proto(made, bounds={"strings": (99,)})
    verify(graph)
    assert lines(graph)[0] == "input %x: string[3]"
    assert lines(graph)[2:4] == [
        '%y: bool[3] = Equal(%x, %c) from "y"',
        '%z: string[3] = StringConcat(%x, %c) {room=99} from "z"',
    ]
    assert [value.type.dtype.name for value in graph.constants()] == ["string"]


def test_room_for_strings_that_nobody_makes_is_an_error() -> None:
    made = parser.parse_model(HEAD + "g (string[3] x) => (string[3] y) { y = Identity(x) }")
    with pytest.raises(MccError, match="nothing is bounded by 'strings'"):
        load_proto(made, bounds={"strings": (99,)})


def test_what_nodes_make_counts_where_an_output_is_declared_with_another_shape() -> None:
    graph = graph_of("g (float[1,4] x) => (float[1,5] y, float[8] z) { y = Relu(x) z = Neg(x) }")
    assert [output.type.shape for output in graph.outputs] == [(1, 4), (1, 4)]


def test_a_model_without_elements_is_warned_of() -> None:
    model = parser.parse_model('<ir_version:8,opset_import:["":17]> g (float[0,4] x) => (float[0,4] y) {y = Relu(x)}')
    with pytest.warns(MccWarning, match=r"computes nothing: .* \(y is f32\[0,4\]\)"):
        load_proto(model)


def test_the_fix_of_an_input_without_a_type_declares_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = parser.parse_model('<ir_version:8,opset_import:["":17]> g (x) => (y) {y = Relu(x)}')
    Path("plain.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(MccError) as found:
        load(Path("plain.onnx"))
    command = re.search(r'python -c "(.*)"', found.value.problems[0].fix)
    assert command is not None
    exec(command[1], {})
    assert load(Path("typed.onnx"), shapes={"x": (1, 4)}).inputs[0].type.shape == (1, 4)
