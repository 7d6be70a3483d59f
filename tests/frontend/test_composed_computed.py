"""Forms of onnxruntime's operators that only onnxruntime ran: results that are rarely asked for, weights that a run
computes, attributes that mean nothing beside others."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import defs, parser

from mccompile import backend

HEAD = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> g '
CHANCE = np.random.default_rng(7)


def f(*shape: int) -> np.ndarray:
    return CHANCE.uniform(-1, 1, shape).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return CHANCE.integers(0, 256, shape).astype(np.uint8)


def agrees(text: str, *ins: np.ndarray, within: float = 1e-5) -> None:
    model = parser.parse_model(HEAD + text)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wants = session.run(None, {entry.name: x for entry, x in zip(model.graph.input, ins, strict=True)})
    gots = backend.prepare(model, flags=("-O0",)).run(list(ins))
    for got, want in zip(gots, wants, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=within, atol=within)


@pytest.mark.parametrize(("type", "within"), [("float", 1e-5), ("float16", 2e-3)])
@pytest.mark.parametrize("results", ["y, m", "y, m, v", "y, , v"])
@pytest.mark.parametrize("name", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_means_and_deviations_are_f32(name: str, results: str, type: str, within: float) -> None:
    given = ", ".join(f"float[2,3,1] {n}" for n in results.replace("y", "").replace(",", " ").split())
    text = f"({type}[2,3,8] x, {type}[2,3,8] s, {type}[8] g) => ({type}[2,3,8] y, {given})"
    dtype = np.float16 if type == "float16" else np.float32
    operands = [f(2, 3, 8).astype(dtype), f(2, 3, 8).astype(dtype), f(8).astype(dtype)]
    agrees(f"{text} {{ {results} = com.microsoft.{name}<epsilon = 0.001>(x, s, g) }}", *operands, within=within)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["", "packed"])
def test_packed_weights_that_a_run_computes(bits: int, zeros: str) -> None:
    if bits == 2 and defs.onnx_opset_version() < 25:
        pytest.skip("this onnx has no integers of 2 bits")
    more = f", uint8[5,{max(1, 2 * bits // 8)}] z" if zeros else ""
    text = (
        f"(float[3,40] x, uint8[5,2,{4 * bits}] w, float[5,2] s{more}) => (float[3,5] y) {{ y = com.microsoft."
        f"MatMulNBits<K = 40, N = 5, bits = {bits}, block_size = 32>(x, w, s{', z' if zeros else ''}) }}"
    )
    points = [u8(5, max(1, 2 * bits // 8))] if zeros else []
    agrees(text, f(3, 40), u8(5, 2, 4 * bits), f(5, 2), *points, within=1e-3)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("known", ["", "w", "g"])
def test_an_order_of_blocks_that_a_run_computes(known: str, zeros: bool) -> None:
    """`known`: what of weights and order is a constant."""
    operands = {
        "x": f(3, 40),
        "w": u8(5, 2, 16),
        "s": f(5, 2),
        "z": f(5, 2),
        "g": np.array([0, 1, 0, 0, 0] * 8, np.int32),
    }
    types = {"x": "float[3,40]", "w": "uint8[5,2,16]", "s": "float[5,2]", "z": "float[5,2]", "g": "int32[40]"}
    inputs = ", ".join(f"{types[name]} {name}" for name in operands if name != known and (zeros or name != "z"))
    held = f"<{types[known]} {known} = {{{','.join(map(str, operands[known].reshape(-1)))}}}>" if known else ""
    node = f"com.microsoft.MatMulNBits<K = 40, N = 5, bits = 4, block_size = 32>(x, w, s, {'z' if zeros else ''}, g)"
    given = [array for name, array in operands.items() if name != known and (zeros or name != "z")]
    agrees(f"({inputs}) => (float[3,5] y) {held} {{ y = {node} }}", *given, within=1e-3)


def test_how_much_is_rotated_means_nothing_where_nothing_is() -> None:
    text = "(float[1,3,128] x, float[128,384] w) => (y) { y = com.microsoft.Attention<num_heads = 2%s>(x, w) }"
    agrees(text % ", rotary_embedding_dim = 32, do_rotary = 0", f(1, 3, 128), f(128, 384), within=1e-4)


@pytest.mark.parametrize("value", [0.0, 3.0])
@pytest.mark.parametrize("known", [False, True])
def test_places_in_a_scalar(value: float, known: bool) -> None:
    text = "(float[] x) => (y) { y = NonZero(x) }"
    if known:
        agrees(f"(int64[1] x) => (y, x2) <float c = {{{value}}}> {{ y = NonZero(c) x2 = Neg(x) }}", np.array([1]))
    else:
        agrees(text, np.array(value, np.float32))


@pytest.mark.parametrize("how", ["strides = [2, 2]", "strides = [2, 2], output_padding = [1, 1]", "dilations = [2, 1]"])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [2, 1, 0, 1]])
def test_pads_of_a_transposed_convolution_that_a_run_computes(how: str, pads: list[int]) -> None:
    text = "(float[1,2,4,4] x, float[2,3,3,3] w, int64[4] p) => (float[n,m,k,l] y)"
    node = f"com.microsoft.ConvTransposeWithDynamicPads<{how}>(x, w, p)"
    agrees(f"{text} {{ y = {node} }}", f(1, 2, 4, 4), f(2, 3, 3, 3), np.array(pads))


@pytest.mark.parametrize("width", [4, 16])
def test_keys_of_another_width_than_values_are_kept(width: int) -> None:
    """onnxruntime leaves unset what keys do not fill."""
    text = f"(float[2,3,8] x, float[8,{16 + width}] w, float[{16 + width}] b) => (float[2,3,n] y, float[k,l,m,o,q] p)"
    made = parser.parse_model(
        f"{HEAD} {text} {{ y, p = com.microsoft.Attention<num_heads=2, qkv_hidden_sizes=[8,8,{width}]>(x, w, b) }}"
    )
    ins = [f(2, 3, 8), f(8, 16 + width), f(16 + width)]
    y, p = onnxruntime.InferenceSession(made.SerializeToString()).run(None, dict(zip("xwb", ins, strict=True)))
    got, kept = backend.prepare(made).run(ins)
    np.testing.assert_allclose(got, y, rtol=1e-5, atol=1e-5)
    assert kept.shape == p.shape
    count = min(48, p[0].size)
    np.testing.assert_allclose(kept[0].reshape(-1)[:count], p[0].reshape(-1)[:count], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kept[1], p[1], rtol=1e-5, atol=1e-5)


def test_attributes_that_onnxruntime_does_not_heed() -> None:
    text = "(uint8[1,4,16] x, int8[16,48] w, float[48] b, float xs, float ws, uint8 xz, int8 wz) => (float[1,4,16] y)"
    scales = [np.array(0.02, np.float32)] * 2
    zeros = [np.array(120, np.uint8), np.array(0, np.int8)]
    node = "com.microsoft.QAttention<num_heads=2, do_rotary=1>(x, w, b, xs, ws, , xz, wz)"
    w = (u8(16, 48) // 2 - 64).astype(np.int8)  # without VNNI, onnxruntime saturates sums of two larger products
    agrees(f"{text} {{ y = {node} }}", u8(1, 4, 16), w, f(48), *scales, *zeros)
    text = "(float[6,8] x, float[6,4] r, float[4,16,8] w, float[4,8,16] v) => (float[6,8] y)"
    node = 'com.microsoft.MoE<k=2, use_sparse_mixer=1, activation_type="relu">(x, r, w, , v)'
    agrees(f"{text} {{ y = {node} }}", f(6, 8), f(6, 4), f(4, 16, 8), f(4, 8, 16))


def test_words_of_more_axes_are_the_first_elements() -> None:
    text = "(int32[2,3,5] s, float[3,1,2,4] w, float[3] b, float[6,4] e) => (float[n,m] y)"
    words = CHANCE.integers(1, 6, (2, 3, 5)).astype(np.int32)
    agrees(f"{text} {{ y = com.microsoft.WordConvEmbedding(s, w, b, e) }}", words, f(3, 1, 2, 4), f(3), f(6, 4))
