"""Nodes of a model file that draw random numbers, and seeds for those that have none.

Invariant: a seed follows from the name of a result alone, so that the numbers are the same in whatever is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper, numpy_helper

_OPERATORS = frozenset(
    ["Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)
_TRAINING = 2  # operand of Dropout
_SEEDS = 1 << 16  # so many that floats hold all


def drawing(model: ModelProto) -> frozenset[str]:
    """The operators that draw numbers in a run, be it in a region or a function."""
    return frozenset(node.op_type for node in _drawing(model))


def give_seeds(model: ModelProto) -> None:
    """To all that have none."""
    for node in _drawing(model):
        if not _has_seed(node):
            kept = [each for each in node.attribute if each.name != "seed"]
            del node.attribute[:]
            node.attribute.extend(kept)
            seed = crc32("".join(node.output).encode()) % _SEEDS
            node.attribute.append(helper.make_attribute("seed", seed if node.op_type == "Dropout" else float(seed)))


def _has_seed(node: NodeProto) -> bool:
    """NaN means none."""
    return any(each.name == "seed" and each.f == each.f for each in node.attribute)


def _drawing(model: ModelProto) -> list[NodeProto]:
    own = {function.name for function in model.functions if function.domain in ("", "ai.onnx")}
    bodies = [*_nodes(model.graph.node), *(node for each in model.functions for node in _nodes(each.node))]
    off = _off(model.graph, bodies)
    return [
        node
        for node in bodies
        if node.domain in ("", "ai.onnx") and node.op_type in _OPERATORS - own and not _is_idle(node, off)
    ]


def _is_idle(node: NodeProto, off: frozenset[str]) -> bool:
    return node.op_type == "Dropout" and (len(node.input) <= _TRAINING or node.input[_TRAINING] in off)


def _off(graph: GraphProto, nodes: Iterable[NodeProto]) -> frozenset[str]:
    """Constants that are false, and "", which is left out."""
    given = {entry.name for entry in graph.input}
    tensors = [(tensor.name, tensor) for tensor in graph.initializer if tensor.name not in given]
    for node in nodes:
        if node.op_type == "Constant":
            tensors += [(node.output[0], each.t) for each in node.attribute if each.name == "value"]
    bools = [(name, tensor) for name, tensor in tensors if tensor.data_type == tensor.BOOL]
    return frozenset({"", *(name for name, tensor in bools if not numpy_helper.to_array(tensor).any())})


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """With those of regions."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g.node)
