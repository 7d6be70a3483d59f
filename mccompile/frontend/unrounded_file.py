"""A file's network without rounding to integers behind weights that learned, as `<model>_run` computes it: pairs of
QuantizeLinear and DequantizeLinear only saturate there, and outputs stay what they are."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from .ordering import names_read

_ALIKE = ("Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def leave_integers(graph: GraphProto, learned: Collection[str]) -> None:
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    constants |= {node.output[0]: _value(node) for node in graph.node if node.op_type == "Constant"}
    moving, floats, nodes = set(learned), dict[str, str](), list[NodeProto]()
    for node in graph.node:
        x, made = node.input[0] if node.input else "", node.output[0]
        if node.op_type == "QuantizeLinear" and x in moving and _is_known(node, constants):
            floats[made] = f"{made}_float"
            bounds = _bounds(node, constants)
            graph.initializer.extend(bounds)
            nodes += [node, helper.make_node("Clip", [x, *(bound.name for bound in bounds)], [floats[made]])]
        elif node.op_type in _ALIKE and x in floats and len(node.output) == 1:
            floats[made] = f"{made}_float"
            moved = NodeProto()
            moved.CopyFrom(node)
            moved.input[0], moved.output[0] = floats[x], floats[made]
            nodes += [node, moved]
        elif node.op_type == "DequantizeLinear" and x in floats:
            nodes.append(helper.make_node("Identity", [floats[x]], [made], node.name))
            moving.add(made)
        else:
            nodes.append(node)
            moving.update(node.output if moving.intersection(names_read(node)) else ())
    del graph.node[:]
    graph.node.extend(_read(nodes, {output.name for output in graph.output}))


def _value(node: NodeProto) -> np.ndarray:
    found = [each.t for each in node.attribute if each.name == "value"]
    return numpy_helper.to_array(found[0]) if found else np.zeros(0)


def _is_known(node: NodeProto, constants: dict[str, np.ndarray]) -> bool:
    """One scale and zero point for all elements?"""
    return all(name in constants and constants[name].size == 1 for name in node.input[1:])


def _bounds(node: NodeProto, constants: dict[str, np.ndarray]) -> list[TensorProto]:
    zero = constants[node.input[2]].reshape(()) if len(node.input) > 2 else np.uint8(0)
    scale, limits = float(constants[node.input[1]].item()), np.iinfo(zero.dtype)
    both = {"low": limits.min, "high": limits.max}
    arrays = {name: np.float32((bound - int(zero)) * scale) for name, bound in both.items()}
    return [numpy_helper.from_array(np.asarray(a), f"{node.output[0]}_{name}") for name, a in arrays.items()]


def _read(nodes: list[NodeProto], outputs: set[str]) -> list[NodeProto]:
    """Those that lead to outputs."""
    found, needed = list[NodeProto](), set(outputs)
    for node in reversed(nodes):
        if needed.intersection(node.output):
            found.insert(0, node)
            needed.update(names_read(node))
    return found
