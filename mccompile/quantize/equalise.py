"""Cross-layer equalisation: channels between two layers are brought to alike ranges before they get one scale.

Where nothing but a ReLU, pooling or flattening lies between two layers with constant weights, a channel can be divided
by a positive number in the first and multiplied by it in the second. Weights of the first have a scale per channel and
do not mind; the tensor between has one scale, and gains. Invariant: factors are powers of two, so the float network
computes the same bits (unless numbers become denormal).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..base.constant import Constant
from ..base.records import dataclass
from ..graph.ir import Graph, Node, Value
from ..ops.conv import Conv
from ..ops.matmul import Gemm

_BETWEEN = ("Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Identity")
_MOST = 6  # doublings


@dataclass(frozen=True)
class Pair:
    first: Node
    between: Value  # what gets a scale: behind the activation of the first layer
    second: Node


def pairs(graph: Graph) -> list[Pair]:
    """The layers that can be equalised."""
    found = []
    for node in graph.nodes:
        if not _has_own_weights(graph, node) or not _takes_out(node):
            continue
        value, between = node.output, node.output
        while (reader := _only_reader(graph, value)) is not None and _keeps_channels(reader):
            value = reader.output
            between = value if reader.op.name in ("Relu", "LeakyRelu") else between
        if reader is None or value.uses != {(reader, 0): None} or not _has_own_weights(graph, reader):
            continue
        if _takes_in(reader, _channels(node)):
            found.append(Pair(node, between, reader))
    return found


def groups(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Pairs that have layers in common, in order."""
    found: list[list[Pair]] = []
    for pair in pairs:
        before = next((group for group in found if group[-1].second is pair.first), None)
        if before is None:
            found.append([pair])
        else:
            before.append(pair)
    return found


def equalise(graph: Graph, pairs: list[Pair], ranges: Mapping[str, np.ndarray]) -> None:
    """Changes the weights; `ranges` holds the largest magnitude in each channel of the tensors between."""
    for pair in pairs:
        factors = _factors(ranges[pair.between.name], _columns(pair.second))
        _scale_out(graph, pair.first, 1 / factors)
        _scale_in(graph, pair.second, factors)


def largest(tensor: np.ndarray) -> np.ndarray:
    """Of a tensor between two layers, per channel."""
    rows = np.moveaxis(tensor, 1, 0).reshape(tensor.shape[1], -1)
    return np.asarray(np.abs(rows).max(1))


def _factors(results: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    """Powers of two that make the products of a channel's range and those of its weights alike."""
    with np.errstate(divide="ignore"):
        wanted = np.log2(results.astype(np.float64))
        if columns is not None:
            wanted = (wanted - np.log2(columns.astype(np.float64))) / 2
    usable = np.isfinite(wanted)
    if not usable.any():
        return np.ones(len(results))
    wanted = np.where(usable, wanted - np.median(wanted[usable]), 0)
    return np.exp2(np.clip(np.round(wanted), -_MOST, _MOST))


def _only_reader(graph: Graph, value: Value) -> Node | None:
    readers = {node for node, _ in value.uses}
    return next(iter(readers)) if len(readers) == 1 and not graph.is_output(value) else None


def _keeps_channels(node: Node) -> bool:
    if len(node.outputs) > 1:
        return False
    if node.op.name in _BETWEEN:
        return True
    return node.op.name == "Flatten" and vars(node.op)["axis"] == 1 and _is_flat(node.inputs[0])


def _is_flat(value: Value | None) -> bool:
    return value is not None and all(size == 1 for size in value.type.shape[2:])


def _has_own_weights(graph: Graph, node: Node) -> bool:
    if not isinstance(node.op, Conv | Gemm) or (isinstance(node.op, Gemm) and node.op.transA):
        return False
    return all(v.constant is not None and len(v.uses) == 1 for v in node.present_inputs if v is not node.inputs[0])


def _weights(node: Node) -> np.ndarray:
    """Constant weights, channels of the result first."""
    value = node.inputs[1]
    assert value is not None and value.constant is not None  # `_has_own_weights`
    array = value.constant.array
    return array.T if isinstance(node.op, Gemm) and not node.op.transB else array


def _channels(node: Node) -> int:
    return int(_weights(node).shape[0])


def _takes_out(node: Node) -> bool:
    """Has it one bias per channel, if any?"""
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return bias is None or (bias.type.rank >= 1 and bias.type.count == _channels(node))


def _takes_in(node: Node, channels: int) -> bool:
    """Do its weights have a column, or a group, for each channel?"""
    if isinstance(node.op, Conv) and node.op.group > 1:
        return node.op.group == channels
    return bool(_weights(node).shape[1] == channels)


def _columns(node: Node) -> np.ndarray | None:
    """The largest weight of each channel that comes in; None where these have scales of their own."""
    if isinstance(node.op, Conv) and node.op.group > 1:
        return None
    return largest(_weights(node))


def _scale_out(graph: Graph, node: Node, factors: np.ndarray) -> None:
    weights = _weights(node)
    _set(graph, node, 1, weights * factors.reshape(-1, *(1 for _ in weights.shape[1:])))
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if bias is not None and bias.constant is not None:
        _set(graph, node, 2, bias.constant.array * factors.reshape(bias.type.static_shape))


def _scale_in(graph: Graph, node: Node, factors: np.ndarray) -> None:
    weights = _weights(node)
    if isinstance(node.op, Conv) and node.op.group > 1:
        rows = np.repeat(factors, len(weights) // node.op.group)
        _set(graph, node, 1, weights * rows.reshape(-1, *(1 for _ in weights.shape[1:])))
    else:
        _set(graph, node, 1, weights * factors.reshape(1, -1, *(1 for _ in weights.shape[2:])))


def _set(graph: Graph, node: Node, position: int, array: np.ndarray) -> None:
    old = node.inputs[position]
    assert old is not None  # `_has_own_weights`
    turned = array.T if position == 1 and isinstance(node.op, Gemm) and not node.op.transB else array
    constant = Constant.of(np.ascontiguousarray(turned).astype(old.type.dtype.numpy))
    graph.set_input(node, position, Value.of_constant(old.name, constant))
