"""Operators that are decomposed into others, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, ValueInfoProto, defs, helper, numpy_helper, parser

import mccompile
from mccompile import backend
from mccompile.base.errors import MccError
from mccompile.frontend.u8s8_to_u8u8 import u8s8_to_u8u8

CONTRIB = "com.microsoft"
CHANCE = np.random.default_rng(3)


def f(*shape: int) -> np.ndarray:
    return CHANCE.uniform(-1, 1, shape).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return CHANCE.integers(0, 256, shape).astype(np.uint8)


def i8(*shape: int) -> np.ndarray:
    return CHANCE.integers(-128, 128, shape).astype(np.int8)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def scale(*values: float) -> np.ndarray:
    return np.array(values if len(values) > 1 else values[0], np.float32)


def zero(value: int, dtype: type = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


def model_of(op: str, ins: Sequence[np.ndarray | None], domain: str, outs: str, attributes: dict[str, Any]) -> Any:
    """The first operand is an input, the others are constants."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(ins)]
    node = helper.make_node(op, names, outs.split(","), domain=domain, **attributes)
    x = ins[0]
    assert x is not None
    inputs = [helper.make_tensor_value_info("x0", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    constants = [numpy_helper.from_array(a, n) for a, n in zip(ins[1:], names[1:], strict=True) if a is not None]
    outputs = [ValueInfoProto(name=name) for name in outs.split(",") if name]
    graph = helper.make_graph([node], "composed", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def agrees(
    op: str, *ins: np.ndarray | None, domain: str = CONTRIB, outs: str = "y", off: int = 0, **attributes: Any
) -> None:
    """`off`: by how much integers may differ."""
    model = model_of(op, ins, domain, outs, attributes)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1  # some operators give every thread scales of its own
    session = onnxruntime.InferenceSession(u8s8_to_u8u8(model).SerializeToString(), options)
    wants = session.run(None, {"x0": ins[0]})
    gots = backend.run_model(model, {"x0": ins[0]})
    for got, want in zip(gots, wants, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "iu":
            assert np.abs(got.astype(int) - want.astype(int)).max() <= off
        else:
            rtol, atol = (2e-3, 2e-3) if want.dtype == np.float16 else (1e-4, 1e-5)
            np.testing.assert_allclose(got, want, rtol, atol)


ONE = (scale(0.02), zero(120))  # scale and zero point


@pytest.mark.parametrize("bias", [False, True])
def test_qlinear_conv_with_a_scale_for_each_channel(bias: bool) -> None:
    w = (i8(4, 1, 3, 3), scale(0.01, 0.02, 0.03, 0.04), np.zeros(4, np.int8))
    more = (i32(100, -200, 300, 0),) if bias else ()
    agrees("QLinearConv", u8(1, 2, 6, 6), *ONE, *w, scale(0.1), zero(9), *more, domain="", group=2, pads=[1, 1, 1, 1])


@pytest.mark.parametrize("computed", [False, True])
def test_qlinear_conv_over_channels_last(computed: bool) -> None:
    scales = scale(0.01, 0.02, 0.03, 0.04) if computed else scale(0.01)  # not as many as zero points: sums are scaled
    w = (i8(4, 3, 3, 3), scales, zero(0, np.int8))
    ins = (u8(1, 6, 5, 3), *ONE, *w, scale(0.1), zero(9), i32(100, -200, 300, 0))
    agrees("QLinearConv", *ins, off=1, channels_last=1, strides=[2, 1], pads=[1, 0, 1, 0])


def test_group_normalization_with_a_scale_for_each_group() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2, 6, 3, 4] x) => (float[2, 6, 3, 4] y) <float[3] s = {1, 2, -1}, float[3] b = {0, 0.5, 1}>
    { y = GroupNormalization <num_groups = 3> (x, s, b) }"""
    model, x = parser.parse_model(text), f(2, 6, 3, 4)
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(backend.run_model(model, {"x": x})[0], want, 1e-4, 1e-5)


def test_qlinear_matmul_with_a_scale_for_each_column() -> None:
    b = (i8(5, 3), scale(0.01, 0.02, 0.03), np.zeros(3, np.int8))
    agrees("QLinearMatMul", u8(2, 4, 5), *ONE, *b, scale(0.05), zero(100), domain="")


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantized_sums_and_products(op: str) -> None:
    agrees(op, u8(2, 3, 4), *ONE, u8(4), scale(0.03), zero(7), scale(0.05), zero(99), off=1)


def test_quantized_activations() -> None:
    agrees("QLinearSigmoid", u8(5, 7), *ONE, scale(1 / 256), zero(0), off=1)
    agrees(
        "QLinearLeakyRelu", i8(5, 7), scale(0.02), zero(3, np.int8), scale(0.03), zero(-5, np.int8), off=1, alpha=0.1
    )
    agrees("QLinearLeakyRelu", i8(5, 7), scale(0.02), None, scale(0.03), None, off=1)  # of int8 without zero points
    agrees("QLinearSoftmax", u8(3, 9), *ONE, scale(1 / 256), zero(0), off=1, axis=-1, opset=13)
    agrees("QLinearSoftmax", u8(3, 2, 5), *ONE, scale(1 / 256), zero(0), off=1, axis=1, opset=11)


@pytest.mark.parametrize("last", [0, 1])
def test_quantized_pools(last: int) -> None:
    shape = (1, 6, 6, 3) if last else (1, 3, 6, 6)
    more: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "channels_last": last}
    agrees("QLinearAveragePool", u8(*shape), *ONE, scale(0.02), zero(110), off=1, **more)
    agrees("QLinearGlobalAveragePool", u8(*shape), *ONE, scale(0.02), zero(110), off=1, channels_last=last)


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1]])
@pytest.mark.parametrize("last", [0, 1])
def test_what_windows_of_quantized_pools_hang_over_counts_as_padding(last: int, pads: list[int]) -> None:
    shape = (1, 6, 7, 3) if last else (1, 3, 6, 7)
    more: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": pads, "channels_last": last}
    more |= {"ceil_mode": 1, "count_include_pad": 1}
    agrees("QLinearAveragePool", u8(*shape), *ONE, scale(0.02), zero(110), off=1, **more)


def test_quantized_parts_are_joined() -> None:
    model = helper.make_node("QLinearConcat", ["s", "z", "x0", "a", "b", "x1", "c", "d"], ["y"], domain=CONTRIB, axis=1)
    arrays = {"s": scale(0.03), "z": zero(100), "a": scale(0.02), "b": zero(120), "c": scale(0.05), "d": zero(9)}
    inputs = [helper.make_tensor_value_info(name, 2, (2, 3)) for name in ("x0", "x1")]
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph([model], "joined", inputs, [helper.make_tensor_value_info("y", 2, (2, 6))], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    feed = {"x0": u8(2, 3), "x1": u8(2, 3)}
    want = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feed)[0]
    assert np.abs(backend.run_model(made, feed)[0].astype(int) - want.astype(int)).max() <= 1


@pytest.mark.parametrize("trans", [0, 1])
def test_qgemm_to_integers_and_to_floats(trans: int) -> None:
    b = (i8(*((3, 5) if trans else (5, 3))), scale(0.01, 0.02, 0.03), np.zeros(3, np.int8))
    a = (u8(4, 5), *ONE)
    agrees("QGemm", *a, *b, i32(10, 20, -30), scale(0.05), zero(100), transB=trans)
    agrees("QGemm", *a, *b, None, transB=trans, alpha=0.5)


def test_fused_operators() -> None:
    for activation, params in (("Relu", []), ("LeakyRelu", [0.2]), ("Clip", [-0.1, 0.3]), ("HardSigmoid", [0.2, 0.5])):
        more: dict[str, Any] = {"activation": activation, "pads": [1, 1, 1, 1]}
        more |= {"activation_params": params} if params else {}
        agrees("FusedConv", f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), **more)
    agrees("FusedConv", f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), activation="HardSwish")
    agrees("FusedMatMul", f(2, 5, 4), f(2, 3, 5), transA=1, transB=1, alpha=0.25)
    agrees("FusedGemm", f(4, 5), f(3, 5), f(3), transB=1, activation="Relu")


@pytest.mark.parametrize("name", ["Elu", "HardSigmoid", "LeakyRelu", "ParametricSoftplus", "ScaledTanh", "Selu",
                                  "Softsign", "ThresholdedRelu"])  # fmt: skip
def test_parameters_of_the_activation_behind_a_product(name: str) -> None:
    parameters = {"activation_alpha": 0.3, "activation_beta": 0.4, "activation_gamma": 1.05}
    agrees("FusedGemm", f(4, 5), f(5, 3), f(3), activation=name, **parameters)


def test_gelus() -> None:
    agrees("Gelu", f(3, 8) * 4)
    agrees("BiasGelu", f(3, 8), f(8))
    agrees("FastGelu", f(3, 8) * 4, f(8))
    agrees("QuickGelu", f(3, 8) * 4, alpha=1.5)
    agrees("QuickGelu", f(3, 8).astype(np.float64) * 4)


def test_normalizations_of_sums() -> None:
    agrees("SkipLayerNormalization", f(1, 4, 8), f(1, 4, 8), f(8), f(8), f(8), outs="y,,,s", epsilon=1e-5)
    agrees("SkipSimplifiedLayerNormalization", f(1, 4, 8), f(1, 4, 8), f(8), epsilon=1e-5)


def test_normalizations_in_the_domain_of_onnx() -> None:
    agrees("SimplifiedLayerNormalization", f(2, 4, 8), f(8), domain="", epsilon=1e-3, axis=-1)


def test_layer_normalization_before_it_came_to_onnx() -> None:
    x, weights = f(2, 4, 8), (f(8), f(8))
    model = model_of("LayerNormalization", [x, *weights], "", "y,mean,inverse", {"axis": -1, "epsilon": 1e-3})
    model.opset_import[0].version = 13
    wants = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x0": x})
    for got, want in zip(backend.run_model(model, {"x0": x}), wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_choices_of_quantized_elements() -> None:
    condition = np.array([True, False, True, False])
    agrees("QLinearWhere", condition, u8(3, 4), *ONE, u8(4), scale(0.03), zero(7), scale(0.05), zero(99), off=1)


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("turned", [0, 1])
def test_products_of_turned_operands(batch: int, turned: int) -> None:
    a, b = {0: (2, 5, 3, 4), 1: (2, 5, 4, 3)}[turned], (2, 5, 4, 6)
    if batch:
        a = (*{0: (3, 2, 5), 1: (4, 2, 5)}[turned], a[-1])
    agrees("FusedMatMul", f(*a), f(*b), transA=turned, transBatchA=batch, alpha=0.5)


def test_embeddings() -> None:
    ids, segments = np.array([[3, 1, 4, 1]], np.int32), np.array([[0, 0, 1, 1]], np.int32)
    agrees("EmbedLayerNormalization", ids, segments, f(9, 6), f(7, 6), f(2, 6), f(6), f(6), outs="y,m", epsilon=1e-5)
    mask, tables = np.array([[1, 1, 1, 0]], np.int32), (f(9, 6), f(7, 6), f(2, 6), f(6), f(6))
    agrees("EmbedLayerNormalization", ids, segments, *tables, mask, outs="y,,total")


def test_products_with_quantized_weights() -> None:
    agrees("DynamicQuantizeMatMul", f(3, 5), i8(5, 4), scale(0.02), zero(3, np.int8), f(4))
    agrees("MatMulIntegerToFloat", u8(3, 5), i8(5, 4), scale(0.02), scale(0.03), zero(9), zero(3, np.int8), f(4))


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("zeros", [False, True])
def test_matmul_with_packed_weights(bits: int, zeros: bool) -> None:
    if bits == 2 and defs.onnx_opset_version() < 25:
        pytest.skip("this onnx has no integers of 2 bits")
    more = (u8(5, 1),) if zeros else ()
    agrees("MatMulNBits", f(3, 40), u8(5, 2, 4 * bits), f(5, 2), *more, K=40, N=5, bits=bits, block_size=32)


@pytest.mark.parametrize("zeros", [None, f(5, 2)])
@pytest.mark.parametrize("group", [None, np.array([1, 0] * 20, np.int32), np.array([0, 1, 0, 0, 0] * 8, np.int32)])
def test_matmul_with_blocks_that_are_not_in_order(zeros: np.ndarray | None, group: np.ndarray | None) -> None:
    agrees("MatMulNBits", f(3, 40), u8(5, 2, 16), f(5, 2), zeros, group, K=40, N=5, bits=4, block_size=32)


@pytest.mark.parametrize("mask", [None, i32(3), np.array([[1, 1, 0, 1]], np.int32)])
def test_attention(mask: np.ndarray | None) -> None:
    agrees("Attention", f(1, 4, 8), f(8, 24), f(24), mask, num_heads=2)


def test_attributes_that_ask_for_nothing() -> None:
    off = {"do_rotary": 0, "past_present_share_buffer": 0}
    agrees("Attention", f(1, 4, 8), f(8, 24), f(24), num_heads=2, **off)
    agrees("QAttention", u8(1, 4, 8), i8(8, 24), f(24), scale(0.02), scale(0.01), None, zero(9), num_heads=2, **off)


def test_rotations_with_attributes_that_change_nothing() -> None:
    places, table = np.array([[3, 1, 0, 2]]), (f(8, 4), f(8, 4))
    agrees("RotaryEmbedding", f(1, 4, 16), places, *table, scale=0.5, is_packed_batching=1)


def test_attention_that_looks_back_only() -> None:
    agrees("Attention", f(2, 4, 8), f(8, 24), f(24), num_heads=2, unidirectional=1)


@pytest.mark.parametrize("kind", [0, 1], ids=["floats", "quantiles"])
def test_weights_of_four_bit_floats(kind: int) -> None:
    agrees("MatMulBnb4", f(3, 32), u8(5 * 32 // 2), f(10), K=32, N=5, block_size=16, quant_type=kind)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_a_packed_table(bits: int, zeros: bool) -> None:
    rows = np.array([[3, 0], [6, 6]], np.int64)
    more: dict[str, Any] = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    packed, points = u8(7, 64 * bits // 8), u8(7, 4 * bits // 8) if zeros else None
    _gathers([numpy_helper.from_array(packed, "t")], points, f(7, 4), rows, **more)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("shape", "along", "blocked"), [((4, 6, 33), 0, -1), ((4, 33, 3), 0, 1), ((33, 4, 3), 1, 0)])
def test_rows_of_a_table_of_four_bits(signed: bool, shape: tuple[int, ...], along: int, blocked: int) -> None:
    dtype = TensorProto.INT4 if signed else TensorProto.UINT4
    least = -8 if signed else 0
    few = [-(-size // 16) if axis == blocked % 3 else size for axis, size in enumerate(shape)]
    for zeros in (False, True):
        tables = [
            helper.make_tensor(name, dtype, dims, CHANCE.integers(least, least + 16, dims).reshape(-1).tolist())
            for name, dims in (("t", shape), ("z", few))
        ]
        rows = np.array([[3, 0], [1, -1]], np.int64)
        form = {"block_size": 16, "gather_axis": along, "quantize_axis": blocked}
        _gathers(tables if zeros else tables[:1], None, f(*few), rows, **form)


def _gathers(
    held: list[TensorProto], points: np.ndarray | None, scales: np.ndarray, rows: np.ndarray, **more: Any
) -> None:
    held = [*held, numpy_helper.from_array(scales, "s")]
    held += [] if points is None else [numpy_helper.from_array(points, "z")]
    names = ["t", "x", "s", "z" if any(one.name == "z" for one in held) else ""]
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain=CONTRIB, **more)
    x = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(rows.dtype), rows.shape)
    graph = helper.make_graph([node], "rows", [x], [ValueInfoProto(name="y")], held)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": rows})
    np.testing.assert_allclose(backend.run_model(model, {"x": rows})[0], want, rtol=1e-5)


def f16(*shape: int) -> np.ndarray:
    return f(*shape).astype(np.float16)


def test_narrow_floats_are_computed_in_wide_ones() -> None:
    agrees("SkipLayerNormalization", f16(1, 3, 8), f16(1, 3, 8), f16(8), f16(8), f16(8), outs="y,,,sum")
    agrees("SkipSimplifiedLayerNormalization", f16(1, 3, 8), f16(1, 3, 8), f16(8), outs="y,,,sum")
    agrees("MatMulNBits", f16(3, 32), u8(5, 1, 16), f16(5), None, K=32, N=5, bits=4, block_size=32)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int16])
def test_quantizing_in_the_domain_that_had_more_types_first(dtype: type) -> None:
    zeros = np.array([3, 0, 7], dtype)
    agrees("QuantizeLinear", f(2, 3, 4), scale(0.001), zero(5, dtype))
    agrees("QuantizeLinear", f(2, 3, 4), scale(0.001, 0.002, 0.004), zeros, axis=1)
    x = np.array([[1, 2, 3], [-4 if dtype != np.uint16 else 4, 5, 6]], dtype)
    agrees("DequantizeLinear", x, scale(0.1, 0.2, 0.3), zeros, axis=1)
    agrees("DequantizeLinear", x, scale(0.1), zeros[0])
    square = np.array([[1, 2, 3], [3, 4, 5], [4, 5, 6]], dtype)
    agrees("QuantizeLinear", f(3, 3), scale(0.001, 0.002, 0.004), zeros)  # the default axis is 1
    agrees("DequantizeLinear", square, scale(0.1, 0.2, 0.3), zeros)


def test_a_domain_that_the_model_does_not_name_is_taken_at_its_only_version() -> None:
    model = model_of("QuickGelu", [f(3, 8)], CONTRIB, "y", {})
    want = backend.run_model(model, {"x0": np.ones((3, 8), np.float32)})[0]
    del model.opset_import[1]
    got = backend.run_model(model, {"x0": np.ones((3, 8), np.float32)})[0]
    np.testing.assert_array_equal(got, want)
    (assumed,) = mccompile.compile(model).report["assumed"]
    assert "'com.microsoft'" in assumed


def test_a_version_of_onnx_that_the_model_does_not_name_is_the_newest() -> None:
    text = """<ir_version: 8, opset_import: ["com.microsoft" : 1]>
    g (float[2, 3] x) => (float[2, 3] y) { r = Relu (x) y = com.microsoft.QuickGelu (r) }"""
    model, x = parser.parse_model(text), f(2, 3)
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(backend.run_model(model, {"x": x})[0], want, 1e-5)
    (assumed,) = mccompile.compile(model).report["assumed"]
    assert "'ai.onnx'" in assumed and "the newest" in assumed


def test_what_is_not_known_of_an_operator_is_refused() -> None:
    model = model_of("Attention", (f(1, 4, 8), f(8, 24), f(24)), CONTRIB, "y", {"num_heads": 2, "do_rotary": 1})
    with pytest.raises(MccError, match="do_rotary"):
        backend.prepare(model)


def test_attention_without_heads_is_refused_as_that() -> None:
    model = model_of("Attention", (f(1, 4, 8), f(8, 24), f(24)), CONTRIB, "y", {"num_heads": 0})
    with pytest.raises(MccError, match="num_heads is 0"):
        backend.prepare(model)


@pytest.mark.parametrize(
    ("name", "domain", "why"),
    [
        ("Sampling", CONTRIB, "export the decoder as a model of its own"),
        ("ReorderInput", f"{CONTRIB}.nchwc", "save the model with ORT_ENABLE_EXTENDED"),
    ],
)
def test_what_is_not_written_out_says_what_helps(name: str, domain: str, why: str) -> None:
    node = helper.make_node(name, ["x0"], ["y"], domain=domain)
    info = [helper.make_tensor_value_info(n, 1, (1, 8, 2, 2)) for n in ("x0", "y")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    model = helper.make_model(helper.make_graph([node], "g", info[:1], info[1:]), opset_imports=opsets)
    with pytest.raises(MccError, match=why):
        backend.prepare(model)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_router_takes_the_first_of_experts_that_are_liked_alike(dtype: type) -> None:
    tied = np.array([[0, 1, 1, 0, 0, 1, 1, 0], [0] * 8, [1, 1, 1, 2, 2, 1, 1, 1]], dtype)
    groups = {"n_group": 4, "topk_group": 2}
    for many in (1, 2, 3, 8):  # 8 are more than there are in two groups
        agrees("MoEGroupRouter", tied, np.zeros(8, np.float32), top_k=many, group_topk=1, **groups)
        agrees("MoEGroupRouter", tied, np.zeros(8, np.float32), top_k=many)
    never = np.array([-np.inf, 0, 0, -np.inf, 0, 0, 0, 0], np.float32)
    agrees("MoEGroupRouter", tied, never, top_k=4, group_topk=1, **groups)
    agrees("MoEGroupRouter", f(2, 3, 8).astype(dtype) * 8, f(8), top_k=3, router_sentinel=-30.0, **groups)
    agrees("MoEGroupRouter", tied, f(8), outs=",s,w", top_k=1)


@pytest.mark.parametrize(
    ("outs", "attributes", "why"),
    [
        ("y", {"top_k": 9}, "9 of 8 experts in 1 of 1 groups"),
        ("y", {"top_k": 1, "n_group": 3}, "1 of 3 groups, which their best 2 stand for, cannot be taken"),
        ("y", {"top_k": 1, "n_group": 2, "topk_group": 3}, "3 of 2 groups"),
        ("y,s,w", {"top_k": 1}, "selection_scores and router_weights come together, without router_probs"),
        (",s,w", {"top_k": 1, "n_group": 2}, "for one group"),
        ("y", {"top_k": 1, "scale": 2.0}, "scale of MoEGroupRouter is not known"),
    ],
)
def test_a_router_that_contradicts_itself_is_refused(outs: str, attributes: dict[str, Any], why: str) -> None:
    model = model_of("MoEGroupRouter", (f(2, 8), f(8)), CONTRIB, outs, attributes)
    with pytest.raises(MccError, match=why):
        backend.prepare(model)


@pytest.mark.parametrize(
    ("shapes", "outs", "why"),
    [
        (((2, 8), (7,)), "y", "for 7 experts"),
        (((8,), (8,)), "y", "not rows"),
        (((2, 8), (2, 4)), "y", "make it a vector of known size"),
        (((2, 200), (8,), (8, 200)), ",s,w", "multiple of 256"),
        (((2, 256), (8,), (8, 256)), "y", "not router_probs"),
    ],
)
def test_operands_of_a_router_fit_each_other(shapes: tuple[tuple[int, ...], ...], outs: str, why: str) -> None:
    model = model_of("MoEGroupRouter", [f(*shape) for shape in shapes], CONTRIB, outs, {"top_k": 1})
    with pytest.raises(MccError, match=why):
        backend.prepare(model)
