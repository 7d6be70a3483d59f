"""Weights of quantized layers that take at most 16 values per layer: int8 integers with the scales that they have.

The values are those with the least square error in integers. 0 stays where it is, so that what was pruned stays so.
"""

from __future__ import annotations

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import i8
from ..base.names import new_name
from ..graph.ir import Graph, Node, Value
from ..ops.quantize import DequantizeLinear
from .narrow_layers import LAYERS

SIZE = 16


def palettize_layers(graph: Graph) -> int:
    """How many layers there are whose int8 weights take at most 16 values now."""
    names = {value.name for value in graph.values()}
    read = [node.inputs[1] for node in graph.nodes if node.op.name in LAYERS]
    found = list(dict.fromkeys(value.producer for value in read if value is not None and value.producer is not None))
    return sum(_palettize(graph, node, names) for node in found if isinstance(node.op, DequantizeLinear))


def _palettize(graph: Graph, node: Node, names: set[str]) -> bool:
    stored = node.inputs[0]
    if stored is None or stored.constant is None or stored.type.dtype is not i8 or not stored.constant.array.size:
        return False
    weights = palettized(np.asarray(stored.constant.array))
    if not np.array_equal(weights, stored.constant.array):
        name = new_name(f"{stored.name}/palette", names)
        graph.set_input(node, 0, Value.of_constant(name, Constant.of(weights)))
    return True


def palettized(weights: np.ndarray) -> np.ndarray:
    """The int8 weights, each as the nearest value of their palette, the smaller one of two."""
    palette = palette_of(weights)
    nearest = np.abs(np.arange(-128, 128)[:, None] - palette).argmin(1)
    found: np.ndarray = palette[nearest][weights.astype(np.int64) + 128]
    return found.astype(np.int8)


def palette_of(weights: np.ndarray) -> np.ndarray:
    """At most 16 integers in order with the least square error, which no other choice makes smaller; 0 is one of them
    if a weight is 0."""
    values, counts = np.unique(weights.astype(np.int64), return_counts=True)
    if len(values) <= SIZE:
        return values
    error, centre = _of_runs(values, counts)
    least, begins = error[0], []  # of the values before each place, with so many centres
    for _ in range(SIZE - 1):
        several = least[:, None] + error
        begins.append(several.argmin(0))
        least = several.min(0)
    end, centres = len(values), []
    for begin in reversed([np.zeros(end + 1, np.int64), *begins]):
        centres.append(centre[begin[end], end])
        end = int(begin[end])
    return np.array(sorted(centres), np.int64)


def _of_runs(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The square error of one integer for the values from `row` on to the one before `column`, and the integer."""
    powers = counts * np.stack([values**0, values, values**2])
    before = np.concatenate([np.zeros((3, 1), np.int64), powers.cumsum(1)], 1)
    number, total, squares = before[:, None, :] - before[:, :, None]
    empty = number <= 0
    centre = np.rint(total / np.where(empty, 1, number)).astype(np.int64)
    zeros = np.concatenate([[0], (values == 0).cumsum()])
    centre[zeros[None, :] > zeros[:, None]] = 0
    error = squares - 2 * centre * total + centre**2 * number
    return np.where(empty, np.inf, error.astype(np.float64)), centre
