"""The models that are run on every target: the digits example, those of the tests, and some that need more of a core:
integers of 8 and 64 bits, libm, recurrent state, normalisation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from embedded.quantized_models import autoencoder_int8, residual_int8, separable_int8
from tests import small_models
from tests.small_models import floats, model, node, save

TOP = Path(__file__).resolve().parent.parent


def depthwise() -> ModelProto:
    """A separable convolution, as models for microcontrollers have them."""
    nodes = [
        node("Conv", "x wd bd", "d", pads=[1, 1, 1, 1], strides=[2, 2], group=8),
        node("Clip", "d zero six", "r"),
        node("Conv", "r wp bp", "y"),
    ]
    weights = {"wd": floats(1, 8, 1, 3, 3), "bd": floats(2, 8), "wp": floats(3, 12, 8, 1, 1), "bp": floats(4, 12)}
    weights |= {"zero": np.array(0, np.float32), "six": np.array(6, np.float32)}
    return model("depthwise", nodes, [("x", (1, 8, 11, 9))], [("y", (1, 12, 6, 5))], weights)


def classifier() -> ModelProto:
    """Pools, a dense layer, softmax, and the number of the winner (64 bits)."""
    nodes = [
        node("MaxPool", "x", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "p", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w b", "h"),
        node("Softmax", "h", "y", axis=1),
        node("ArgMax", "y", "best", axis=1, keepdims=0),
    ]
    weights = {"w": floats(1, 6, 5), "b": floats(2, 5)}
    made = model("classifier", nodes, [("x", (1, 6, 8, 8))], [("y", (1, 5))], weights)
    made.graph.output.append(helper.make_tensor_value_info("best", TensorProto.INT64, (1,)))
    return made


def normalized() -> ModelProto:
    """Layer normalisation and the exact GELU: means, roots, erf."""
    nodes = [
        node("LayerNormalization", "x scale shift", "n", axis=-1),
        node("Div", "n root", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "s"),
        node("Mul", "n s", "y"),
    ]
    weights = {"scale": floats(1, 16), "shift": floats(2, 16), "root": np.array(2**0.5, np.float32)}
    weights["one"] = np.array(1, np.float32)
    return model("normalized", nodes, [("x", (3, 16))], [("y", (3, 16))], weights)


def recurrent() -> ModelProto:
    """A GRU over a few steps."""
    nodes = [node("GRU", "x w r b", "all y", hidden_size=6)]
    weights = {"w": floats(1, 1, 18, 4), "r": floats(2, 1, 18, 6), "b": floats(3, 1, 36)}
    return model("recurrent", nodes, [("x", (5, 1, 4))], [("all", (5, 1, 1, 6)), ("y", (1, 1, 6))], weights)


def quantized() -> ModelProto:
    """A convolution of 8-bit integers, as quantisers write it."""
    chance = np.random.default_rng(5)
    weights: dict[str, np.ndarray] = {
        "w": chance.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8),
        "b": chance.integers(-500, 500, 6).astype(np.int32),
        "xs": np.array(0.02, np.float32),
        "xz": np.array(3, np.int8),
        "ws": np.array(0.01, np.float32),
        "wz": np.array(0, np.int8),
        "ys": np.array(0.05, np.float32),
        "yz": np.array(-4, np.int8),
    }
    nodes = [
        node("QuantizeLinear", "x xs xz", "q"),
        node("QLinearConv", "q xs xz w ws wz ys yz b", "c", pads=[1, 1, 1, 1]),
        node("DequantizeLinear", "c ys yz", "y"),
    ]
    return model("quantized", nodes, [("x", (1, 4, 7, 7))], [("y", (1, 6, 7, 7))], weights)


def integers() -> ModelProto:
    """Only integers, of all widths: wrapping, division, shifts, and a table of numbers by index."""
    nodes = [
        node("Mul", "x x", "square"),
        node("Div", "square seven", "part"),
        node("Cast", "part", "small", to=TensorProto.INT8),
        node("Gather", "table x", "y"),
    ]
    graph = helper.make_graph(
        nodes,
        "integers",
        [helper.make_tensor_value_info("x", TensorProto.INT64, (9,))],
        [
            helper.make_tensor_value_info("small", TensorProto.INT8, (9,)),
            helper.make_tensor_value_info("y", TensorProto.INT16, (9, 3)),
        ],
        [
            numpy_helper.from_array(np.array(7, np.int64), "seven"),
            numpy_helper.from_array(np.arange(60, dtype=np.int16).reshape(20, 3), "table"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_MORE: tuple[Callable[[], ModelProto], ...] = (
    depthwise,
    classifier,
    normalized,
    recurrent,
    quantized,
    integers,
    autoencoder_int8,
    residual_int8,
    separable_int8,
)
NAMES = ("digits", *small_models.ALL, *(made.__name__ for made in _MORE))


def path_of(name: str, folder: Path) -> Path:
    """The model's file; those that are made here are written into `folder`."""
    if name == "digits":
        return TOP / "examples" / "digits" / "digits.onnx"
    makers = {**small_models.ALL, **{made.__name__: made for made in _MORE}}
    return save(makers[name](), folder)
