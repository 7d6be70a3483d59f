"""Operators that early exporters wrote into ONNX's domain before the standard had them, or that it took out again:
those of Caffe2 and CoreML's converter, which onnxruntime still runs, decomposed.

Invariant: attributes that are left out have the defaults that onnxruntime has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from ..base.dtypes import DTYPES
from ..graph.ir import Invalid, Unsupported
from .composed_body import Body
from .composed_pieces import FIX

Writer = Callable[[Body], None]


def _affine(factor: str, shift: str = "") -> Writer:
    def write(body: Body) -> None:
        body.only(factor, *([shift] if shift else []))
        scaled, added = _scaled(body, body.operand(0), factor), body.attribute(shift, 0.0)
        body.give(0, body.op("Add", scaled, body.number(added)) if added else scaled)

    return write


def _scaled_activation(name: str) -> Writer:
    def write(body: Body) -> None:
        body.only("alpha", "beta")
        body.give(0, _scaled(body, body.op(name, _scaled(body, body.operand(0), "beta")), "alpha"))

    return write


def _scaled(body: Body, x: str, factor: str) -> str:
    return body.op("Mul", x, body.number(body.attribute(factor, 1.0)))


def _image_scaler(body: Body) -> None:
    body.only("scale", "bias")
    x, bias = body.type(0), np.asarray(body.attribute("bias", ()), np.float32)
    if x.rank != 4 or (isinstance(x.shape[1], int) and bias.size not in (0, x.shape[1])):
        raise Invalid(f"{bias.size} biases for x {x}")
    scaled = _scaled(body, body.operand(0), "scale")
    body.give(0, body.op("Add", scaled, body.constant(bias.reshape(1, -1, 1, 1))) if bias.size else scaled)


def _crop(body: Body) -> None:
    """The border is left, top, right, bottom; a scale is the height and width of what is kept."""
    body.only("border", "scale")
    x, border, kept = body.type(0), body.attribute("border", ()), body.attribute("scale", ())
    if x.rank != 4 or len(border) != 4 or len(kept) not in (0, 2):
        raise Invalid(f"border {list(border)} and scale {list(kept)} of x {x}")
    left, top, right, bottom = map(int, border)
    if kept:
        ends = body.ints(top + int(kept[0]), left + int(kept[1]))
    else:
        height, width = x.shape[2:]
        if not isinstance(height, int) or not isinstance(width, int):
            raise Unsupported(f"a border around x {x}", FIX)
        ends = body.ints(height - bottom, width - right)
    body.give(0, body.op("Slice", body.operand(0), body.ints(top, left), ends, body.ints(2, 3)))


def _given_tensor_fill(body: Body) -> None:
    body.only("values", "shape", "extra_shape", "input_as_shape")
    values = np.asarray(body.attribute("values", ()), np.float32)
    shape = _filled_shape(body)
    if values.size != int(np.prod(shape)):
        raise Invalid(f"{values.size} values do not fill shape {shape}")
    body.give(0, body.constant(values.reshape(shape)))


def _constant_fill(body: Body) -> None:
    body.only("value", "dtype", "shape", "extra_shape", "input_as_shape")
    wanted = body.attribute("dtype", TensorProto.FLOAT)
    dtype = next((d for d in DTYPES.values() if d.onnx == wanted), None)
    if dtype is None or not (dtype.is_float or dtype.is_integer):
        raise Unsupported(f"dtype {wanted}", "export the model with ConstantOfShape")
    body.give(0, body.constant(np.full(_filled_shape(body), body.attribute("value", 0.0), dtype.numpy)), False)


def _filled_shape(body: Body) -> tuple[int, ...]:
    """By attribute, by the contents of an operand, or like an operand."""
    if not body.has(0):
        return tuple(map(int, body.attribute("shape", ())))
    operand = body.value(0)
    assert operand is not None
    more = tuple(map(int, body.attribute("extra_shape", ())))
    if not body.attribute("input_as_shape", 0):
        if not all(isinstance(dim, int) for dim in operand.type.shape):
            raise Unsupported(f"a result like {operand.type}", FIX)
        return (*operand.type.static_shape, *more)
    value = operand.fact.value
    if value is None or not all(isinstance(dim, int | np.integer) for dim in value.reshape(-1)):
        raise Unsupported("its shape (operand 0) is computed at run time", FIX)
    return (*(int(dim) for dim in value.reshape(-1)), *more)


def _dynamic_slice(body: Body) -> None:
    body.only()
    body.give(0, body.op("Slice", *(body.operand(i) for i in range(4))), False)


def _thresholded_relu(body: Body) -> None:
    body.only("alpha")
    body.give(0, body.op("ThresholdedRelu", body.operand(0), **body.picked("alpha")))


def _mean_variance_normalization(body: Body) -> None:
    body.only("across_channels", "normalize_variance")
    axes = list(range(1 if body.attribute("across_channels", 0) else 2, body.type(0).rank))
    axes = [0, *axes]
    if body.attribute("normalize_variance", 1):
        body.give(0, body.op("MeanVarianceNormalization", body.operand(0), axes=axes))
        return
    mean = body.op("ReduceMean", body.operand(0), body.ints(*axes), keepdims=1)
    body.give(0, body.op("Sub", body.operand(0), mean))


def _upsample(body: Body) -> None:
    """Caffe2's: pictures, by two factors."""
    body.only("height_scale", "width_scale", "mode")
    mode = {"nearest": "nearest", "bilinear": "linear"}.get(body.attribute("mode", "nearest"))
    if mode is None:
        raise Invalid(f"mode {body.attribute('mode', '')!r} is not nearest or bilinear")
    factors = [body.attribute("height_scale", 1.0), body.attribute("width_scale", 1.0)]
    if min(factors) < 1:
        raise Invalid(f"scales {factors} are below 1, and Upsample does not make anything smaller")
    more: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    scales = body.constant(np.array([1.0, 1.0, *factors], np.float32))
    body.give(0, body.op("Resize", body.operand(0), "", scales, **more))


# The name, its decomposition, and the opset that has an operator of that name by itself.
_EARLY: tuple[tuple[str, Writer, int], ...] = (
    ("Affine", _affine("alpha", "beta"), 0),
    ("ConstantFill", _constant_fill, 0),
    ("Crop", _crop, 0),
    ("DynamicSlice", _dynamic_slice, 0),
    ("GivenTensorFill", _given_tensor_fill, 0),
    ("ImageScaler", _image_scaler, 0),
    ("MeanVarianceNormalization", _mean_variance_normalization, 9),
    ("ParametricSoftplus", _scaled_activation("Softplus"), 0),
    ("Scale", _affine("scale"), 0),
    ("ScaledTanh", _scaled_activation("Tanh"), 0),
    ("ThresholdedRelu", _thresholded_relu, 10),
    ("Upsample", _upsample, 7),
)
WRITERS = {("", name): write for name, write, _ in _EARLY}
STANDARD_FROM = {name: opset for name, _, opset in _EARLY if opset}
