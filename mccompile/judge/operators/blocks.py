"""Weights of few bits with a scale per block, by onnxruntime's documentation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges

# bitsandbytes' tables of 4 bits
_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip


def unpacked(data: Array, bits: int) -> Array:
    """Elements of a last axis of bytes, the lowest bits first."""
    per = 8 // bits
    shifts = np.arange(per) * bits
    found = (data.astype(np.int64)[..., None] >> shifts) & ((1 << bits) - 1)
    return found.reshape(*data.shape[:-1], data.shape[-1] * per)


@judges("com.microsoft::MatMulNBits")
def matmul_nbits(at: NodeSite) -> Array:
    bits, block, k, n = at.attr("bits", 4), at.attr("block_size"), at.attr("K"), at.attr("N")
    if bits not in (2, 4, 8) or at.has(4):
        raise NoWitness(f"MatMulNBits of {bits} bits, or with g_idx")
    blocks = -(-k // block)
    weights = unpacked(at[1].reshape(n, blocks, -1), bits)[..., :block].astype(np.float64)
    scales = at[2].reshape(n, blocks, 1)
    zero: Any = float(1 << (bits - 1))
    if at.has(3):
        given = at[3]
        zero = given if given.dtype.kind == "f" else unpacked(given.reshape(n, -1), bits)
        zero = zero.reshape(n, -1)[:, :blocks, None].astype(np.float64)
    real = ((weights - zero) * scales).reshape(n, blocks * block)[:, :k]
    return at[0] @ real.T + at.get(5, 0.0)


@judges("com.microsoft::MatMulBnb4")
def matmul_bnb4(at: NodeSite) -> Array:
    k, n, block = at.attr("K"), at.attr("N"), at.attr("block_size")
    data = at[1].reshape(-1).astype(np.int64)
    numbers = np.stack([data >> 4, data & 15], -1).reshape(-1)[: n * k]  # the higher bits first
    fp4 = np.array([*_FP4, *(-each for each in _FP4)])
    table = np.array(_NF4) if at.attr("quant_type") == 1 else fp4
    scales = np.repeat(at[2].reshape(-1), block)[: n * k]
    weights = (table[numbers] * scales).reshape(n, k)
    return at[0] @ (weights.T if at.attr("transB", 1) else weights.reshape(k, n))


@judges("com.microsoft::GatherBlockQuantized")
def gather_block_quantized(at: NodeSite) -> Array:
    bits, block = at.attr("bits", 4), at.attr("block_size", 128)
    data, indices, scales = at[0], at[1].astype(np.int64), at[2]
    axis, along = at.attr("gather_axis", 0) % data.ndim, at.attr("quantize_axis", 1) % data.ndim
    packed = at.type(0) == "uint8"
    if packed:
        if along != data.ndim - 1:
            raise NoWitness("bytes packed along other than the last axis")
        data = unpacked(data, bits)
    zero: Any = float(1 << (bits - 1)) if packed else 0.0
    if at.has(3):
        zero = unpacked(at[3], bits)[..., : scales.shape[-1]] if packed else at[3]
        zero = np.take(np.repeat(zero.astype(np.float64), block, along), np.arange(data.shape[along]), along)
    wide = np.take(np.repeat(scales, block, along), np.arange(data.shape[along]), along)
    real = (data.astype(np.float64) - zero) * wide
    return np.take(real, np.where(indices < 0, indices + data.shape[axis], indices), axis)
