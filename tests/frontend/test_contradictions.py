"""What a file declares of its values, where that is not what its nodes make, and where it is us who are wrong."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

from mccompile.base.errors import BadFile, InternalError
from mccompile.base.tensor import TensorType
from mccompile.frontend import contradictions
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Fact, Site
from mccompile.ops.api import resolve

HEAD = '<ir_version: 8, opset_import: ["": 17]> g '
PLACES = {
    "an output": "(float[3] x) => ({0} y) {{ y = Abs(x) }}",
    "an inner value": "(float[3] x) => (z) <{0} y> {{ y = Abs(x) z = Neg(y) }}",
    "an output of a branch": "(float[3] x, bool c) => (z)"
    "{{ z = If(c) <then_branch = t () => ({0} y) {{ y = Abs(x) }}, else_branch = e () => (w) {{ w = Abs(x) }}> }}",
    "an inner value of a loop": "(float[3] x) => (z, seen) <int64 n = {{4}}, bool c = {{1}}>"
    "{{ z, seen = Loop(n, c, x) <body = b (int64 i, bool c_in, float[3] v) => (c_out, w, s) <{0} y>"
    " {{ c_out = Identity(c_in) y = Abs(v) s = Neg(y) w = Neg(v) }}> }}",
    "what a scan collects": "(float[5,3] x) => (z)"
    "{{ z = Scan<num_scan_inputs = 1, body = b (float[3] v) => ({0} y) {{ y = Abs(v) }}>(x) }}",
}


def model(place: str, declared: str) -> ModelProto:
    return parser.parse_model(HEAD + PLACES[place].format(declared))


@pytest.fixture
def wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Abs adds an axis."""

    def infer(self: object, site: Site) -> list[Fact]:
        type = site.type(0)
        return [Fact(TensorType(type.dtype, (*type.shape, 1)))]

    monkeypatch.setattr(resolve("", "Abs"), "infer", infer)
    monkeypatch.setattr(contradictions, "ALWAYS", False)


@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_element_type_is_refused_with_the_name(place: str) -> None:
    with pytest.raises(BadFile, match=r"(?s)'y'.* is declared as f16(\[3\])?, but its node makes f32\[3\]"):
        load_proto(model(place, "float16[3]"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("declared", ["float[3]", "float[]", "float[4]", "float[n]", "float[2,2]"])
def test_wrong_sizes_are_but_a_comment(place: str, declared: str) -> None:
    load_proto(model(place, declared))


@pytest.mark.usefixtures("wrong_rule")
@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_type_rule_is_found(place: str) -> None:
    with pytest.raises(InternalError, match=r"'y' .* is f32\[3,1\], ONNX says f32\[3\]"):
        load_proto(model(place, "float[3]"))


@pytest.mark.usefixtures("wrong_rule")
@pytest.mark.parametrize("place", PLACES)
def test_tests_find_a_wrong_type_rule_without_a_declaration(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradictions, "ALWAYS", True)
    with pytest.raises(InternalError, match=r"ONNX says f32\[3\]"):
        load_proto(model(place, ""))


@pytest.mark.parametrize("opset", [12, 21])
def test_a_window_behind_the_input_that_onnx_counts_is_none(opset: int) -> None:
    """Exporters declare what the inference of that opset says."""
    head = f'<ir_version: 10, opset_import: ["" : {opset}]> g (float[1,1,3] x) => (float[1,1,2] y)'
    made = parser.parse_model(head + "{ y = MaxPool <ceil_mode = 1, kernel_shape = [1], strides = [3]> (x) }")
    assert load_proto(made).outputs[0].type.shape == (1, 1, 1)


def test_output_padding_moves_the_padding_of_a_size_that_is_given() -> None:
    """ONNX's inference adds it to the size, and so do files; its text and onnxruntime do not."""
    head = '<ir_version: 10, opset_import: ["" : 11]> g (float[1,1,6,6] x, float[1,1,3,3] w) => (float[1,1,13,13] y)'
    made = parser.parse_model(
        head + '{ y = ConvTranspose <auto_pad = "SAME_UPPER", output_padding = [1, 1], strides = [2, 2]> (x, w) }'
    )
    assert load_proto(made).outputs[0].type.shape == (1, 1, 12, 12)


def test_what_ends_the_inference_of_onnx_has_no_second_opinion() -> None:
    head = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 5]> g '
    nodes = "{ y = ai.onnx.ml.Imputer <imputed_value_floats: floats = [2, 1, 3]> (x) z = EyeLike <dtype = 7> (y) }"
    load_proto(parser.parse_model(f"{head}(float[2,3] x) => (int64[5,5] z) {nodes}"))
