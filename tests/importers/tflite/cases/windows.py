"""Convolutions, products, pools, resizing, normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..draw import BYTES, FLOAT, Draw, draws


def weights(draw: Draw, x: int, shape: tuple[int, ...], axis: int, biased: bool = True) -> tuple[list[int], int]:
    """Weights and bias for an input as it is quantized, and how many channels come out."""
    net, type = draw.net, draw.net.tensors[x]["type"]
    channels = shape[axis]
    if type == "FLOAT32":
        found = [draw.constant(shape)]
        return found + ([draw.constant((channels,))] if biased else []), channels
    per_channel = type != "UINT8" and draw.flip(0.7)
    scales = draw.chance.uniform(0.002, 0.02, channels if per_channel else 1)
    if type == "UINT8":
        array, zero = draw.chance.integers(0, 256, shape).astype(np.uint8), draw.int(100, 150)
    else:
        array, zero = draw.chance.integers(-127, 128, shape).astype(np.int8), 0
    found = [net.constant(array, scales, zero, axis)]
    if biased:
        wide = np.int64 if type == "INT16" else np.int32
        bias = draw.chance.integers(-2000, 2000, channels).astype(wide)
        found.append(net.constant(bias, scales * net.tensors[x]["scale"]))
    return found, channels


def result(draw: Draw, x: int, shape: Sequence[int], terms: int) -> int:
    """With a scale that what comes out fits."""
    known = draw.net.tensors[x]
    if known["type"] == "FLOAT32":
        return draw.out(shape)
    reach = {"INT8": 100, "UINT8": 100, "INT16": 20000}[known["type"]]
    span = {"INT8": 128, "UINT8": 128, "INT16": 32768}[known["type"]]
    scale = known["scale"] * reach * 0.008 * 70 * np.sqrt(terms) / span * draw.chance.uniform(0.7, 4)
    zero = 0 if known["type"] == "INT16" else draw.int(*((-100, 100) if known["type"] == "INT8" else (30, 220)))
    return draw.out(shape, known["type"], scale=float(np.float32(scale)), zero=zero)


def sizes(draw: Draw, count: int, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Any:
    """Input and output sizes, and the padding."""
    padding = draw.pick(0, 1)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    whole = [draw.int(r if padding else 1, r + 8) for r in reach]
    out = [-(-(n - r + 1) // s) if padding else -(-n // s) for n, r, s in zip(whole, reach, strides, strict=True)]
    return whole, out, padding


_TYPES = (*FLOAT, "INT8", "INT8", "UINT8", "INT16")


def _window(draw: Draw, longest: int) -> tuple[list[int], list[int], list[int]]:
    """Kernel, strides and dilations."""
    kernel, strides = [draw.int(1, 4), draw.int(1, 4)], [draw.int(1, longest)] * 2
    return kernel, strides, [draw.pick(1, 1, 2)] * 2 if strides[0] == 1 else [1, 1]


def _options(draw: Draw, padding: int, strides: Sequence[int], dilations: Sequence[int], type: str) -> dict[str, int]:
    """Of convolutions."""
    return {
        "Padding": padding,
        "StrideH": strides[0],
        "StrideW": strides[1],
        "DilationHFactor": dilations[0],
        "DilationWFactor": dilations[1],
        "FusedActivationFunction": draw.pick(0, 1, 3) if type != "INT16" else draw.pick(0, 1),
    }


@draws("CONV_2D")
def _conv(draw: Draw) -> Sequence[int]:
    kernel, strides, dilations = _window(draw, 3)
    whole, out, padding = sizes(draw, 2, kernel, strides, dilations)
    type = draw.pick(*_TYPES)
    channels, groups = draw.int(1, 5), 1
    if type in ("FLOAT32", "INT8") and draw.flip(0.15):
        groups, channels = 2, channels * 2
    x = draw.input((draw.pick(1, 1, 2), *whole, channels), type)
    made = draw.int(1, 4) * groups
    operands, made = weights(draw, x, (made, *kernel, channels // groups), 0)
    y = result(draw, x, (draw.net.tensors[x]["shape"][0], *out, made), kernel[0] * kernel[1] * channels)
    return draw.op([x, *operands], [y], "Conv2DOptions", **_options(draw, padding, strides, dilations, type))


@draws("DEPTHWISE_CONV_2D")
def _depthwise(draw: Draw) -> Sequence[int]:
    kernel, strides, dilations = _window(draw, 2)
    whole, out, padding = sizes(draw, 2, kernel, strides, dilations)
    type = draw.pick(*_TYPES)
    channels, times = draw.int(1, 6), draw.pick(1, 1, 2, 3)
    x = draw.input((1, *whole, channels), type)
    operands, made = weights(draw, x, (1, *kernel, channels * times), 3)
    y = result(draw, x, (1, *out, made), kernel[0] * kernel[1])
    options = _options(draw, padding, strides, dilations, type)
    return draw.op([x, *operands], [y], "DepthwiseConv2DOptions", DepthMultiplier=times, **options)


@draws("TRANSPOSE_CONV")
def _transpose_conv(draw: Draw) -> Sequence[int]:
    kernel, strides = [draw.int(1, 4), draw.int(1, 4)], [draw.int(1, 3)] * 2
    small, padding = [draw.int(1, 5), draw.int(1, 5)], draw.pick(0, 1)
    kernel = [max(k, s) for k, s in zip(kernel, strides, strict=True)]
    if padding:
        out = [(n - 1) * s + k for n, s, k in zip(small, strides, kernel, strict=True)]
    else:
        out = [n * s - draw.int(0, s - 1) for n, s in zip(small, strides, strict=True)]
    type, channels = draw.pick(*FLOAT, "INT8", "UINT8", "INT16"), draw.int(1, 4)
    x = draw.input((1, *small, channels), type)
    operands, made = weights(draw, x, (draw.int(1, 4), *kernel, channels), 0, draw.flip())
    y = result(draw, x, (1, *out, made), kernel[0] * channels)
    shape = draw.ints(1, *out, made)
    fields = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    return draw.op([shape, operands[0], x, *operands[1:]], [y], "TransposeConvOptions", **fields)


@draws("CONV_3D")
def _conv_3d(draw: Draw) -> Sequence[int]:
    kernel, strides = [draw.int(1, 3) for _ in range(3)], [draw.int(1, 2) for _ in range(3)]
    whole, out, padding = sizes(draw, 3, kernel, strides, [1, 1, 1])
    channels, made = draw.int(1, 3), draw.int(1, 3)
    x = draw.input((1, *whole, channels))
    operands = [draw.constant((*kernel, channels, made)), draw.constant((made,))]
    fields = {f"Stride{axis}": stride for axis, stride in zip("DHW", strides, strict=True)}
    fields |= {f"Dilation{axis}Factor": 1 for axis in "DHW"}
    return draw.op([x, *operands], [draw.out((1, *out, made))], "Conv3DOptions", Padding=padding, **fields)


@draws("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(draw: Draw) -> Sequence[int]:
    kernel, strides = [draw.int(1, 3) for _ in range(3)], [draw.int(1, 2) for _ in range(3)]
    kernel = [max(k, s) for k, s in zip(kernel, strides, strict=True)]
    small, padding = [draw.int(1, 4) for _ in range(3)], draw.pick(0, 1)
    out = [(n - 1) * s + k if padding else n * s for n, s, k in zip(small, strides, kernel, strict=True)]
    channels, made = draw.int(1, 3), draw.int(1, 3)
    x = draw.input((1, *small, channels))
    operands = [draw.ints(1, *out, made), draw.constant((*kernel, made, channels)), x]
    fields = {f"Stride{axis}": stride for axis, stride in zip("DHW", strides, strict=True)}
    fields |= {f"Dilation{axis}Factor": 1 for axis in "DHW"}
    return draw.op(operands, [draw.out((1, *out, made))], "Conv3DOptions", Padding=padding, **fields)


@draws("FULLY_CONNECTED")
def _fully_connected(draw: Draw) -> Sequence[int]:
    type, depth, kept = draw.pick(*FLOAT, "INT8", "INT8", "UINT8", "INT16"), draw.int(1, 20), draw.flip()
    shape = (*draw.shape(1, 2, 3), depth)
    x = draw.input(shape, type)
    operands, made = weights(draw, x, (draw.int(1, 6), depth), 0, draw.flip(0.8))
    if type == "INT8" and draw.flip(0.3):  # halves of bytes
        known = draw.net.tensors[operands[0]]
        known["type"], known["data"] = "INT4", known["data"] >> 4
    out = (*shape[:-1], made) if kept else (int(np.prod(shape[:-1])), made)
    y = result(draw, x, out, depth)
    return draw.op(
        [x, *operands], [y], "FullyConnectedOptions", KeepNumDims=kept, FusedActivationFunction=draw.pick(0, 1)
    )


@draws("BATCH_MATMUL")
def _batch_matmul(draw: Draw) -> Sequence[int]:
    type = draw.pick(*FLOAT, "INT8")
    batch, (m, k, n) = draw.shape(0, 2, 3), draw.shape(3, 3, 5)
    adjoint = draw.flip(), draw.flip()
    first = (*batch, *((k, m) if adjoint[0] else (m, k)))
    second = (*batch, *((n, k) if adjoint[1] else (k, n)))
    a = draw.input(first, type)
    b = draw.constant(second, type) if draw.flip(0.3) else draw.input(second, type)
    return draw.op([a, b], [draw.out((*batch, m, n), type)], "BatchMatMulOptions", AdjX=adjoint[0], AdjY=adjoint[1])


@draws("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def _pool(draw: Draw) -> Sequence[int]:
    kernel, strides = [draw.int(1, 4), draw.int(1, 4)], [draw.int(1, 3), draw.int(1, 3)]
    whole, out, padding = sizes(draw, 2, kernel, strides, [1, 1])
    type, channels = (
        draw.pick(*FLOAT, *(("INT8", "UINT8", "INT16") if draw.name != "L2_POOL_2D" else ())),
        draw.int(1, 5),
    )
    x = draw.input((draw.pick(1, 2), *whole, channels), type)
    y = draw.out((draw.net.tensors[x]["shape"][0], *out, channels), type, **draw.alike(x))
    fields = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
    fields |= {"FilterHeight": kernel[0], "FilterWidth": kernel[1], "FusedActivationFunction": draw.pick(0, 0, 1, 3)}
    return draw.op([x], [y], "Pool2DOptions", **fields)


@draws("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(draw: Draw) -> Sequence[int]:
    bilinear = draw.name == "RESIZE_BILINEAR"
    whole, out, channels = [draw.int(1, 7), draw.int(1, 7)], [draw.int(1, 12), draw.int(1, 12)], draw.int(1, 4)
    if not bilinear and draw.flip(0.2):  # where coordinates in floats lie beside the exact ones
        whole[0], out[0] = draw.pick((2, 41), (4, 75), (2, 82), (8, 93), (6, 74), (14, 45))
    x = draw.input((draw.pick(1, 2), *whole, channels), draw.pick(*FLOAT, *BYTES))
    known = draw.net.tensors[x]
    y = draw.out((known["shape"][0], *out, channels), known["type"], **draw.alike(x))
    modes = [{}, {"AlignCorners": True}, {"HalfPixelCenters": True}]
    modes += [] if bilinear else [{"AlignCorners": True, "HalfPixelCenters": True}]
    mode = draw.pick(*modes)
    options = "ResizeBilinearOptions" if bilinear else "ResizeNearestNeighborOptions"
    return draw.op([x, draw.ints(*out)], [y], options, **mode)


@draws("SOFTMAX", steps=2, halves=32)
def _softmax(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(1, 4, 12), draw.pick(*FLOAT, "INT8", "UINT8", "INT16")
    q: dict[str, Any] = {"INT8": {"scale": 1 / 256, "zero": -128}, "UINT8": {"scale": 1 / 256, "zero": 0}}.get(type, {})
    q = {"scale": 1 / 32768, "zero": 0} if type == "INT16" else q
    x = draw.input(shape, type, scale=0.0005, zero=0) if type == "INT16" else draw.input(shape, type)
    beta = 1.0 if type != "FLOAT32" or draw.flip() else 0.5
    return draw.op([x], [draw.out(shape, type, **q)], "SoftmaxOptions", Beta=beta)


@draws("LOG_SOFTMAX")
def _log_softmax(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(1, 4, 12), draw.pick(*FLOAT, "INT8")
    q = {"scale": 16 / 256, "zero": 127} if type == "INT8" else {}
    return draw.op([draw.input(shape, type)], [draw.out(shape, type, **q)], "LogSoftmaxOptions")


@draws("L2_NORMALIZATION")
def _l2(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(2, 4), draw.pick(*FLOAT, *BYTES)
    q = {"INT8": {"scale": 1 / 128, "zero": 0}, "UINT8": {"scale": 1 / 128, "zero": 128}}.get(type, {})
    return draw.op([draw.input(shape, type)], [draw.out(shape, type, **q)], "L2NormOptions")


@draws("LOCAL_RESPONSE_NORMALIZATION", optimised=True)  # the reference leaves out the last channel
def _lrn(draw: Draw) -> Sequence[int]:
    shape = draw.shape(4, 4)
    fields = {"Radius": draw.int(1, 3), "Bias": 1.0, "Alpha": draw.pick(0.1, 0.5), "Beta": draw.pick(0.5, 0.75)}
    return draw.op([draw.input(shape)], [draw.out(shape)], "LocalResponseNormalizationOptions", **fields)
