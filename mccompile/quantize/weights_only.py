"""Weights as integers behind DequantizeLinear; everything else stays as it is, and no samples are needed.

8 bits: a scale per channel of the result. 4 bits: a scale per 32 terms of a sum, or per channel where an axis has
fewer; f16 holds these scales, so 4-bit weights take 53 % of what 8 bits in such blocks take in a compiled model.
Scales are those with the least square error among a few that cut off the largest weights.
"""

from __future__ import annotations

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import DTYPES, f32
from ..base.names import Names
from ..graph.ir import Graph, Node, Value
from ..ops.quantize import DequantizeLinear

BLOCK = 32
LEAST = 64  # weights; fewer are not worth their scales
_SHARES = np.linspace(0.7, 1.0, 13)  # of the largest weight, to be the largest that can be said
_HALF = np.finfo(np.float16)


def quantize_weights(graph: Graph, bits: int) -> list[str]:
    """Names of the weights that became integers; those inside of regions stay."""
    names = Names()
    for value in graph.values():
        names.take(value.name)
    axes = {value: {_axes(node, position) for node, position in value.uses} for value in graph.constants()}
    done = []
    for value, found in axes.items():
        chosen = next(iter(found)) if len(found) == 1 else None
        if chosen is None or value.constant is None or value.type.dtype is not f32 or graph.is_output(value):
            continue
        if value.constant.array.size >= LEAST and np.isfinite(value.constant.array).all():
            node = _dequantized(names, value, value.constant.array, *chosen, bits)
            graph.replace(value, node.output)
            graph.add(node)
            done.append(value.name)
    graph.sort()
    return done


def _axes(node: Node, position: int) -> tuple[int, int] | None:
    """The axes of the weights that count channels of the result, and terms of a sum (of groups: those of one group);
    None where an operand holds no weights."""
    value, fields = node.inputs[position], vars(node.op)
    rank = value.type.rank if value is not None else 0
    match node.op.name, position:
        case "Conv", 1:
            return 0, 1
        case "ConvTranspose", 1:
            return 1, 0
        case (("LSTM" | "GRU" | "RNN"), (1 | 2)):
            return 1, 2
        case "Gemm", 1:
            return (0, 1) if fields["transB"] else (1, 0)
        case "MatMul", 1 if rank >= 2:
            return rank - 1, rank - 2
        case "MatMul", 0 if rank >= 2:
            return rank - 2, rank - 1
        case "Gather", 0 if rank == 2 and fields["axis"] == 0:
            return 0, 1
    return None


def _dequantized(names: Names, value: Value, weights: np.ndarray, axis: int, along: int, bits: int) -> Node:
    dtype, most = DTYPES[f"i{bits}"], (1 << (bits - 1)) - 1
    if bits == 4 and weights.shape[along] >= BLOCK:
        op = DequantizeLinear(along, BLOCK)
        integers, scales = _in_blocks(weights, along, most)
    else:
        op = DequantizeLinear(axis)
        integers, scales = _per_channel(weights, axis, most)
    operands = [
        Value.of_constant(names.take(f"{value.name}/{what}"), Constant.of(array))
        for what, array in (("integers", integers.astype(dtype.numpy)), ("scale", scales))
    ]
    node = Node(op, operands, [None], (value.name,))
    node.outputs = [Value(names.take(f"{value.name}/floats"), op.infer(node.site())[0])]
    return node


def _per_channel(weights: np.ndarray, axis: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.moveaxis(weights, axis, 0)
    integers, scales = _rounded(rows.reshape(len(rows), -1), most)
    return np.moveaxis(integers.reshape(rows.shape), 0, axis), scales


def _in_blocks(weights: np.ndarray, along: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Blocks along an axis; the last may be shorter."""
    rows = np.moveaxis(weights, along, -1)
    outer, size = rows.shape[:-1], rows.shape[-1]
    count = -(-size // BLOCK)
    padded = np.pad(rows.reshape(-1, size), ((0, 0), (0, count * BLOCK - size)))
    integers, scales = _rounded(padded.reshape(-1, BLOCK), most)
    whole = integers.reshape(*outer, count * BLOCK)[..., :size]
    return np.moveaxis(whole, -1, along), np.moveaxis(scales.reshape(*outer, count), -1, along)


def _rounded(rows: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers of each row, and the scale with which they are closest to it."""
    top = np.abs(rows).max(1)
    top = np.where(top > 0, top, 1).astype(np.float32)
    best = np.full(len(rows), np.inf)
    scales = np.zeros(len(rows), np.float32)
    for share in _SHARES:
        tried = (top * np.float32(share / most)).astype(np.float32)
        if most < 8 and tried.min() >= _HALF.smallest_normal and tried.max() <= _HALF.max:
            tried = tried.astype(np.float16).astype(np.float32)
        error = ((_integers(rows, tried, most) * tried[:, None].astype(np.float64) - rows) ** 2).sum(1)
        scales = np.where(error <= best, tried, scales)
        best = np.minimum(error, best)
    return _integers(rows, scales, most), scales


def _integers(rows: np.ndarray, scales: np.ndarray, most: int) -> np.ndarray:
    return np.asarray(np.clip(np.rint(rows / scales[:, None]), -most, most))
