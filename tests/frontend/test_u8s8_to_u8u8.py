"""Models whose products of uint8 and int8 are those of uint8 and uint8: the standard's products, on every processor."""

import numpy as np
import onnx.parser
import onnx.printer
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from mccompile.frontend.u8s8_to_u8u8 import u8s8_to_u8u8

HEAD = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>\n'
FEED = {"x": np.arange(200, 224, dtype=np.uint8).reshape(2, 12), "w": np.full((12, 3), -128, np.int8)}
PRODUCT = "g (uint8[2,12] x, int8[12,3] w) => (int32[2,3] y) { y = MatMulInteger (x, w) }"
ZEROS = """g (uint8[2,12] x, int8[12,3] w) => (int32[2,3] y) <uint8 a = {9}, int8[3] b = {-128, 0, 127}>
    { y = MatMulInteger (x, w, a, b) }"""
QUANTIZED = """g (uint8[2,12] x, int8[12,3] w) => (uint8[2,3] y)
    <float s = {1.0}, float t = {2000.0}, uint8 a = {7}, int8 b = {5}, uint8 c = {250}>
    { y = QLinearMatMul (x, s, a, w, s, b, t, c) }"""
COMPUTED = """g (uint8[2,12] x, int8[12,3] w) => (int32[2,3] y) <float s = {1.0}, int8 z = {0}, float[2] u = {3.0, 4.0}>
    { d = DequantizeLinear (x, s) e, f, h = DynamicQuantizeLinear (d) i = Identity (e)
      q = DequantizeLinear (w, s) r = QuantizeLinear (q, s, z) t = Relu (r) y = MatMulInteger (i, t) }"""
INSIDE = """g (uint8[2,12] x, int8[12,3] w) => (int32[2,3] y) <bool c = {1}>
    { y = If (c) <then_branch = a () => (int32[2,3] p) { p = MatMulInteger (x, w) },
                  else_branch = b () => (int32[2,3] q) { q = MatMulInteger (x, w) }> }"""


def made(text: str) -> ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def evaluated(model: ModelProto) -> np.ndarray:
    return np.asarray(ReferenceEvaluator(model).run(None, FEED)[0])


@pytest.mark.parametrize("text", [PRODUCT, ZEROS, QUANTIZED, COMPUTED, INSIDE])
def test_products_stay(text: str) -> None:
    model = made(text)
    exact = u8s8_to_u8u8(model)
    assert "unsaturated" in onnx.printer.to_text(exact)
    np.testing.assert_array_equal(evaluated(exact), evaluated(model))


@pytest.mark.parametrize(
    "text",
    [
        "g (int8[2,12] x, int8[12,3] w) => (int32[2,3] y) { y = MatMulInteger (x, w) }",
        "g (uint8[2,12] x, uint8[12,3] w) => (int32[2,3] y) { y = MatMulInteger (x, w) }",
        "g (float[2,12] x, float[12,3] w) => (float[2,3] y) { y = MatMul (x, w) }",
    ],
)
def test_others_stay_as_they_are(text: str) -> None:
    model = made(text)
    assert u8s8_to_u8u8(model) == model


def test_operators_that_quantize_themselves() -> None:
    model = made(
        "g (float[2,12] x, int8[12,3] w) => (float[2,3] y) <float s = {1.0}>"
        "{ y = com.microsoft.DynamicQuantizeMatMul (x, w, s) }"
    )
    model = u8s8_to_u8u8(model)
    assert model.graph.node[-1].input[1] == "y_unsaturated_1"
    assert model.graph.node[-1].input[3] == "y_unsaturated_1_zero"


def test_onnxruntime_gives_the_exact_product() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = u8s8_to_u8u8(made(PRODUCT))
    (got,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, FEED)
    np.testing.assert_array_equal(got, FEED["x"].astype(int) @ FEED["w"].astype(int))
