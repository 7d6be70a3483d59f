"""The network of a file as it learns: in real arithmetic, nothing is rounded to integers behind what learns.

Pairs of QuantizeLinear and DequantizeLinear saturate there, and outputs that are integers become the numbers that are
rounded to them. What is in front of the learned weights stays as the file has it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ..judge.rules import Graph, Node

_MOVES = ("Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def unrounded(graph: Graph, learned: Collection[str]) -> Graph:
    if not any(node.op == "QuantizeLinear" for node in graph.nodes):
        return graph
    moving, stands_for = set(learned), dict[str, str]()  # of rounded integers, the floats between their bounds
    nodes, constants = list[Node](), dict(graph.constants)
    for node in graph.nodes:
        x, result = node.inputs[0] if node.inputs else "", node.outputs[0]
        if node.op == "QuantizeLinear" and x in moving and all(name in constants for name in node.inputs[1:]):
            stands_for[result] = f"{result}/float"
            nodes += _saturating(node, constants, result in graph.outputs)
        elif node.op in _MOVES and x in stands_for:
            stands_for[result] = f"{result}/float"
            nodes.append(replace(node, inputs=(stands_for[x], *node.inputs[1:]), outputs=(stands_for[result],)))
        elif node.op == "DequantizeLinear" and x in stands_for:
            nodes.append(replace(node, op="Identity", attributes={}, inputs=(stands_for[x],)))
            moving.add(result)
        else:
            nodes.append(node)
            moving.update(node.outputs if moving.intersection(node.inputs) else ())
    return replace(graph, nodes=tuple(nodes), constants=constants)


def _saturating(node: Node, constants: dict[str, np.ndarray], is_output: bool) -> list[Node]:
    """Gives `constants` what these nodes read. An output is counted in units of its scale."""
    x, result = node.inputs[0], node.outputs[0]
    scale = np.asarray(constants[node.inputs[1]], np.float64)
    zero = np.asarray(constants[node.inputs[2]] if len(node.inputs) > 2 else np.uint8(0))
    limits = np.iinfo(zero.dtype)
    names = tuple(f"{result}/{what}" for what in ("low", "high"))
    for name, bound in zip(names, (limits.min, limits.max), strict=True):
        constants[name] = np.asarray((bound - zero.astype(np.float64)) * scale)
    plain = replace(node, attributes={})
    found = [replace(plain, op="Max", inputs=(x, names[0]), outputs=(f"{result}/above",))]
    found.append(replace(plain, op="Min", inputs=(f"{result}/above", names[1]), outputs=(f"{result}/float",)))
    if is_output:
        constants[f"{result}/scale"], constants[f"{result}/zero"] = scale, zero.astype(np.float64)
        inputs = (f"{result}/float", f"{result}/scale")
        found.append(replace(plain, op="Div", inputs=inputs, outputs=(f"{result}/units",)))
        found.append(replace(plain, op="Add", inputs=(f"{result}/units", f"{result}/zero"), outputs=(result,)))
    return found
