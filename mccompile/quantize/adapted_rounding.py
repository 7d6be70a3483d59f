"""Weights rounded by what samples make of them (GPTQ): the error of a weight that is rounded goes into those behind it
that meet similar inputs, before these are rounded.

For each layer with int8 weights behind DequantizeLinear, from the sums of products of what it reads. Scales, zero
points and biases stay. Groups of a convolution are layers of their own; layers whose sums are longer than `_LONGEST`
stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import i8
from ..base.names import new_name
from ..check.oracle import Oracle
from ..graph.ir import Graph, Node, Value
from ..ops.conv import Conv
from ..ops.matmul import Gemm
from ..ops.quantize import DequantizeLinear
from .samples import Feed

_LAYERS = ("Conv", "Gemm", "MatMul")
_LONGEST = 1024  # products in a sum
_POSITIONS = 4096  # of all runs that are looked at
_DAMPED = 0.01  # of the mean of the diagonal, so that inputs that never move change nothing


def adapt_rounding(graph: Graph, plain: Graph, file: Path, feeds: Sequence[Feed]) -> int:
    """How many layers of the quantized graph have weights rounded anew; `file` is that graph, `plain` the float one."""
    floats = {node.provenance[0]: node for node in plain.nodes if node.op.name in _LAYERS}
    layers = [node for node in graph.nodes if node.provenance[0] in floats and _stored(node) is not None]
    read = list(dict.fromkeys(node.inputs[0].name for node in layers if node.inputs[0] is not None))
    met: dict[str, list[np.ndarray]] = {}
    oracle = Oracle(file, [name for name in read if name not in {value.name for value in graph.inputs}])
    for feed in feeds:
        seen = {**feed, **oracle.run(feed)}
        for layer in layers:
            assert layer.inputs[0] is not None
            rows = _windows(layer, seen[layer.inputs[0].name], max(1, _POSITIONS // len(feeds)))
            if rows is not None and rows.shape[-1] <= _LONGEST:
                met.setdefault(layer.provenance[0], []).append(rows)
    names = {value.name for value in graph.values()}
    sums = {name: _products(np.concatenate(rows, 1)) for name, rows in met.items()}
    changed = [_adapt(graph, layer, floats[layer.provenance[0]], sums, names) for layer in layers]
    return sum(changed)


def _stored(layer: Node) -> Node | None:
    """The node that makes floats of the layer's own int8 weights."""
    value = layer.inputs[1] if len(layer.inputs) > 1 and layer.op.name in _LAYERS else None
    node = value.producer if value is not None else None
    if node is None or not isinstance(node.op, DequantizeLinear) or len(node.output.uses) != 1:
        return None
    constants = [each.constant for each in node.inputs if each is not None]
    if any(each is None for each in constants) or constants[0] is None or constants[0].type.dtype is not i8:
        return None
    has_zero = len(constants) > 2 and constants[2] is not None and constants[2].array.any()
    return None if has_zero else node


def _products(rows: np.ndarray) -> np.ndarray:
    """Of each group the sums over positions of products of what its weights meet."""
    some = np.ascontiguousarray(rows, np.float32)
    return np.asarray(np.matmul(some.transpose(0, 2, 1), some), np.float64)


def _windows(layer: Node, tensor: np.ndarray, most: int) -> np.ndarray | None:
    """[groups, positions, products], of `most` positions that are spread over all."""
    op = layer.op
    if isinstance(op, Gemm):
        return _spread(tensor.T if op.transA else tensor, most)[None]
    if not isinstance(op, Conv):
        return _spread(tensor.reshape(-1, tensor.shape[-1]), most)[None]
    weights = layer.inputs[1]
    assert weights is not None
    kernel = weights.type.static_shape[2:]
    dilations = op.dilations or (1,) * len(kernel)
    strides = op.strides or (1,) * len(kernel)
    pads = op.pads or (0,) * (2 * len(kernel))
    if op.auto_pad not in ("NOTSET", "VALID"):
        return None
    around = [(0, 0), (0, 0), *zip(pads[: len(kernel)], pads[len(kernel) :], strict=True)]
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    axes = tuple(range(2, tensor.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(tensor, around), spans, axes)
    places = tuple(slice(None, None, stride) for stride in strides)
    inside = tuple(slice(None, None, dilation) for dilation in dilations)
    windows = np.moveaxis(windows[(slice(None), slice(None), *places, *inside)], 1, 1 + len(kernel))
    positions = windows.shape[: 1 + len(kernel)]
    chosen = np.unravel_index(_spread(np.arange(np.prod(positions)), most), positions)
    grouped = windows[chosen].reshape(len(chosen[0]), op.group, -1)
    return np.swapaxes(grouped, 0, 1)


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    return rows[:: -(-len(rows) // most)]


def _adapt(graph: Graph, layer: Node, plain: Node, sums: Mapping[str, np.ndarray], names: set[str]) -> bool:
    node, weights = _stored(layer), plain.inputs[1]
    if node is None or weights is None or weights.constant is None or layer.provenance[0] not in sums:
        return False
    stored, scale = (each.constant for each in node.inputs[:2] if each is not None)
    assert stored is not None and scale is not None and isinstance(node.op, DequantizeLinear)
    real = weights.constant.array.astype(np.float64)
    if real.shape != stored.array.shape or (isinstance(layer.op, Gemm) and layer.op.alpha != 1.0):
        return False
    last = layer.op.name == "MatMul" or (isinstance(layer.op, Gemm) and not layer.op.transB)
    if last and real.ndim != 2:
        return False
    steps = scale.array.astype(np.float64).reshape(-1)
    rows = (real.T if last else real).reshape(real.shape[1] if last else len(real), -1)
    products = sums[layer.provenance[0]]
    channels = len(rows) // len(products)
    made = [
        rounded(rows[n * channels :][:channels], np.broadcast_to(steps, len(rows))[n * channels :][:channels], each)
        for n, each in enumerate(products)
    ]
    integers = np.concatenate(made).astype(np.int8)
    shaped = integers.reshape(rows.shape).T if last else integers.reshape(real.shape)
    name = new_name(f"{weights.name}/adapted", names)
    graph.set_input(node, 0, Value.of_constant(name, Constant.of(np.ascontiguousarray(shaped))))
    return True


def rounded(rows: np.ndarray, steps: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Integers of each row in its step, one product after the other, the largest input first."""
    order = np.argsort(-np.diag(products), kind="stable")
    damped = products[np.ix_(order, order)] + np.eye(len(products)) * (_DAMPED * np.mean(np.diag(products)) + 1e-12)
    passed = np.linalg.cholesky(np.linalg.inv(damped)).T
    left = rows[:, order] / steps[:, None]
    found = np.zeros(left.shape)
    for n in range(left.shape[1]):
        found[:, n] = np.clip(np.rint(left[:, n]), -127, 127)
        error = (left[:, n] - found[:, n]) / passed[n, n]
        left[:, n + 1 :] -= error[:, None] * passed[n, n + 1 :]
    result = np.empty(found.shape)
    result[:, order] = found
    return result
