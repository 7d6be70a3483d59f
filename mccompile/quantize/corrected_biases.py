"""Biases that take back what quantizing adds to sums on average (bias correction).

Rounded weights and clipped activations move the mean of a channel. Layer by layer, each with those before it corrected,
the difference of means over samples goes into the integer bias; less of it where samples disagree. Layers without a
bias of their own in int32 stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import i32
from ..base.names import new_name
from ..check.oracle import Oracle
from ..frontend.save import write
from ..graph.ir import Graph, Node, Value
from ..ops.quantize import DequantizeLinear
from .samples import Feed

_LAYERS = ("Conv", "Gemm")
_RUNS = 1000  # of the network, about
_FEW = 8  # samples


def correct_biases(graph: Graph, feeds: Sequence[Feed], plain: Path, layers: Mapping[str, str], scratch: Path) -> int:
    """How many layers of the quantized graph have other biases; `layers` are outputs in the float file, by node."""
    found = [node for node in graph.nodes if node.provenance[0] in layers and _bias(node) is not None]
    feeds = feeds[: max(_FEW, _RUNS // max(1, len(found)))]
    wanted = _means(plain, [layers[node.provenance[0]] for node in found], feeds)
    names = {value.name for value in graph.values()}
    changed = 0
    for node in found:
        write(graph, scratch)
        got = _means(scratch, [node.output.name], feeds)[node.output.name]
        changed += _move(graph, node, wanted[layers[node.provenance[0]]] - got, names)
    return changed


def _bias(layer: Node) -> Node | None:
    """The node that makes floats of the layer's own bias."""
    value = layer.inputs[2] if layer.op.name in _LAYERS and len(layer.inputs) > 2 else None
    node = value.producer if value is not None else None
    if node is None or not isinstance(node.op, DequantizeLinear) or len(node.output.uses) != 1:
        return None
    stored, scale = (each.constant if each is not None else None for each in node.inputs[:2])
    return node if stored is not None and scale is not None and stored.type.dtype is i32 else None


def _means(file: Path, names: Sequence[str], feeds: Sequence[Feed]) -> dict[str, np.ndarray]:
    """[sample, channel] of each tensor."""
    oracle = Oracle(file)
    oracle = Oracle(file, [name for name in dict.fromkeys(names) if name not in oracle.original.outputs])
    runs = [oracle.run(feed) for feed in feeds]
    return {name: np.stack([_channels(run[name]) for run in runs]) for name in names}


def _channels(tensor: np.ndarray) -> np.ndarray:
    exact = np.moveaxis(tensor.astype(np.float64), 1, 0)
    return np.asarray(exact.reshape(len(exact), -1).mean(1))


def _move(graph: Graph, layer: Node, errors: np.ndarray, names: set[str]) -> bool:
    node = _bias(layer)
    assert node is not None and node.inputs[0] is not None and node.inputs[1] is not None
    stored, scale = node.inputs[0].constant, node.inputs[1].constant
    assert stored is not None and scale is not None
    steps = np.rint(_moved(errors) / scale.array.astype(np.float64).reshape(-1))
    limits = np.iinfo(np.int32)
    integers = np.clip(stored.array + steps.reshape(stored.array.shape), limits.min, limits.max).astype(np.int32)
    name = new_name(f"{node.inputs[0].name}/corrected", names)
    graph.set_input(node, 0, Value.of_constant(name, Constant.of(integers)))
    return bool(steps.any())


def _moved(errors: np.ndarray) -> np.ndarray:
    """The mean of each channel over samples; less where it may be chance, nothing where it is no more than that."""
    mean = errors.mean(0)
    chance = errors.var(0) / max(1, len(errors) - 1)
    return np.asarray(mean * np.maximum(0, 1 - chance / np.maximum(mean**2, 1e-30)))
