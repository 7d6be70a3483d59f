"""onnxruntime's operators over weights that are packed in blocks of few bits, each with a scale, decomposed.

Invariant: what packed numbers mean (a scale, a zero point, a table) stays operators.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.dtypes import DTYPES, u8
from ..graph.ir import Invalid, Unsupported
from .composed_body import Body
from .composed_pieces import FIX, packed_bits, plus

# What the 16 numbers of MatMulBnb4 mean: floats of 4 bits, and quantiles of the normal distribution
_FP4 = (0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    -1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
)  # fmt: skip
_ROUNDED = 4  # the accuracy_level that lets a runtime round activations to int8
_TABLES = (np.array([*_FP4, *(-value for value in _FP4)], np.float32), np.array(_NF4, np.float32))


def matmul_nbits(body: Body) -> None:
    """The right operand is [n, blocks, bytes] of packed numbers, with a scale and a zero point for each block."""
    depth, columns = int(body.attribute("K", 0)), int(body.attribute("N", 0))
    bits, block = packed_bits(body, int(body.attribute("bits", 4))), int(body.attribute("block_size", 32))
    if block < 1:
        raise Unsupported(f"blocks of {block} weights")
    blocks = -(-depth // block)
    numbers = [1, *([3] if body.has(3) and not body.type(3).dtype.is_float else []), *([4] if body.has(4) else [])]
    if not all(body.are_constant(index) for index in numbers):
        _computed_weights(body, (columns, blocks, block), depth, bits)
        return
    packed = contents(body, 1, "the packed weights")
    if packed.size * 8 != columns * blocks * block * bits:
        raise Invalid(f"{packed.size} bytes are not {columns} x {blocks} blocks of {block} numbers of {bits} bits")
    weights = unpacked(packed.reshape(columns, -1), bits).reshape(columns, blocks * block)[:, :depth]
    scales = body.op("Reshape", body.operand(2), body.ints(columns, blocks))
    x, half, zeros = body.operand(0), 1 << (bits - 1), ""
    which = np.arange(blocks)
    if body.has(4):
        order, which, block = _in_order(body, blocks)
        if (order != np.arange(depth)).any():
            x, weights = body.op("Gather", x, body.ints(*order), axis=-1), weights[:, order]
        scales = body.op("Gather", scales, body.ints(*which), axis=1)
    if body.has(3) and not body.type(3).dtype.is_float:
        points = unpacked(contents(body, 3, "the zero points").reshape(columns, -1), bits)[:, which]
        dtype = DTYPES[f"u{bits}"]
        zeros = body.constant(points.astype(dtype.numpy))
    else:
        weights, dtype = weights.astype(np.int16) - half, DTYPES[f"i{bits}"]
    packing = body.constant(np.ascontiguousarray(weights.astype(dtype.numpy)))
    form: dict[str, Any] = {"axis": 1, "block_size": block}
    if body.attribute("accuracy_level", 0) == _ROUNDED:
        floats = body.op("RoundingDequantizeLinear", packing, scales, zeros, domain="mccompile", **form)
    else:
        floats = body.op("DequantizeLinear", packing, scales, zeros, **form)
    made = body.op("MatMul", x, body.op("Transpose", floats, perm=[1, 0]))
    if body.has(3) and not zeros:  # floats: their products with the sums of blocks are taken away
        floats = body.op("Reshape", body.as_float("in3"), body.ints(columns, blocks))
        floats = body.op("Gather", floats, body.ints(*which), axis=1)
        less = body.op("Mul", body.op("Sub", floats, body.number(half)), scales)
        sums = _block_sums(body, x, len(which), block, depth)
        made = body.op("Sub", made, body.op("MatMul", sums, body.op("Transpose", less, perm=[1, 0])))
    body.give(0, plus(body, made, 5))


def _computed_weights(body: Body, shape: tuple[int, int, int], depth: int, bits: int) -> None:
    """The product with packed weights, zero points, or an order of blocks, that a run computes."""
    columns, blocks, block = shape
    count = body.type(1).count
    if not isinstance(count, int) or count * 8 != columns * blocks * block * bits:
        raise Invalid(f"{body.type(1)} are not {columns} x {blocks} blocks of {block} numbers of {bits} bits")
    numbers = body.op("Reshape", _computed_numbers(body, 1, bits), body.ints(columns, blocks, block))
    if body.has(4):  # every element says which block is its own
        numbers = body.op("Reshape", numbers, body.ints(columns, blocks * block, 1))
        numbers = body.op("Slice", numbers, body.ints(0), body.ints(depth), body.ints(1))
    zeros = body.number(1 << (bits - 1))
    if body.has(3):
        points = body.as_float("in3") if body.type(3).dtype.is_float else _computed_numbers(body, 3, bits)
        rows = body.op("Reshape", points, body.ints(columns, -1))
        cut = body.op("Slice", rows, body.ints(0), body.ints(blocks), body.ints(1))
        zeros = _of_elements(body, body.op("Unsqueeze", cut, body.ints(2)))
    scales = _of_elements(body, body.op("Reshape", body.operand(2), body.ints(columns, blocks, 1)))
    whole = body.op("Mul", body.op("Sub", numbers, zeros), scales)
    rows = body.op("Reshape", whole, body.ints(columns, -1))
    weights = body.op("Slice", rows, body.ints(0), body.ints(depth), body.ints(1))
    made = body.op("MatMul", body.operand(0), body.op("Transpose", weights, perm=[1, 0]))
    body.give(0, plus(body, made, 5))


def _of_elements(body: Body, blocks: str) -> str:
    """What belongs to blocks, for each element where these say which block is theirs."""
    return body.op("Gather", blocks, body.operand(4), axis=1) if body.has(4) else blocks


def _computed_numbers(body: Body, index: int, bits: int) -> str:
    """Packed numbers as floats, along a new axis."""
    if body.type(index).dtype is not u8:
        raise Unsupported(f"packed numbers {body.type(index)} that a run computes", "make them constants of the model")
    return body.as_float(_digits(body, f"in{index}", bits))


def _digits(body: Body, packed: str, bits: int) -> str:
    """The numbers in bytes, the lowest bits of each byte first, along a new axis."""
    parts = []
    for shift in range(0, 8, bits):
        moved = body.op("BitShift", packed, body.constant(np.array(shift, np.uint8)), direction="RIGHT")
        low = body.op("BitwiseAnd", moved, body.constant(np.array((1 << bits) - 1, np.uint8)))
        parts.append(body.op("Unsqueeze", low, body.ints(-1)))
    return body.op("Concat", *parts, axis=-1)


def _in_order(body: Body, blocks: int) -> tuple[np.ndarray, np.ndarray, int]:
    """For sums whose elements say which scale is theirs: their order with equal ones side by side, the scale of each
    block then, and the elements of a block. Where some scales are those of more elements, they come several times."""
    value = body.value(4)
    assert value is not None and value.constant is not None
    numbers = value.constant.array.reshape(-1).astype(np.int64)
    used, counts = np.unique(numbers, return_counts=True)
    if not numbers.size or used[0] < 0 or used[-1] >= blocks:
        raise Invalid(f"blocks {used} are not among {blocks}")
    block = math.gcd(*map(int, counts[:-1])) or len(numbers)
    return np.argsort(numbers, kind="stable"), np.repeat(used, -(-counts // block)), block


def _block_sums(body: Body, x: str, blocks: int, block: int, depth: int) -> str:
    """The sum of every block along the last axis."""
    rank = body.type(0).rank
    if blocks * block > depth:
        x = body.op("Pad", x, body.ints(*[0] * (2 * rank - 1), blocks * block - depth))
    cut = body.op("Reshape", x, body.ints(*[0] * (rank - 1), blocks, block))
    return body.op("ReduceSum", cut, body.ints(-1), keepdims=0)


def contents(body: Body, index: int, what: str) -> np.ndarray:
    value = body.value(index)
    if value is None or value.constant is None:
        raise Unsupported(f"{what} are computed at run time", "make them a constant of the model")
    return value.constant.array.astype(np.uint8)


def unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """Numbers from bytes, the lowest bits first."""
    parts = [(rows >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(*rows.shape[:-1], -1)


def matmul_bnb4(body: Body) -> None:
    """The right operand is one row of packed numbers, the first one in the upper half of a byte."""
    body.only("K", "N", "block_size", "quant_type", "training_mode", "transB")
    depth, columns = int(body.attribute("K", 0)), int(body.attribute("N", 0))
    block, kind = int(body.attribute("block_size", 0)), int(body.attribute("quant_type", 1))
    if not body.attribute("transB", 1) or kind not in (0, 1) or block < 1:
        raise Unsupported("weights that are not transposed, or of another type than 4-bit floats")
    count = depth * columns
    packed = contents(body, 1, "the packed weights").reshape(-1)
    numbers = np.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)[:count]
    if numbers.size != count:
        raise Invalid(f"{packed.size} bytes are not {columns} x {depth} numbers of 4 bits")
    values = body.op("Gather", body.constant(_TABLES[kind]), body.constant(numbers.astype(np.int64)), axis=0)
    scales = body.op("Gather", body.operand(2), body.constant(np.arange(count) // block), axis=0)
    weights = body.op("Reshape", body.op("Mul", values, scales), body.ints(columns, depth))
    body.give(0, body.op("MatMul", body.operand(0), body.op("Transpose", weights, perm=[1, 0])))


def gather_block_quantized(body: Body) -> None:
    """Rows of a table of packed numbers, which are unpacked once they are gathered."""
    body.only("bits", "block_size", "gather_axis", "quantize_axis")
    table, scales, rank = body.type(0), body.type(2), body.type(0).rank
    bits, block = int(body.attribute("bits", 4)), int(body.attribute("block_size", 128))
    along, blocked = (int(body.attribute(n, d)) % rank for n, d in (("gather_axis", 0), ("quantize_axis", 1)))
    in_bytes, size = table.dtype is u8, table.shape[blocked]
    if not isinstance(size, int):
        raise Unsupported(f"{table}, whose blocks are known only at run time", FIX)
    if along == blocked or block < 1 or not ((blocked == rank - 1 and bits in (2, 4, 8)) if in_bytes else bits == 4):
        raise Unsupported(f"{table} of {bits} bits in blocks of {block} along axis {blocked}, gathered along {along}")
    size, blocks = size * 8 // bits if in_bytes else size, scales.shape[blocked]
    alike = all(scales.shape[axis] == table.shape[axis] for axis in range(rank) if axis != blocked)
    if not alike or not isinstance(blocks, int) or blocks * block < size:
        raise Unsupported(f"scales {scales} that are not one for each {block} of {size} numbers of every row")
    order = [*(axis for axis in range(rank) if axis != blocked), blocked]  # blocks last
    group = body.constant(np.arange(size) // block)  # which block each element belongs to

    def rows(name: str) -> str:
        return body.op("Gather", name, body.operand(1), axis=order.index(along))

    if in_bytes:
        packed, points, unpacked, none = body.operand(0), body.operand(3), bits, 1 << (bits - 1)
    else:
        none = 0 if table.dtype is DTYPES["u4"] else 8  # signed numbers are stored with 8 more
        packed = body.constant(_pairs(np.moveaxis(_numbers(body, 0, none), blocked, -1)))
        points = body.constant(np.moveaxis(_numbers(body, 3, none), blocked, -1)) if body.has(3) else ""
        unpacked = 8  # the zero points
    numbers = _unpacked_rows(body, rows(packed), bits)
    if not in_bytes and size % 2:
        numbers = body.op("Slice", numbers, body.ints(0), body.ints(size), body.ints(-1))
    zeros = body.number(none)
    if points:
        points = _unpacked_rows(body, rows(points), unpacked)
        zeros = body.op("Gather", body.as_float(points), group, axis=-1)
    factors = body.operand(2) if blocked == rank - 1 else body.op("Transpose", body.operand(2), perm=order)
    factors = body.op("Gather", rows(factors), group, axis=-1)
    made = body.op("Mul", body.op("Sub", body.as_float(numbers), zeros), factors)
    if blocked != rank - 1:
        last = rank - 2 + body.type(1).rank
        back = list(range(last))
        back.insert(blocked + body.type(1).rank - 1 if blocked > along else blocked, last)
        made = body.op("Transpose", made, perm=back)
    body.give(0, made)


def _numbers(body: Body, index: int, more: int) -> np.ndarray:
    """Numbers of 4 bits as bytes that are not negative."""
    value = body.value(index)
    if value is None or value.constant is None:
        raise Unsupported(f"{value and value.type} that is computed at run time", "make it a constant of the model")
    return (value.constant.array.astype(np.int16) + more).astype(np.uint8)


def _pairs(numbers: np.ndarray) -> np.ndarray:
    """Two of 4 bits in each byte, the first in the lower half."""
    if numbers.shape[-1] % 2:
        numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, 1)])
    return np.asarray(numbers[..., ::2] | (numbers[..., 1::2] << 4))


def _unpacked_rows(body: Body, rows: str, bits: int) -> str:
    """Numbers from bytes as they are computed, the lowest bits first."""
    if bits == 8:
        return rows
    rank = body.type(0).rank - 1 + body.type(1).rank
    return body.op("Reshape", _digits(body, rows, bits), body.ints(*[0] * (rank - 1), -1))
