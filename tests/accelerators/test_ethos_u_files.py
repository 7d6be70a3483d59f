"""What Vela gets is what the model says: each file that is written for it runs in LiteRT as the model does in
onnxruntime, and what TFLite cannot say is left to the core."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mccompile.accelerators.api import No
from mccompile.accelerators.ethos_u import backend
from mccompile.driver import Options, compile

PICTURE = (1, 8, 9, 7)
SIGNAL = (1, 8, 21)
SCALES = np.linspace(0.004, 0.009, 16, dtype=np.float32)
ASIDE = {"pads": [1, 1, 1, 1]}
HALVES = {"kernel_shape": [3, 3], "strides": [2, 2]}
INPUT_SCALE = np.float32(0.05)
Constant = tuple[tuple[int, ...], str, Any, int]  # shape, type, scales and along which axis


def weights(*shape: int, scales: Any = 0.006, axis: int = 0) -> Constant:
    return shape, "int8", scales, axis


def bias(*shape: int, scales: Any) -> Constant:
    return shape, "int32", scales, 0


KEPT = {"scale": 0.05, "zero": -3}  # of the input
SOFTMAX = {"scale": 1 / 256, "zero": -128}
RIGHT: Mapping[str, tuple[str, tuple[int, ...], list[Constant], dict[str, Any], dict[str, Any]]] = {
    "conv": ("Conv", PICTURE, [weights(16, 8, 3, 3, scales=SCALES)], ASIDE, {}),
    "conv_halving": ("Conv", PICTURE, [weights(5, 8, 3, 3)], {**ASIDE, "strides": [2, 2]}, {}),
    "conv_dilated": ("Conv", PICTURE, [weights(5, 8, 3, 3)], {"dilations": [2, 2]}, {}),
    "conv_of_one": ("Conv", (1, 1, 1, 1), [weights(1, 1, 1, 1)], {}, {}),
    "bias": ("Conv", PICTURE, [weights(16, 8, 1, 1, scales=SCALES), bias(16, scales=SCALES * INPUT_SCALE)], {}, {}),
    "depthwise": ("Conv", PICTURE, [weights(8, 1, 3, 3)], {**ASIDE, "group": 8}, {}),
    "multiplier": ("Conv", PICTURE, [weights(16, 1, 3, 3, scales=SCALES)], {"group": 8}, {}),
    "conv_padded": ("Conv", PICTURE, [weights(5, 8, 3, 3)], {"pads": [2, 0, 1, 3], "strides": [2, 2]}, {}),
    "depthwise_padded": ("Conv", PICTURE, [weights(8, 1, 3, 3)], {"pads": [0, 1, 2, 0], "group": 8}, {}),
    "average": ("AveragePool", PICTURE, [], HALVES, KEPT),
    "maximum": ("MaxPool", PICTURE, [], {**HALVES, **ASIDE}, KEPT),
    "softmax": ("Softmax", (1, 13), [], {"axis": 1}, SOFTMAX),
    "dense": ("Gemm", (3, 20), [weights(16, 20, scales=SCALES)], {"transB": 1}, {}),
    "dense_as_it_lies": ("Gemm", (3, 20), [weights(20, 16, scales=SCALES, axis=1)], {}, {}),
    "product": ("MatMul", (3, 20), [weights(20, 16)], {}, {}),
    "product_of_three_axes": ("MatMul", (2, 3, 20), [weights(20, 16)], {}, {}),
    "bias_of_another_scale": ("Conv", PICTURE, [weights(5, 8, 1, 1), bias(5, scales=0.001)], {}, {}),
    "larger_constant": ("Max", PICTURE, [weights(1, 8, 1, 1, scales=0.01)], {}, KEPT),
    "smaller_constant": ("Min", (3, 20), [weights(20, scales=0.02)], {}, KEPT),
    "mean": ("GlobalAveragePool", PICTURE, [], {}, {"scale": 0.01}),
    "tanh": ("Tanh", (3, 20), [], {}, {"scale": 1 / 128, "zero": 0}),
    "hard_swish": ("HardSwish", PICTURE, [], {}, {}),
    "hard_sigmoid": ("HardSigmoid", PICTURE, [], {"alpha": 1 / 6}, {"scale": 1 / 256, "zero": -128}),
    "leaky": ("LeakyRelu", PICTURE, [], {"alpha": 0.1}, {}),
    "norm": (
        "BatchNormalization",
        PICTURE,
        [weights(8, scales=0.01), bias(8, scales=0.002), weights(8, scales=0.001), ((8,), "spread", 0.01, 0)],
        {},
        {},
    ),
    "signal": ("Conv", SIGNAL, [weights(16, 8, 5, scales=SCALES)], {"pads": [2, 2]}, {}),
    "signal_halving": (
        "Conv",
        SIGNAL,
        [weights(5, 8, 4), bias(5, scales=0.0003)],
        {"strides": [2], "pads": [3, 0]},
        {},
    ),
    "signal_dilated": ("Conv", SIGNAL, [weights(5, 8, 3)], {"dilations": [3], "pads": [3, 3]}, {}),
    "signal_depthwise": ("Conv", SIGNAL, [weights(8, 1, 3)], {"pads": [1, 1], "group": 8}, {}),
    "signals": ("Conv", (1, 1, 40), [weights(6, 1, 8)], {"strides": [4]}, {}),
    "average_of_signal": ("AveragePool", SIGNAL, [], {"kernel_shape": [3], "strides": [3]}, KEPT),
    "maximum_of_signal": ("MaxPool", SIGNAL, [], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}, KEPT),
    "mean_of_signal": ("GlobalAveragePool", SIGNAL, [], {}, {"scale": 0.01}),
    "transposed": ("ConvTranspose", PICTURE, [weights(8, 16, 2, 2, scales=SCALES, axis=1)], {"strides": [2, 2]}, {}),
    "transposed_overlapping": ("ConvTranspose", PICTURE, [weights(8, 5, 3, 4)], {"strides": [2, 2]}, {}),
    "transposed_same": (
        "ConvTranspose",
        PICTURE,
        [weights(8, 5, 3, 3), bias(5, scales=3e-4)],
        {"strides": [2, 2], "pads": [0, 0, 1, 1]},
        {},
    ),
    "transposed_by_output_padding": (
        "ConvTranspose",
        PICTURE,
        [weights(8, 5, 5, 5)],
        {"strides": [2, 2], "pads": [1, 1, 3, 3], "output_padding": [1, 1]},
        {},
    ),
    "transposed_signal": ("ConvTranspose", SIGNAL, [weights(8, 5, 2)], {"strides": [2]}, {}),
    "bias_of_a_row": ("Gemm", (1, 20), [weights(7, 20), bias(1, 7, scales=0.0003)], {"transB": 1}, {}),
}
LEFT: Mapping[str, tuple[str, tuple[int, ...], list[Constant], dict[str, Any], dict[str, Any]]] = {
    "another axis": ("Conv", PICTURE, [weights(8, 8, 3, 3, scales=SCALES[:8], axis=1)], {}, {}),
    "not a whole number": ("Conv", PICTURE, [weights(5, 8, 1, 1), bias(5, scales=0.001)], {}, {"scale": 2e-3}),
    "one constant for each channel": ("Gemm", (3, 20), [weights(7, 20), bias(3, 1, scales=0.0003)], {"transB": 1}, {}),
    "another scale or zero point": ("AveragePool", PICTURE, [], HALVES, {}),
    "has no word": ("AveragePool", PICTURE, [], {**HALVES, "pads": [1, 0, 1, 1]}, KEPT),
    "steps of 1/256": ("Softmax", (1, 13), [], {"axis": 1}, {}),
    "of one group": ("ConvTranspose", PICTURE, [weights(8, 2, 2, 2)], {"group": 2}, {}),
    "padding (1, 1, 1, 1)": ("ConvTranspose", PICTURE, [weights(8, 4, 3, 3)], {**ASIDE, "strides": [2, 2]}, {}),
    "one group, or": ("Conv", PICTURE, [weights(16, 4, 3, 3)], {"group": 2}, {}),
    "several scales": ("Conv", PICTURE, [weights(4, 8, 1, 1)], {}, {"scale": SCALES[:4], "zero": [0, 0, 0, 0]}),
}


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Those that Vela would get."""
    pytest.importorskip("ethosu.vela", reason="Vela is not installed, which has the schema of the files")
    found: list[bytes] = []

    def keep(file: bytes, config: str) -> No:
        found.append(file)
        return No("only written")

    monkeypatch.setattr(backend, "compiled", keep)
    return found


def saved(folder: Path, op: str, shape: tuple[int, ...], constants: list[Constant], attributes: dict[str, Any],
          result: dict[str, Any], more: int = 0) -> Path:  # fmt: skip
    """`more`: 128 for uint8, whose zero points are that much larger than those of int8."""
    whole = np.uint8 if more else np.int8
    draw = np.random.default_rng(5)
    scale = np.asarray(result.get("scale", 0.08), np.float32)
    made = {
        "s": INPUT_SCALE,
        "z": whole(more - 3),
        "s_y": scale,
        "z_y": (np.asarray(result.get("zero", 4)) + more).astype(whole),
    }
    nodes = []
    for number, (size, dtype, scales, axis) in enumerate(constants):
        name = f"c{number}"
        low = 1 if dtype == "spread" else -127
        made[name] = draw.integers(low, 128, size).astype(dtype.replace("spread", "int8"))
        made[f"s_{name}"] = np.asarray(scales, np.float32)
        nodes.append(helper.make_node("DequantizeLinear", [name, f"s_{name}"], [f"r_{name}"], axis=axis))
    nodes.append(helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xr"]))  # behind those of constants
    reals = ["xr", *(f"r_c{number}" for number in range(len(constants)))]
    nodes.append(helper.make_node(op, reals, ["f"], **attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["f", "s_y", "z_y"], ["y"], axis=1))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(whole))
    ends = [[helper.make_tensor_value_info(name, kind, size)] for name, size in (("x", shape), ("y", None))]
    graph = helper.make_graph(nodes, "m", *ends, [numpy_helper.from_array(array, name) for name, array in made.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(onnx.shape_inference.infer_shapes(model), folder / "m.onnx")
    return folder / "m.onnx"


def asked(path: Path) -> Any:
    return compile(path, Options(accelerator="ethos-u55-128", target="cortex-m55")).plan.partition


BY_CHANNEL = {"norm"} | {
    name for name, case in RIGHT.items() if any(np.size(scales) > 1 for _, _, scales, _ in case[2])
}


@pytest.mark.parametrize(("name", "more"), [(name, more) for more in (0, 128) for name in RIGHT])
def test_a_file_computes_what_the_model_does(name: str, more: int, files: list[bytes], tmp_path: Path) -> None:
    """LiteRT has no kernels of uint8 with scales by channel, and onnxruntime's of uint8 saturate on some processors:
    both results are those of int8, 128 larger."""
    onnxruntime, litert = pytest.importorskip("onnxruntime"), pytest.importorskip("ai_edge_litert.interpreter")
    path = saved(tmp_path, *RIGHT[name])
    x = np.random.default_rng(6).integers(-128, 128, RIGHT[name][1]).astype(np.int8)
    (want,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})
    asked(saved(tmp_path, *RIGHT[name], more))
    want, x = want.astype(int) + more, (x.astype(int) + more).astype(np.uint8 if more else np.int8)
    assert len(files) == 1
    if more and name in BY_CHANNEL:
        return
    net = litert.Interpreter(model_content=files[0])
    net.allocate_tensors()
    given, made = net.get_input_details()[0], net.get_output_details()[0]
    is_turned = tuple(given["shape"]) != x.shape or x.shape == (1, 1, 1, 1)
    net.set_tensor(given["index"], np.moveaxis(x, 1, -1) if is_turned else x)
    net.invoke()
    got = net.get_tensor(made["index"])
    got = np.moveaxis(got, -1, 1) if is_turned else got
    assert np.abs(got.astype(int) - want).max() <= 1 and len(np.unique(want)) >= min(x.size, 2)


@pytest.mark.parametrize("why", LEFT)
def test_what_tflite_cannot_say_is_left(why: str, files: list[bytes], tmp_path: Path) -> None:
    left = asked(saved(tmp_path, *LEFT[why])).left
    assert not files and any(why in each.why for each in left)


BEHIND_PRODUCTS = {
    "norm": "BatchNormalization (m, k, k, k, k)",
    "factors by row": "Mul (m, rows)",
    "sums by column": "Add (m, k)",
}


@pytest.mark.parametrize("behind", BEHIND_PRODUCTS)
def test_channels_of_a_product_are_its_columns(behind: str, files: list[bytes], tmp_path: Path) -> None:
    """Of as many rows as columns."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    onnxruntime = pytest.importorskip("onnxruntime")
    text = f"""<ir_version: 9, opset_import: ["" : 17]> m (int8[1,16,20] x) => (int8[1,16,16] y)
        <float s = {{0.05}}, int8 z = {{-3}}, float ws = {{0.006}}, float s_y = {{0.08}}, int8 z_y = {{4}}> {{
        wr = DequantizeLinear (w, ws) xr = DequantizeLinear (x, s, z) m = MatMul (xr, wr)
        f = {BEHIND_PRODUCTS[behind]} y = QuantizeLinear (f, s_y, z_y) }}"""
    made, draw = onnx.parser.parse_model(text), np.random.default_rng(5)
    each = np.linspace(0.5, 1.5, 16, dtype=np.float32)
    arrays = {"w": draw.integers(-127, 128, (20, 16), np.int8), "k": each, "rows": each.reshape(16, 1)}
    used = [(name, array) for name, array in arrays.items() if name in text.replace("(x, w", "")]
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in used)
    onnx.save(made, tmp_path / "m.onnx")
    asked(tmp_path / "m.onnx")
    assert bool(files) == (behind == "sums by column")
    x = draw.integers(-128, 128, (1, 16, 20)).astype(np.int8)
    (want,) = onnxruntime.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"x": x})
    for file in files:
        net = litert.Interpreter(model_content=file)
        net.allocate_tensors()
        net.set_tensor(net.get_input_details()[0]["index"], x)
        net.invoke()
        assert np.abs(net.get_tensor(net.get_output_details()[0]["index"]).astype(int) - want).max() <= 1


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_a_number_is_compared_in_steps_of_the_tensor(op: str, files: list[bytes], tmp_path: Path) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    text = f"""<ir_version: 9, opset_import: ["" : 17]> m (int8[1,256] x) => (int8[1,256] y)
        <float s = {{0.05}}, int8 z = {{-3}}, float bound = {{0.7}}> {{
        xr = DequantizeLinear (x, s, z) f = {op} (xr, bound) y = QuantizeLinear (f, s, z) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    asked(tmp_path / "m.onnx")
    net, x = litert.Interpreter(model_content=files[0]), np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
    net.allocate_tensors()
    net.set_tensor(net.get_input_details()[0]["index"], x)
    net.invoke()
    want = {"Max": np.maximum, "Min": np.minimum}[op](x, np.int8(14 - 3))  # .7 is 14 steps of .05
    assert np.array_equal(net.get_tensor(net.get_output_details()[0]["index"]), want)


def test_a_region_that_only_moves_needs_no_scale(files: list[bytes], tmp_path: Path) -> None:
    ends = "(int8[2,3] x) => (int8[6] y) <int64[1] n = {6}>"
    text = f'<ir_version: 9, opset_import: ["" : 17]> m {ends} {{ y = Reshape (x, n) }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    assert [left.what for left in asked(tmp_path / "m.onnx").left] == ["Reshape"] and len(files) == 1
