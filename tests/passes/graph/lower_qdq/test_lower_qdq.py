"""QDQ graphs become integers, and give exactly what rational arithmetic gives."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph, all_nodes
from mccompile.graph.text import show
from mccompile.kernels.registry import Registry
from mccompile.measure.correctness import build
from mccompile.passes.api import GRAPH, PROGRAM, Context, PassManager
from mccompile.passes.graph.lower_qdq.lower_qdq import lower_qdq
from mccompile.passes.lower import lower
from mccompile.pipeline import GRAPH_PASSES, PROGRAM_PASSES
from mccompile.targets import api as targets
from tests.float_sums import float_sums
from tests.passes.conftest import parse
from tests.passes.graph.exact_qdq import run
from tests.passes.program.interpreter import outputs
from tests.passes.qdq_graphs import BLOCKS, network, networks, networks_of_16_bits, some_integers

CONTEXT = Context(targets.load("generic"), Registry.load(()))
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def integers(model: ModelProto) -> Graph:
    graph = load_proto(model)
    PassManager(CONTEXT).run(GRAPH, graph, GRAPH_PASSES)
    return graph


def operators(graph: Graph) -> set[str]:
    return {node.op.name for node in all_nodes(graph)}


@QUICK
@given(networks())
def test_random_networks_are_exact(model: ModelProto) -> None:
    check_exact(model)


@settings(QUICK, max_examples=20)
@given(networks_of_16_bits())
def test_activations_of_16_bits_are_exact(model: ModelProto) -> None:
    check_exact(model)


def check_exact(model: ModelProto) -> None:
    inputs = some_integers(model)
    graph = integers(model)
    assert not operators(graph) & {"QuantizeLinear", "DequantizeLinear"} and not graph.left_in_float
    program = lower(graph)
    PassManager(CONTEXT).run(PROGRAM, program, PROGRAM_PASSES[:1])
    found, want = outputs(program, inputs), run(model, inputs)
    for name, array in want.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
def test_generated_c_is_exact(seed: int) -> None:
    blocks = [
        [*range(10), 11],
        [13, 2, 1, 2, 4, 8, 3],
        [6, 13, 4, 9],
        [10, 12, 0, 7],
        [1, 14, 16, 17, 5, 9],
        [2, 3, 15, 6, 12, 11],
    ]
    model = network(seed, blocks[seed])
    inputs, options = some_integers(model), Options(name="qdq")
    package = compile_graph(load_proto(model), options, "qdq")
    assert not float_sums(package.files["qdq_kernels.c"].decode())
    found, want = build(package, options.resolved_target()).run(inputs), run(model, inputs)
    for name, array in want.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_one_block_is_at_most_one_step_from_floats() -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for block in range(len(BLOCKS)):
        model = network(7 + block, [block])
        inputs = some_integers(model)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        for name, array in run(model, inputs).items():
            floats = session.run([name], inputs)[0]
            assert np.abs(floats.astype(int) - array.astype(int)).max() <= 1


def one_operator(op: str) -> ModelProto:
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node(op, ["x"], ["y"], name="shares"),
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["r"]),
    ]
    weights = [
        numpy_helper.from_array(np.array(0.1, np.float32), "s"),
        numpy_helper.from_array(np.array(3, np.int8), "z"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.INT8, (1, 10)) for name in ("q", "r")]
    graph = helper.make_graph(nodes, "shares", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_stays_in_float_is_noted() -> None:
    assert integers(one_operator("LogSoftmax")).left_in_float == {
        "shares": "LogSoftmax has no integer form with these attributes and types, or its sums may not fit 32 bits"
    }


@pytest.mark.parametrize("x", ["DequantizeLinear(q, s, z)", "Cast<to = 1>(q)"])
def test_recurrent_layers_are_said_to_compute_in_floats(x: str) -> None:
    """Whether or not what they read is quantized."""
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (int8[5,1,4] q) => (float[5,1,1,2] y)
        <float s = {{0.1}}, int8 z = {{0}}>
        {{ x = {x}  w8 = ConstantOfShape<value = int8[1] {{3}}>(ws)  w = DequantizeLinear(w8, s, z)
           r = ConstantOfShape<value = float[1] {{0.5}}>(hs)  y, h = GRU<hidden_size = 2>(x, w, r) }}"""
    model = parser.parse_model(text)
    for name, shape in (("ws", [1, 6, 4]), ("hs", [1, 6, 2])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(shape), name))
    (why,) = integers(model).left_in_float.values()
    assert why.startswith("recurrent layers compute in floats")


@pytest.mark.parametrize(("op", "is_float"), [("Softmax", False), ("LogSoftmax", True)])
def test_c_adds_up_floats_where_the_report_says_so(op: str, is_float: bool) -> None:
    files = compile_graph(load_proto(one_operator(op)), Options(name="qdq"), "qdq").files
    assert bool(json.loads(files["report.json"])["float_in_quantized"]) == is_float
    assert bool(float_sums(files["qdq_kernels.c"].decode())) == is_float


def test_padding_stands_for_the_zero_point_and_weights_are_bytes() -> None:
    graph = integers(network(0, [0, 0, 0]))
    assert operators(graph) >= {"ConvInteger", "ShortRescale"}
    assert all(not value.type.dtype.is_float for value in graph.values())


def retrained(model: ModelProto) -> ModelProto:
    """The same network with other weights, biases and scales."""
    again, chance = ModelProto(), np.random.default_rng(5)
    again.CopyFrom(model)
    for tensor in again.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            array = (array * chance.uniform(0.9, 1.1, array.shape)).astype(np.float32)
        elif array.dtype != np.int64 and array.size > 1 and array.any():
            array = chance.permutation(array.reshape(-1)).reshape(array.shape)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return again


def test_a_retrained_network_runs_on_the_same_code() -> None:
    model = network(3, [0, 1, 3, 4, 9])
    first, second = (
        compile_graph(load_proto(made), Options(name="qdq"), "qdq").files for made in (model, retrained(model))
    )
    assert first["qdq.c"] == second["qdq.c"] and first["qdq_kernels.c"] == second["qdq_kernels.c"]
    assert first["qdq.mcb"] != second["qdq.mcb"]


def test_a_chain_of_steps_is_one_table() -> None:
    assert operators(integers(network(11, [8, 8, 8]))) == {"Lookup"}


def test_sums_that_may_not_fit_stay_in_float() -> None:
    """70000 products of 8 bits are more than 32 bits hold."""
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"]),
        helper.make_node("MatMul", ["x", "v"], ["y"], name="long"),
        helper.make_node("QuantizeLinear", ["y", "t", "z"], ["r"]),
    ]
    weights = [
        numpy_helper.from_array(np.array(0.01, np.float32), "s"),
        numpy_helper.from_array(np.array(0, np.uint8), "z"),
    ]
    weights += [numpy_helper.from_array(np.full((70000, 1), 255, np.uint8), "w")]
    weights += [numpy_helper.from_array(np.array(9.0, np.float32), "t")]
    values = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in (("q", (1, 70000)), ("r", (1, 1)))]
    graph = helper.make_graph(nodes, "long", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = integers(model)
    assert "MatMulInteger" not in operators(found) and list(found.left_in_float) == ["long"]


BEFORE = """
input %x: i8[1,2,4,4]
const %s: f32[] = #s
const %z: i8[] = #z
const %w: i8[1,2,1,1] = #w
const %t: f32[] = #t
%a: f32[1,2,4,4] = DequantizeLinear(%x, %s, %z) from "a"
%v: f32[1,2,1,1] = DequantizeLinear(%w, %t) from "v"
%c: f32[1,1,4,4] = Conv(%a, %v) from "c"
%y: i8[1,1,4,4] = QuantizeLinear(%c, %s, %z) from "y"
output %y
"""
EXPECTED = """graph "g" {
  input %x: i8[1,2,4,4]
  const %w_2: i8[1,2,1,1]
  const %"y/multiplier": i64[1,1,1]
  const %"y/addend": i64[1,1,1]
  const %"y/shift": u8[1,1,1]
  const %"y/zero": i8[]
  %y_2: i32[1,1,4,4] = ConvInteger(%x, %w_2, none, none) from "v", "a", "c", "y"
  %y: i8[1,1,4,4] = mccompile.Rescale(%y_2, RESCALE, none, none) from "v", "a", "c", "y"
  output %y
}
""".replace("RESCALE", '%"y/multiplier", %"y/addend", %"y/shift", %"y/zero"')


def test_a_convolution_between_quantizations_sums_integers() -> None:
    numbers = {"s": np.float32(0.5), "z": np.int8(3), "w": np.array([[[[1]], [[-2]]]], np.int8), "t": np.float32(0.25)}
    graph = parse(BEFORE, {name: np.asarray(number) for name, number in numbers.items()})
    lower_qdq(graph, CONTEXT)
    assert re.sub(r" = #\w+", "", show(graph)) == EXPECTED


@pytest.mark.parametrize(
    ("op", "attributes", "shape"),
    [
        ("Conv", "pads = [0, 1, 2, 1], strides = [2, 1], dilations = [1, 2]", "1, 2, 4, 7"),
        ("ConvTranspose", "pads = [0, 1, 2, 1], strides = [2, 3]", "1, 2, 10, 18"),
    ],
)
def test_a_window_of_integers_is_that_of_the_floats(op: str, attributes: str, shape: str) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (int8[1, 2, 6, 7] q) => (int8[{shape}] y)
        <float s = {{0.5}}, int8 z = {{3}}, int8[2, 2, 2, 2] w = {{{", ".join(map(str, range(16)))}}}> {{
            x = DequantizeLinear (q, s, z)  v = DequantizeLinear (w, s)
            t = {op} <{attributes}> (x, v)  y = QuantizeLinear (t, s, z)
        }}"""
    check_exact(onnx.parser.parse_model(text))


def test_elements_are_chosen_after_their_quantization() -> None:
    between = BEFORE.replace(
        "%y: i8[1,1,4,4] = QuantizeLinear(%c, %s",
        """
const %i: i64[] = #i
%g: f32[1,1,4] = Gather(%c, %i) {axis=2} from "g"
%y: i8[1,1,4] = QuantizeLinear(%g, %s""",
    )
    numbers = {"s": np.float32(0.5), "z": np.int8(3), "w": np.array([[[[1]], [[-2]]]], np.int8), "t": np.float32(0.25)}
    graph = parse(between, {name: np.asarray(number) for name, number in (numbers | {"i": np.int64(1)}).items()})
    lower_qdq(graph, CONTEXT)
    assert [node.op.name for node in graph.nodes] == ["ConvInteger", "Rescale", "Gather"]


@pytest.mark.parametrize("blocks", [[0, 0], [0, 13], [0, 9], [0, 10], [13]])
@pytest.mark.parametrize("seed", [3, 4])
def test_products_whose_results_stay_floats_are_summed_as_integers(blocks: list[int], seed: int) -> None:
    model = network(seed, blocks)
    last = next(
        node for node in reversed(model.graph.node) if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul")
    )
    known = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    model.graph.output[0].CopyFrom(known[last.output[0]])
    graph, inputs = integers(model), some_integers(model)
    assert not operators(graph) & {last.op_type, "DequantizeLinear"} and not graph.left_in_float
    package = compile_graph(load_proto(model), Options(name="qdq"), "qdq")
    assert not float_sums(package.files["qdq_kernels.c"].decode())
    found = build(package, Options().resolved_target()).run(inputs)[last.output[0]]
    want = run(model, inputs)[last.output[0]]
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6 * float(np.abs(want).max()))


@pytest.mark.parametrize(
    ("op", "rounded", "scales"),
    [
        ("Add", "ByteRescale", (0.021, 0.037, 0.043)),
        ("Sub", "ByteRescale", (0.021, 0.037, 0.043)),
        ("Mul", "ShortRescale", (0.021, 0.037, 0.043)),
        ("Add", "PartRescale", (0.25, 0.125, 0.5)),
        ("Mul", "PartRescale", (0.25, 0.125, 0.5)),
        ("Sub", "PartRescale", (0.0527, 0.0254, 0.1)),
    ],
)
def test_two_tensors_of_bytes_are_rounded_in_32_bits(op: str, rounded: str, scales: tuple[float, float, float]) -> None:
    text = """<ir_version: 9, opset_import: ["" : 19]> g (int8[2, 9] qa, int8[2, 9] qb) => (int8[2, 9] qy)
        <float sa = {SA}, int8 za = {3}, float sb = {SB}, int8 zb = {-5}, float sy = {SY}, int8 zy = {7}> {
            a = DequantizeLinear (qa, sa, za)
            b = DequantizeLinear (qb, sb, zb)
            y = OPERATOR (a, b)
            qy = QuantizeLinear (y, sy, zy)
        }"""
    for name, scale in zip(("SA", "SB", "SY"), scales, strict=True):
        text = text.replace(name, str(scale))
    proto = onnx.parser.parse_model(text.replace("OPERATOR", op))
    assert rounded in operators(integers(proto))
    check_exact(proto)


def test_vectors_multiply_by_parts() -> None:
    """Upper halves of products take longer there."""
    proto = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 19]> g (int8[2, 9] qa, int8[2, 9] qb) => (int8[2, 9] qy)
        <float sa = {0.021}, int8 za = {3}, float sb = {0.037}, int8 zb = {-5}, float sy = {0.043}, int8 zy = {7}> {
            a = DequantizeLinear (qa, sa, za)
            b = DequantizeLinear (qb, sb, zb)
            y = Add (a, b)
            qy = QuantizeLinear (y, sy, zy)
        }"""
    )
    for name, rounded in (("x86-64-v3", "PartRescale"), ("cortex-m55", "ByteRescale")):
        graph = load_proto(proto)
        lower_qdq(graph, Context(targets.load(name), Registry.load(())))
        assert rounded in operators(graph)


def test_what_only_moves_elements_does_not_come_between() -> None:
    between = BEFORE.replace(
        "%y: i8[1,1,4,4] = QuantizeLinear(%c, %s",
        """
%m: f32[1,4,1,4] = Transpose(%c) {perm=(0, 2, 1, 3)} from "m"
%f: f32[1,16] = Flatten(%m) from "f"
%y: i8[1,16] = QuantizeLinear(%f, %s""",
    )
    numbers = {"s": np.float32(0.5), "z": np.int8(3), "w": np.array([[[[1]], [[-2]]]], np.int8), "t": np.float32(0.25)}
    graph = parse(between, {name: np.asarray(number) for name, number in numbers.items()})
    lower_qdq(graph, CONTEXT)
    assert [node.op.name for node in graph.nodes] == ["ConvInteger", "Rescale", "Transpose", "Flatten"]
    assert [value.name for value in graph.outputs] == ["y"] and not graph.left_in_float


def test_a_convolution_of_bytes_needs_no_memory_but_for_its_ends() -> None:
    """8 to 16 channels of 16x16."""
    chance = np.random.default_rng(0)
    numbers = {
        "s": np.array(0.05, np.float32),
        "z": np.array(-3, np.int8),
        "w": chance.integers(-127, 128, (16, 8, 3, 3)).astype(np.int8),
        "t": np.array(0.001, np.float32),
        "o": np.array(0, np.int8),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node("DequantizeLinear", ["w", "t", "o"], ["v"]),
        helper.make_node("Conv", ["x", "v"], ["y"], pads=[1] * 4),
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["r"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.INT8, (1, c, 16, 16)) for n, c in (("q", 8), ("r", 16))]
    weights = [numpy_helper.from_array(array, name) for name, array in numbers.items()]
    graph = helper.make_graph(nodes, "probe", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert compile_graph(load_proto(model), Options(), "probe").plan.arena_bytes == 6144


def test_what_moves_elements_outside_of_a_region_stays_there() -> None:
    """A branch quantizes what only it reads, and what a node outside of it transposed."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x, bool c) => (float[3,2] y)'
        "<float s = {0.1}, int8 z = {0}, float[3,2] k = {0,0,0,0,0,0}>"
        "{ a = Transpose<perm=[1,0]>(x) y = If(c) <"
        "then_branch = t () => (float[3,2] u) { q = QuantizeLinear(a, s, z) u = DequantizeLinear(q, s, z) },"
        "else_branch = e () => (float[3,2] v) { v = Identity(k) }> }"
    )
    assert {"If", "Transpose"} <= operators(integers(model))


def test_sizes_that_follow_from_data_stay_the_same() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (uint8[1,7] x, int64[1] b) => (float[1,o] y)'
        "<float s = {0.5}, uint8 z = {0}, int64[1] e = {7}, int64[1] ax = {1}>"
        "{ a = DequantizeLinear(x, s, z) y = Slice(a, b, e, ax) }"
    )
    assert [node.op.name for node in integers(model).nodes] == ["Slice", "DequantizeLinear"]
