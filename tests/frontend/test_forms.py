"""Nodes that are not as the schema of their operator wants them: refused with what is wrong, whoever defines it."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto, helper, parser

import mccompile.frontend.onnxruntime_forms as forms
from mccompile.base.errors import STRICT, BadFile, UnsupportedModel
from mccompile.frontend.load import load_proto
from mccompile.ops.api import resolve
from tests.frontend.onnxruntime_forms import written

HEAD = '<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]> g '
ATTENTION = "(float[1,2,4] x, float[4,12] w) => (y) { y = com.microsoft.Attention<%s>(x, w) }"
GROUPED = (
    "(float[1,1,12] q, float[1,1,4,4] k, float[1,1,4,4] v) => (y) <int32[1] s = {1}, int32[1] t = {2}>"
    "{ y = com.microsoft.GroupQueryAttention<%s>(q, , , k, v, s, t) }"
)
WRONG = {
    "two heads of no size": (ATTENTION % "num_heads = 2, qkv_hidden_sizes = [1, 1, 10]", "do not divide"),
    "two of three widths": (ATTENTION % "num_heads = 2, qkv_hidden_sizes = [1, 3]", "qkv_hidden_sizes"),
    "heads that do not divide": (ATTENTION % "num_heads = 3", "a multiple of 9"),
    "fewer heads than none": (ATTENTION % "num_heads = -1", "num_heads is -1, it must be 0 or more"),
    "heads that are text": (ATTENTION % 'num_heads = "two"', "of type STRING, it must be INT"),
    "no number of heads": (ATTENTION % "scale = 1.0", "'num_heads' is missing"),
    "an attribute of another operator": (
        ATTENTION % "num_heads = 2, alpha = 1.0",
        "attribute alpha of",
    ),
    "a rotation without angles": (GROUPED % "num_heads = 1, kv_num_heads = 1, do_rotary = 1", "cos_cache"),
    "too few operands": (
        "(float[1,1,12] q) => (y) { y = com.microsoft.GroupQueryAttention<num_heads = 1, kv_num_heads = 1>(q) }",
        "it has 1 operands",
    ),
    "an operand that has to be there": (
        "(float[2,4] x, float[4] g) => (y) { y = com.microsoft.SkipLayerNormalization(x, , g) }",
        "operand 1 is missing",
    ),
    "one name for two results": ("(float[2,4] x) => (y) { y, y = Split<axis = 1, num_outputs = 2>(x) }", "'y' twice"),
    "a switch of 2": ("(float[2,4] x) => (y) { y = ArgMax<keepdims = 2>(x) }", "keepdims is 2, it must be 0 or 1"),
    "padding of no known kind": (
        '(float[1,1,4,4] x) => (y) { y = MaxPool<kernel_shape = [2, 2], auto_pad = "SAME">(x) }',
        "auto_pad 'SAME' is not one of",
    ),
    "one name for two inputs of a body": (
        "(float[3,2] x) => (y) { y = Scan<num_scan_inputs = 1, body = b (float[2] v, float[2] v) => (float[2] s)"
        " { s = Neg(v) }>(x) }",
        "one name for two inputs",
    ),
    "a scalar that is normalized": (
        "() => (y) <float c = {2.0}> { y = LpNormalization<axis = 0>(c) }",
        "no axis to normalize",
    ),
    "sizes of fewer parts than there are": (
        "(float[4,2] x, int64[1] s) => (float[2,2] y, float[2,2] z) { y, z = Split<axis = 0>(x, s) }",
        "are not 2 parts",
    ),
    "directions of nothing": (
        "(float[3,2] x) => (y) { y = Scan<num_scan_inputs = 1, scan_input_directions = [0, 1], "
        "body = b (float[2] v) => (float[2] s) { s = Neg(v) }>(x) }",
        "2 directions for 1",
    ),
    "a type that holds for another order of nodes": (
        "(float[1,2,1,3] x) => (float[2,3] y) { y = Squeeze(x, axes) axes = Constant<value = int64[1] {-2}>() }",
        r"declared as f32\[2,3\], and f32\[1,2,3\]",
    ),
}


def model(text: str) -> ModelProto:
    return parser.parse_model(HEAD + text)


@pytest.mark.parametrize("name", WRONG)
def test_what_the_schema_does_not_allow_is_refused(name: str) -> None:
    text, why = WRONG[name]
    with pytest.raises((BadFile, UnsupportedModel), match=why):
        load_proto(model(text))


def test_what_no_rule_foresaw_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests and the fuzzers see the traceback, users a refusal that says where."""
    monkeypatch.delenv(STRICT)
    monkeypatch.setattr(resolve("", "Abs"), "infer", lambda self, site: [()[0]])
    with pytest.raises(BadFile, match=r'(?s)node "y" \(Abs.*do not fit together: IndexError: tuple index'):
        load_proto(model("(float[2] x) => (y) { y = Abs(x) }"))


def test_a_size_below_zero_is_refused() -> None:
    with pytest.raises(BadFile, match="has a negative size"):
        load_proto(model("() => (y) <int64 n = {-3}> { y = HannWindow(n) }"))


def test_an_attribute_that_is_there_twice_is_refused() -> None:
    made = model("(float[2,4] x) => (y) { y = ArgMax<axis = 1>(x) }")
    made.graph.node[0].attribute.append(helper.make_attribute("axis", 0))
    with pytest.raises(BadFile, match="'axis' is there twice"):
        load_proto(made)


def test_sizes_that_heads_ask_for_are_proposed() -> None:
    text = "(float[b,t,h] x, float[h,wide] w) => (y) { y = com.microsoft.Attention<num_heads = 12>(x, w) }"
    with pytest.raises(UnsupportedModel, match="--dim wide=36"):
        load_proto(model(text))


@pytest.mark.parametrize("grown", ["Concat<axis = 0>(v, one)", "Concat<axis = 0>(one, v)"])
def test_what_each_trip_collects_of_another_size_is_refused(grown: str) -> None:
    text = (
        "(int64[1] x, int64 n) => (y, z) <bool c = {1}> { y, z = Loop(n, c, x) <body = b (int64 i, bool d, int64[k] v)"
        " => (d2, w, s) { d2 = Identity(d) one = Constant<value = int64[1] {7}>() w = %s s = Identity(w) }> }"
    )
    with pytest.raises(UnsupportedModel, match="change from trip to trip"):
        load_proto(model(text % grown), bounds={"n": (4,)})


def test_the_schemas_are_those_of_the_installed_onnxruntime() -> None:
    """Attributes that a newer one adds are found here; run the script then."""
    onnxruntime = pytest.importorskip("onnxruntime")
    text = Path(forms.FILE).read_text(encoding="utf-8")
    if f"onnxruntime {onnxruntime.__version__} " not in text.splitlines()[0]:
        pytest.skip("they are those of another version")
    assert text == written()


def test_attributes_of_constant_are_known_at_any_opset() -> None:
    """Exporters write them before opset 12, and onnxruntime takes them."""
    text = "g (float[3] x) => (float[3] y) { c = Constant<value_int=2>() f = Cast<to=1>(c) y = Mul(x, f) }"
    made = load_proto(parser.parse_model(f'<ir_version: 6, opset_import: ["": 11]> {text}'))
    assert [node.op.name for node in made.nodes][-1:] == ["Mul"]
