"""Quantization with odd zero points. Scales are powers of two, so that all that stands between two quantized tensors is
exact, and ties are ties for everybody; scales of any size are those of tests/passes/qdq_graphs.py (networks.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..builder import Builder, Value
from .registry import makes
from .windows import picture, window

BYTES = ("uint8", "int8", "uint8", "int8", "uint16", "int16")
SCALES = (0.125, 0.25, 0.5, 0.0625)
ZEROS = (0, 1, 3, 7, 117, -5, -128)


def zero_of(g: Builder, dtype: str) -> int:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return int(g.pick([zero for zero in ZEROS if low <= zero <= high]))


def scheme(g: Builder, dtype: str, count: int = 0) -> list[Value]:
    """Scale and zero point; `count`: per channel."""
    scales = np.array([g.pick(SCALES) for _ in range(max(count, 1))], np.float32)
    zeros = np.array([zero_of(g, dtype) for _ in range(max(count, 1))], dtype)
    if count == 0:
        scales, zeros = scales.reshape(()), zeros.reshape(())
    made = [g.constant(scales), g.constant(zeros)]
    made[0].exact = True
    return made


def quantize(g: Builder, x: Value, dtype: str = "") -> Value | None:
    dtype = dtype or g.pick(BYTES if g.opset >= 21 else BYTES[:4])
    return g.node("QuantizeLinear", [x, *scheme(g, dtype)], exact=True)


def dequantize(g: Builder, q: Value) -> Value | None:
    return g.node("DequantizeLinear", [q, *scheme(g, q.dtype)], exact=True)


def weights(g: Builder, dtype: str, shape: Sequence[int]) -> Value | None:
    scale, zero = scheme(g, dtype)
    q = g.weights(dtype, shape, int(zero.arrays[0]))
    return g.node("DequantizeLinear", [q, scale, zero], exact=True)


@makes("QuantizeLinear", opset=19)
def quantized(g: Builder, op: str) -> Value | None:
    x = g.any(("float32",), exact=True)
    if x.rank and x.is_fixed(-1) and x.shape[-1] and g.maybe(0.2):
        dtype = g.pick(BYTES[:4])
        return g.node(op, [x, *scheme(g, dtype, x.shape[-1])], axis=x.rank - 1, exact=True)
    q = quantize(g, x)
    return q and (dequantize(g, q) if g.maybe(0.7) else q)


@makes("DequantizeLinear", opset=19)
def between(g: Builder, op: str) -> Value | None:
    """Operators between DequantizeLinear and QuantizeLinear, as quantizers leave them; or weights of few bits."""
    if g.opset >= 21 and g.maybe(0.2):
        return _pack_low_bit_weights(g)
    q = g.any(("uint8", "int8"), (2, 4))
    x = dequantize(g, q)
    if x is None:
        return None
    made: Value | None = x
    for _ in range(g.integer(0, 2)):
        made = made and g.pick(_STEPS)(g, made)
    return made and quantize(g, made, g.pick(["uint8", "int8"]))


def _relu(g: Builder, x: Value) -> Value | None:
    return g.node("Relu", [x], exact=True)


def _clip(g: Builder, x: Value) -> Value | None:
    return g.node("Clip", [x, g.constant(0, "float32"), g.constant(6, "float32")], exact=True)


def _add(g: Builder, x: Value) -> Value | None:
    dims = g.dims_of(x)
    other = dims is not None and dequantize(g, g.input(g.pick(["uint8", "int8"]), dims))
    return g.node(g.pick(["Add", "Sub", "Mul", "Max", "Min"]), [x, other], exact=True) if other else None


def _turn(g: Builder, x: Value) -> Value | None:
    return g.node("Transpose", [x], perm=g.chance.permutation(x.rank).tolist(), exact=True)


def _part(g: Builder, x: Value) -> Value | None:
    axis = g.integer(0, x.rank - 1)
    ins = [g.constant([n]) for n in (g.pick([0, 1]), 1 << 31, axis, g.pick([1, 2]))]
    return g.node("Slice", [x, *ins], exact=True)


def _pack_low_bit_weights(g: Builder) -> Value | None:
    """A product with a matrix whose blocks have scales of their own, or its columns; or rows of a table, which may be
    multiplied by the table again."""
    if g.maybe(0.3):
        return _rows(g)
    x = g.any(("float32",), (2, 4), exact=True)
    depth, columns, dtype = x.shape[-1], g.pick([1, 3, 8, 17]), g.pick(["int4", "uint4", "int8", "uint8"])
    if not isinstance(depth, int) or not depth:
        return None
    block = g.pick([0, 2, 3, 16])
    scales = (-(-depth // block), columns) if block else (columns,)
    ins = [g.drawn(dtype, (depth, columns)), g.constant(np.full(scales, g.pick(SCALES), np.float32))]
    ins += [g.drawn(dtype, scales)] * g.maybe(0.5)
    more = {"axis": 0, "block_size": block} if block else {"axis": 1}
    w = g.node("DequantizeLinear", ins, exact=True, **more)
    return w and g.node("MatMul", [x, w], exact=True)


def _rows(g: Builder) -> Value | None:
    size, depth, dtype = g.pick([1, 5, 16]), g.pick([1, 2, 7, 16, 33]), g.pick(["int4", "uint4", "int8", "uint8"])
    block, axis = g.pick([0, 0, 2, 16]), g.pick([0, 1])
    each = [size, depth]
    each[axis] = -(-each[axis] // block) if block else each[axis]
    scales = g.pick([(), tuple(each) if block else (each[axis],)]) if not block else tuple(each)
    ins = [g.drawn(dtype, (size, depth)), g.constant(np.array(g.chance.choice(SCALES, scales), np.float32))]
    ins += [g.drawn(dtype, scales)] * g.maybe(0.5)
    table = g.node("DequantizeLinear", ins, exact=True, axis=axis, **({"block_size": block} if block else {}))
    along = g.pick([0, 0, 1])
    places = g.index(
        -(size, depth)[along], (size, depth)[along] - 1, g.dims(g.integer(0, 2), 12, (1, 2, 3, 4)), "int64"
    )
    rows = table and g.node("Gather", [table, places], axis=along, exact=True)
    if not rows or along or g.maybe(0.6):
        return rows
    turned = g.node("Transpose", [table], perm=[1, 0], exact=True)  # a head that is tied to the embedding
    return turned and g.node("MatMul", [rows, turned], exact=True)


def _product(g: Builder, x: Value) -> Value | None:
    if not x.is_fixed(-1) or not x.shape[-1]:
        return None
    columns = g.pick([1, 3, 8, 17])
    w = weights(g, "int8", (x.shape[-1], columns))
    return w and g.node("MatMul", [x, w], exact=True)


def _conv(g: Builder, x: Value) -> Value | None:
    if x.rank not in (3, 4) or not x.is_fixed(1) or not x.size:
        return None
    form, channels = window(g, x), x.shape[1]
    depthwise = g.maybe(0.3)
    out, each = (channels, 1) if depthwise else (g.pick([1, 3, 4, 16]), channels)
    kernel = form["kernel_shape"]
    assert isinstance(kernel, list)
    dtype = g.pick(["int8", "uint8"])
    w = weights(g, dtype, (out, each, *kernel))
    return w and g.node("Conv", [x, w], group=channels if depthwise else 1, exact=True, **form)


def _pool(g: Builder, x: Value) -> Value | None:
    return g.node("MaxPool", [x], exact=True, **window(g, x, True)) if x.rank in (3, 4) and x.size else None


def _sum(g: Builder, x: Value) -> Value | None:
    axes = g.constant(g.some(range(x.rank)))
    return g.node(g.pick(["ReduceSum", "ReduceMax"]), [x, axes], keepdims=1, exact=True) if x.size else None


_STEPS = (_relu, _clip, _add, _add, _turn, _part, _product, _conv, _conv, _pool, _sum)


@makes("DynamicQuantizeLinear")
def dynamic(g: Builder, op: str) -> Value | None:
    x = g.any(("float32",), (1, 3))
    found = g.nodes_(op, [x], 3) if x.size else None
    if not found:
        return None
    for value in found:
        value.exact = False
    return found[1]


@makes("QLinearMatMul", opset=19)
def q_matmul(g: Builder, op: str) -> Value | None:
    rows, inner, columns = g.integer(1, 9), g.pick([1, 3, 4, 7, 16, 33]), g.pick([1, 2, 5, 8, 17])
    x, y = g.leaf(g.pick(BYTES[:4]), (rows, inner)), g.leaf(g.pick(BYTES[:4]), (inner, columns))
    return g.node(op, [x, *scheme(g, x.dtype), y, *scheme(g, y.dtype), *scheme(g, x.dtype)])


@makes("QLinearConv")
def q_conv(g: Builder, op: str) -> Value | None:
    x = picture(g, 2, ("uint8", "int8"))
    form = window(g, x)
    kernel = form["kernel_shape"]
    assert isinstance(kernel, list)
    out = g.pick([1, 2, 4, 9, 16])
    dtype = g.pick(["int8", x.dtype])
    found = scheme(g, dtype)
    w = g.weights(dtype, (out, x.shape[1], *kernel), int(found[1].arrays[0]))
    bias = [g.drawn("int32", (out,), "integer", -500, 500)] if g.maybe() else []
    return g.node(op, [x, *scheme(g, x.dtype), w, *found, *scheme(g, x.dtype), *bias], **form)
