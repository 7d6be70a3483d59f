"""Integers that stand for floats: what quantizes and what computes with such, in the standard's words: the integer is
"y = saturate((x / y_scale) + y_zero_point)", "rounding to the nearest even"."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..narrow import rounded_to
from ..rules import Array, NodeSite, NoWitness, judges
from ..whole import limits, within
from .casts import TYPES
from .elementwise import sigmoid
from .products import less_zero
from .reductions import softmax
from .windows import Windows, averaged, convolved


def spread(values: Array, x: Array, axis: int, block: int) -> Array:
    """A scale or zero point per tensor, per position of an axis, or per block of it, over all elements."""
    if values.size == 1 and values.ndim <= 1:
        return values.reshape(())
    if values.ndim == 1:
        return values.reshape([-1 if n == axis % x.ndim else 1 for n in range(x.ndim)])
    block = block or -(-x.shape[axis] // values.shape[axis])
    return np.take(np.repeat(values, block, axis), np.arange(x.shape[axis]), axis)


def quantized(at: NodeSite, x: Array, scale: Array, zero: Array, to: str) -> Array:
    if to.startswith("float"):
        return rounded_to(x / scale, to)
    low, high = limits(to)
    quotient = np.asarray(x / scale)
    return within(at, np.clip(np.rint(quotient) + zero, low, high), to, "ONNX does not say which integer NaN becomes")


@judges("QuantizeLinear", "com.microsoft::QuantizeLinear")
def quantize_linear(at: NodeSite) -> Array:
    x, axis, block = at[0], at.attr("axis", 1), at.attr("block_size", 0)
    to = at.type(2) if at.has(2) else TYPES[at.attr("output_dtype", 0) or 2]
    scale = spread(at[1], x, axis, block)
    zero = spread(np.asarray(at.get(2, np.zeros(()))).astype(np.float64), x, axis, block)
    if at.type(0) in ("int32",):
        x = x.astype(np.float64)
    return quantized(at, x, scale, zero, to)


@judges("DequantizeLinear", "com.microsoft::DequantizeLinear")
def dequantize_linear(at: NodeSite) -> Array:
    x, axis, block = at[0], at.attr("axis", 1), at.attr("block_size", 0)
    scale = spread(at[1], x, axis, block)
    zero = spread(np.asarray(at.get(2, np.zeros(()))).astype(np.float64), x, axis, block)
    return (x.astype(np.float64) - zero) * scale


@judges("DynamicQuantizeLinear")
def dynamic_quantize_linear(at: NodeSite) -> tuple[Array, Array, Array]:
    return dynamically(at)


def dynamically(at: NodeSite) -> tuple[Array, Array, Array]:
    """The scale is a float32 by the standard, and what it is decides between integers."""
    x = at[0]
    low, high = min(0.0, float(np.min(x, initial=0))), max(0.0, float(np.max(x, initial=0)))
    scale = np.float64(np.float32((np.float32(high) - np.float32(low)) / np.float32(255)))
    if scale == 0:
        return np.zeros(x.shape, np.uint8), np.array(scale), np.array(0, np.uint8)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return quantized(at, x, np.asarray(scale), np.asarray(zero), "uint8"), np.array(scale), np.array(zero, np.uint8)


def real(at: NodeSite, index: int) -> Array:
    """What three operands in a row stand for: integers, their scale, their zero point."""
    zero = at.get(index + 2)
    return less_zero(at[index], zero, 0) * at[index + 1]


def stored_as(at: NodeSite, x: Array, index: int) -> Array:
    """A result with the scale and zero point of two operands."""
    to = at.type(index + 1) if at.has(index + 1) else at.type(0)
    zero = np.asarray(at.get(index + 1, 0.0)).astype(np.float64).reshape(())
    return quantized(at, x, at[index].reshape(()), zero, to)


@judges("QLinearMatMul")
def qlinear_matmul(at: NodeSite) -> Array:
    a, b = less_zero(at[0], at[2], -2), less_zero(at[3], at[5], -1)
    left, right = at[1], at[4]
    left = left.reshape(-1, 1) if left.ndim == 1 and left.size > 1 else left if left.ndim > 1 else left.reshape(())
    return stored_as(at, np.matmul(a, b) * left * (right if right.size > 1 else right.reshape(())), 6)


@judges("QLinearConv")
def qlinear_conv(at: NodeSite) -> Array:
    x, w = less_zero(at[0], at[2], 1), less_zero(at[3], at[5], 0)
    sums = convolved(at, x, w, at.attr("group", 1))
    channels = (1, -1, *[1] * (sums.ndim - 2))
    if at.has(8):
        sums = sums + at[8].astype(np.int64).reshape(channels)
    scale = at[1].reshape(()) * (at[4].reshape(channels) if at[4].size > 1 else at[4].reshape(()))
    return stored_as(at, sums * scale, 6)


# -- com.microsoft: operands and results are triples as above


@judges("com.microsoft::QLinearConv")
def qlinear_conv_of_microsoft(at: NodeSite) -> Array:
    if not at.attr("channels_last", 0):
        return qlinear_conv(at)
    turned = replace(at, operands=[np.moveaxis(at[0], -1, 1), *at.operands[1:]])
    return np.moveaxis(qlinear_conv(turned), 1, -1)


@judges("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul")
def qlinear_arithmetic(at: NodeSite) -> Array:
    a, b = real(at, 0), real(at, 3)
    return stored_as(at, a + b if at.node.op == "QLinearAdd" else a * b, 6)


@judges("com.microsoft::QLinearSigmoid")
def qlinear_sigmoid(at: NodeSite) -> Array:
    return stored_as(at, sigmoid(real(at, 0)), 3)


@judges("com.microsoft::QLinearLeakyRelu")
def qlinear_leaky(at: NodeSite) -> Array:
    x = real(at, 0)
    return stored_as(at, np.where(x < 0, x * at.attr("alpha", float(np.float32(0.01))), x), 3)


@judges("com.microsoft::QLinearConcat")
def qlinear_concat(at: NodeSite) -> Array:
    joined = np.concatenate([real(at, n) for n in range(2, len(at.operands), 3)], at.attr("axis"))
    return quantized(at, joined, at[0].reshape(()), at[1].astype(np.float64).reshape(()), at.type(1))


@judges("com.microsoft::QLinearWhere")
def qlinear_where(at: NodeSite) -> Array:
    return stored_as(at, np.where(at[0].astype(bool), real(at, 1), real(at, 4)), 7)


@judges("com.microsoft::QLinearSoftmax")
def qlinear_softmax(at: NodeSite) -> Array:
    x, axis = real(at, 0), at.attr("axis", -1)
    if at.attr("opset", 13) >= 13:
        return stored_as(at, softmax(x, axis), 3)
    axis %= x.ndim
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
    return stored_as(at, softmax(flat, 1).reshape(x.shape), 3)


@judges("com.microsoft::QLinearGlobalAveragePool")
def qlinear_global_average(at: NodeSite) -> Array:
    x = real(at, 0)
    axes = tuple(range(1, x.ndim - 1)) if at.attr("channels_last", 0) else tuple(range(2, x.ndim))
    return stored_as(at, x.mean(axes, keepdims=True), 3)


@judges("com.microsoft::QLinearAveragePool")
def qlinear_average(at: NodeSite) -> Array:
    x = real(at, 0)
    last = at.attr("channels_last", 0)
    x = np.moveaxis(x, -1, 1) if last else x
    windows = Windows(at, x.shape[2:], at.attr("kernel_shape"))
    if windows.ceil and at.attr("count_include_pad", 0):
        raise NoWitness("ONNX does not say what counts beyond the padding")
    found = averaged(x, windows, bool(at.attr("count_include_pad", 0)))
    return stored_as(at, np.moveaxis(found, 1, -1) if last else found, 3)


@judges("com.microsoft::QLinearReduceMean")
def qlinear_mean(at: NodeSite) -> Array:
    x, axes = real(at, 0), at.attr("axes")
    return stored_as(at, x.mean(tuple(axes) if axes else None, keepdims=bool(at.attr("keepdims", 1))), 3)


@judges("com.microsoft::QGemm")
def qgemm(at: NodeSite) -> Array:
    a, b = less_zero(at[0], at[2], 1), less_zero(at[3], at[5], 0 if at.attr("transB", 0) else 1)
    a = a.T if at.attr("transA", 0) else a
    b = b.T if at.attr("transB", 0) else b
    sums = a @ b
    if at.has(6):
        sums = sums + at[6]
    found = at.attr("alpha", 1.0) * sums * at[1] * at[4]
    return stored_as(at, found, 7) if at.has(7) else found


@judges("com.microsoft::MatMulIntegerToFloat")
def matmul_integer_to_float(at: NodeSite) -> Array:
    a, b = less_zero(at[0], at.get(4), -2), less_zero(at[1], at.get(5), -1)
    found = np.matmul(a, b) * at[2].reshape(()) * (at[3] if at[3].size > 1 else at[3].reshape(()))
    return found + at[6] if at.has(6) else found


@judges("com.microsoft::DynamicQuantizeMatMul")
def dynamic_quantize_matmul(at: NodeSite) -> Array:
    x, scale, zero = dynamically(at)
    a, b = less_zero(x, zero, -2), less_zero(at[1], at.get(3), -1)
    found = np.matmul(a, b) * scale * (at[2] if at[2].size > 1 else at[2].reshape(()))
    return found + at[4] if at.has(4) else found
