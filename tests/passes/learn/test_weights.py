"""Which constants learn. Initializers that an exporter merged are told; what layers share on purpose is not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, parser

import mccompile
from mccompile.frontend.load import load_proto
from mccompile.passes.learn.weights import copied, learning, left_out, merged


@pytest.mark.parametrize(("bias", "said"), [("0, 0, 0", ["b learns as one weight of first, second"]), ("0, 1, 0", [])])
def test_equal_elements_that_several_layers_read_are_told(bias: str, said: list[str]) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (float[2, 3] y)
        <float[3, 3] w1 = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[3, 3] w2 = {{9, 8, 7, 6, 5, 4, 3, 2, 1}},
         float[3] b = {{{bias}}}> {{ h = Gemm(x, w1, b) y = Gemm(h, w2, b) }}""")
    for node, name in zip(model.graph.node, ("first", "second"), strict=True):
        node.name = name
    graph = load_proto(model)
    found = merged(learning(graph, "all", graph.outputs[0]))
    assert [text.partition(":")[0] for text in found] == said


@pytest.mark.parametrize(("second", "told"), [("w1, b1", True), ("w1, b2", False), ("w2, b1", False)])
def test_layers_that_have_all_in_common_are_told(second: str, told: bool) -> None:
    """As PyTorch's exporter leaves the copies in nn.TransformerEncoder."""
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 2] x) => (float[2, 2] y)
        <float[2, 2] w1 = {{1, 2, 3, 4}}, float[2, 2] w2 = {{4, 3, 2, 1}},
         float[2] b1 = {{1, 2}}, float[2] b2 = {{2, 1}}>
        {{ h = Gemm(x, w1, b1) r = Relu(h) y = Gemm(r, {second}) }}""")
    graph = load_proto(model)
    found = merged(learning(graph, "all", graph.outputs[0]))
    assert [text.partition(":")[0] for text in found] == told * [
        "w1, b1 learn as one weight each of several layers, w1 of h, y"
    ]


@pytest.mark.parametrize(("learn", "head", "told"), [
    ("all", "1, 3, 5, 2, 4, 6", ["copies learn apart, or not at all: head of table"]),
    ("last:1", "1, 3, 5, 2, 4, 6", ["copies learn apart, or not at all: table of head"]),
    ("all", "1, 2, 3, 4, 5, 6", []),
])  # fmt: skip
def test_a_weight_that_is_there_twice_is_told(learn: str, head: str, told: list[str]) -> None:
    """As PyTorch's exporter writes an embedding that is tied to the last layer."""
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]> g (int64[4] x) => (float[4, 3] y)
        <float[3, 2] table = {{1, 2, 3, 4, 5, 6}}, float[2, 3] head = {{{head}}}>
        {{ e = Gather(table, x) y = MatMul(e, head) }}""")
    graph = load_proto(model)
    found = copied(graph, learning(graph, learn, graph.outputs[0]))
    assert [text.rpartition(": PyTorch")[0] for text in found] == told


def test_parameters_in_no_layer_are_told() -> None:
    """As the positions and the class token of a transformer."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (float[1, 2, 3] x) => (float[1, 3, 3] y)
        <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3, 3] p = {9, 8, 7, 6, 5, 4, 3, 2, 1}, float half = {0.5},
         float[1, 1, 3] token = {1, 2, 3}, int64[3] one = {1, 1, 1}>
        { t = Expand(token, one) c = Concat <axis = 1> (t, x) a = Add(c, p) m = MatMul(a, w) y = Mul(m, half) }""")
    graph = load_proto(model)
    of = graph.outputs[0]
    (text,) = left_out(graph, "all", of, learning(graph, "all", of))
    assert text.startswith("no layer has token, p, ") and text.endswith("--learn all,token,p")
    assert not left_out(graph, "all,p,token", of, learning(graph, "all,p,token", of))


LOOP = """<ir_version: 8, opset_import: ["" : 18]> g (float[2, 2] x INPUT) => (float[2, 2] y)
    <float[2, 2] w = {1, 2, 3, 4}, float[2, 2] inner = {4, 3, 2, 1}, bool go = {1} CONSTANT> {
    first = Loop (trips, go, x) <body = b (int64 i, bool c, float[2, 2] s) =>
        (bool c2, float[2, 2] s2) { c2 = Identity(c) s2 = MatMul(s, inner) }>
    y = MatMul(first, w) }"""


def test_weights_in_the_body_of_a_loop_learn() -> None:
    """As PyTorch's exporter without dynamo writes nn.EmbeddingBag."""
    text = LOOP.replace("INPUT", "").replace("CONSTANT", ", int64 trips = {2}")
    graph = load_proto(parser.parse_model(text))
    of = graph.outputs[0]
    learned = learning(graph, "all", of)
    assert [value.name for value in learned] == ["inner", "w"]
    assert not left_out(graph, "all", of, learned)


def test_weights_in_the_body_of_a_loop_with_free_trips_are_told() -> None:
    graph = load_proto(parser.parse_model(LOOP.replace("INPUT", ", int64 trips").replace("CONSTANT", "")))
    of = graph.outputs[0]
    (text,) = left_out(graph, "all", of, learning(graph, "all", of))
    assert text.startswith("inner: read in the body of first (Loop)")


MOVED = """<ir_version: 8, opset_import: ["" : 18]> g (float[2, 4, 3] x) => (float[2, 4, 2] y)
    <float[2, 3] w1 = {1, 2, 3, 4, 5, 6}, float[2] b1 = {0, 0}, float[6, 2] wide = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
     float[2, 2] w2 = {1, 2, 3, 4}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}> {
    t = Transpose <perm = [1, 0]> (w1) p = MatMul(x, t) h = Add(b1, p)
    w_z = Slice(wide, four, six, zero) w_r = Slice(wide, zero, two, zero) w_h = Slice(wide, two, four, zero)
    w_all = Concat <axis = 0> (w_z, w_r, w_h) w = Unsqueeze(w_all, zero)
    r_all = Concat <axis = 0> (w2, w2, w2) r = Unsqueeze(r_all, zero)
    s = GRU <hidden_size = 2> (h, w, r) y = Squeeze(s, one) }"""


def test_constants_that_are_turned_cut_and_joined_learn() -> None:
    """As PyTorch exports Linear and GRU where it folds no constants."""
    graph = load_proto(parser.parse_model(MOVED.replace("int64[1] zero", "int64[1] one = {1}, int64[1] zero")))
    learned = learning(graph, "all", graph.outputs[0])
    assert [value.name for value in learned] == ["w1", "b1", "wide", "w2"]
    assert not merged(learned)  # three slices, but one layer
    assert [value.name for value in learning(graph, "last:1", graph.outputs[0])] == ["wide", "w2"]


def test_scales_behind_a_normalization_that_scales_by_one_learn() -> None:
    """As PyTorch exports GroupNorm."""
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[2, 4, 3] x) => (float[2, 4, 3] y)
        <float[2] ones = {1, SECOND}, float[2] zeros = {0, 0}, float[4, 1] scale = {1, 2, 3, 4},
         float[4, 1] bias = {0, 1, 2, 3}, int64[3] to = {0, 2, -1}, int64[3] back = {2, 4, 3}>
        { g = Reshape(x, to) n = InstanceNormalization(g, ones, zeros) b = Reshape(n, back)
          m = Mul(b, scale) y = Add(bias, m) }"""
    for second, expected in (("1", ["scale", "bias"]), ("2", ["ones", "zeros"])):
        graph = load_proto(parser.parse_model(text.replace("SECOND", second)))
        assert [value.name for value in learning(graph, "all", graph.outputs[0])] == expected


def test_weights_of_whole_numbers_are_not_known_where_they_are_moved() -> None:
    """As scale and bias of a GroupNorm that has learned nothing yet: behind Unsqueeze, the elements of the file were
    folded, and what was learned was not read."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 4] x) => (float[2, 2] y)
        <float[2, 4] w = {1, 1, 1, 1, 1, 1, 1, 1}, int64[1] two = {2}, int64[2] flat = {2, 4}>
        { u = Unsqueeze(w, two) s = Squeeze(u, two) r = Reshape(s, flat) t = Transpose <perm = [1, 0]> (r)
          y = MatMul(x, t) }""")
    net = mccompile.train(model, loss="mse:y", learn="all", optimizer="sgd,lr=0.5")
    x, target = np.arange(8, dtype=np.float32).reshape(2, 4) / 8, np.zeros((2, 2), np.float32)
    net.step(x, target)
    (weights,) = net.weights().values()
    np.testing.assert_allclose(net.run(x)["y"], x @ weights.T, rtol=1e-5)


def test_what_is_computed_of_constants_does_not_learn() -> None:
    text = """g (float[2, 3] x) => (float[2, 2] y) <float[3, 2] w1 = {1, 2, 3, 4, 5, 6}, float[2, 2] w2 = {1, 2, 3, 4}>
        { e = Exp(w1) h = MatMul(x, e) y = MatMul(h, w2) }"""
    graph = load_proto(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}'))
    assert [value.name for value in learning(graph, "all", graph.outputs[0])] == ["w2"]


DEQUANTIZED = """<ir_version: 10, opset_import: ["" : 18]> g (float[2, 2] x) => (float[2, 2] y)
    <int8[2, 2] q = {2, 4, 6, 8}, float s = {0.5}, float[2, 2] w = {1, 2, 3, 4}> {
    d = DequantizeLinear(q, s) h = MatMul(x, d) y = MatMul(h, w) }"""


@pytest.mark.parametrize("asked", ["all", "d,w"])
def test_weights_that_are_stored_as_integers_learn_as_floats(asked: str) -> None:
    """As converters from TFLite leave a network that was quantized after training."""
    graph = load_proto(parser.parse_model(DEQUANTIZED))
    first, second = learning(graph, asked, graph.outputs[0])
    assert (first.name, second.name) == ("d", "w")
    assert first.constant is not None and first.constant.array.tolist() == [[1, 2], [3, 4]]
    assert [node.op.name for node in graph.nodes] == ["MatMul", "MatMul"]


def test_integers_in_front_of_rounding_learn_where_all_do() -> None:
    """A quantized network with a layer of floats behind it, which may learn alone."""
    rounded = "h = MatMul(x, d) r = QuantizeLinear(h, s, z) e = DequantizeLinear(r, s, z)"
    text = DEQUANTIZED.replace("h = MatMul(x, d)", rounded).replace("MatMul(h, w)", "MatMul(e, w)")
    graph = load_proto(parser.parse_model(text.replace("float s", "int8 z = {0}, float s")))
    assert [value.name for value in learning(graph, "last:1", graph.outputs[0])] == ["w"]
    assert [value.name for value in learning(graph, "all", graph.outputs[0])] == ["d", "w"]


WRITTEN_OUT = {
    "LayerNorm before opset 17": """m = ReduceMean <axes = [-1]> (x) c = Sub(x, m) q = Pow(c, two)
        v = ReduceMean <axes = [-1]> (q) e = Add(v, eps) r = Sqrt(e) n = Div(c, r) s = Mul(n, scale) t = Add(s, b)""",
    "RMSNorm": """q = Mul(x, x) v = ReduceMean <axes = [-1]> (q) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r)
        n = Mul(x, i) s = Mul(scale, n) t = Identity(s)""",
    "its power": """q = Pow(x, two) v = ReduceMean <axes = [-1]> (q) e = Add(eps, v) i = Pow(e, half)
        n = Mul(i, x) s = Mul(n, scale) t = Identity(s)""",
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_scales_of_normalizations_that_are_written_out_learn(name: str) -> None:
    """As PyTorch exports LayerNorm for old opsets, and RMSNorm for all but the newest."""
    graph = load_proto(
        parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13]> g (float[2, 3] x) => (float[2, 2] y)
        <float[3] scale = {{1, 2, 3}}, float[3] b = {{3, 2, 1}}, float[3, 2] w = {{1, 2, 3, 4, 5, 6}},
         float two = {{2}}, float half = {{-0.5}}, float eps = {{0.00001}}>
        {{ {WRITTEN_OUT[name]} y = MatMul(t, w) }}""")
    )
    of = graph.outputs[0]
    found = [value.name for value in learning(graph, "all", of)]
    assert found == ["scale", *(["b"] if "Add(s, b)" in WRITTEN_OUT[name] else []), "w"]
    assert [value.name for value in learning(graph, "last:2", of)] == found


def test_a_product_behind_another_root_is_no_normalization() -> None:
    graph = load_proto(
        parser.parse_model("""<ir_version: 8, opset_import: ["" : 13]> g (float[2, 3] x) => (float[2, 2] y)
        <float[3] scale = {1, 2, 3}, float[3, 2] w = {1, 2, 3, 4, 5, 6}>
        { r = Sqrt(x) n = Div(x, r) s = Mul(n, scale) y = MatMul(s, w) }""")
    )
    assert [value.name for value in learning(graph, "all", graph.outputs[0])] == ["w"]


def test_weights_of_einsum_learn() -> None:
    graph = load_proto(
        parser.parse_model("""<ir_version: 8, opset_import: ["" : 13]> g (float[2, 3] x) => (float[2, 2] y)
        <float[2, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}>
        { y = Einsum <equation = "bi,oij,bj->bo"> (x, w, x) }""")
    )
    assert [value.name for value in learning(graph, "all", graph.outputs[0])] == ["w"]


@pytest.mark.parametrize(
    ("as_node", "scale", "learned"), [(True, 1, []), (True, 2, ["s", "b"]), (False, 1, ["s", "b"])]
)
def test_ones_and_zeros_that_an_exporter_filled_in_do_not_learn(as_node: bool, scale: int, learned: list[str]) -> None:
    """As PyTorch exports InstanceNorm2d without affine: the operator demands scale and bias."""
    held = f"float[2] s = {{{scale}, {scale}}}, float[2] b = {{0, {scale - 1}}}"
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13]> g (float[1, 2, 3] x) => (float[1, 2, 2] y)
        <{held}, float[3, 2] w = {{1, 2, 3, 4, 5, 6}}>
        {{ n = InstanceNormalization(x, s, b) y = MatMul(n, w) }}""")
    if as_node:
        for tensor in [tensor for tensor in model.graph.initializer if tensor.name != "w"]:
            model.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
            model.graph.initializer.remove(tensor)
    graph = load_proto(model)
    assert [value.name for value in learning(graph, "all", graph.outputs[0])] == [*learned, "w"]


def test_ones_that_are_no_parameters_of_pytorch_do_not_learn() -> None:
    """With dynamo=True, it says what its module holds."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (float[1, 2, 3] x) => (float[1, 2, 2] y)
        <float[2] val_1 = {1, 1}, float[2] val_2 = {0, 0}, float[2] own = {1, 1}, float[3, 2] w = {1, 2, 3, 4, 5, 6}>
        { n = InstanceNormalization(x, val_1, val_2) m = InstanceNormalization(n, own, val_2) y = MatMul(m, w) }""")
    for name in ("own", "w"):
        info = model.graph.value_info.add(name=name)
        info.metadata_props.add(key="pkg.torch.export.graph_signature.InputSpec.kind", value="PARAMETER")
    graph = load_proto(model)
    assert [value.name for value in learning(graph, "all", graph.outputs[0])] == ["own", "w"]


@pytest.mark.parametrize(("state", "told"), [("0, 0, 0", False), ("0, 1, 0", True)])
def test_states_that_an_exporter_begins_with_zeros_are_not_told(state: str, told: bool) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 1, 3] x)
        => (float[2, 1, 1, 3] y)
        <float[1, 3, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[1, 3, 3] r = {{9, 8, 7, 6, 5, 4, 3, 2, 1}},
         float[1, 6] b = {{1, 2, 3, 4, 5, 6}}, int64[3] shape = {{1, 1, 3}}>
        {{ zeros = Constant <value = float[1, 1, 3] {{{state}}}> ()
           h = Expand(zeros, shape)  y = RNN <hidden_size = 3> (x, w, r, b, , h) }}""")
    graph = load_proto(model)
    of = graph.outputs[0]
    assert bool(left_out(graph, "all", of, learning(graph, "all", of))) == told


@pytest.mark.parametrize(("batch_norm", "more"), [(False, []), (True, ["g", "g2"])])
def test_parameters_in_no_layer_learn_where_the_file_says_what_they_are(batch_norm: bool, more: list[str]) -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (float[2, 3] y)
        <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] places = {9, 8, 7}, float one = {0.5},
         float[3] g = {1, 2, 1}, float[3] g2 = {2, 1, 3}, float[3] mean = {1, 1, 2}, float[3] table = {1, 2, 3},
         float[3] unread = {1, 2, 3}>
        { a = Add(x, places) b = Mul(a, table) n = BatchNormalization(b, g, g2, mean, mean) m = MatMul(n, w)
          y = Mul(m, one) z = Add(m, unread) }""")
    for name, kind in (
        ("table", "BUFFER"),
        *((name, "PARAMETER") for name in ("w", "places", "one", "g", "g2", "unread")),
    ):
        info = model.graph.value_info.add(name=name)
        info.metadata_props.add(key="pkg.torch.export.graph_signature.InputSpec.kind", value=kind)
    graph = load_proto(model)
    of = graph.outputs[0]
    found = learning(graph, "all", of, batch_norm)
    assert {value.name for value in found} == {"w", "places", "one", *more}
    (text,) = left_out(graph, "all", of, found)
    assert text.startswith("no layer has table,")
    assert [value.name for value in learning(graph, "last:1", of)] == ["w"]
