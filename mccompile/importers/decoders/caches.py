"""Which inputs of an exported decoder are its caches, and where they go on: an output that joins what is new to an
input, or has its name but for words that say before and after.

Invariant: nothing is paired by its place among the others: keys and values of a layer have one shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_ENDS = re.compile(r"(past|present)_key_values?|(?<![a-z])(past|present|new|next|updated|in|out|input|output)(?![a-z])")
_SAME = ("Identity", "Cast")
_ATTENTION = {"GroupQueryAttention": (3, 1), "MultiHeadAttention": (6, 1), "Attention": (4, 1)}  # of keys


def pairs(graph: GraphProto, inputs: Mapping[str, ValueInfoProto]) -> dict[str, str]:
    """Outputs by input."""
    before = {name: channels for name, entry in inputs.items() if (channels := _channels(entry))}
    after = {entry.name: channels for entry in graph.output if (channels := _channels(entry))}
    made = _joined(graph, before, after)
    named: dict[str, list[str]] = {}
    for name in after:
        named.setdefault(_stem(name), []).append(name)
    for name in before:
        same = named.get(_stem(name), [])
        if name not in made and len(same) == 1 and same[0] not in made.values():
            made[name] = same[0]
    return {name: made[name] for name in before if name in made and before[name] == after[made[name]]}


def _channels(entry: ValueInfoProto) -> tuple[int, ...]:
    """Type, heads and channels of a cache of a free number of tokens: [batch, heads, tokens, channels]."""
    type = entry.type.tensor_type
    sizes = [dim.dim_value for dim in type.shape.dim]
    is_cache = len(sizes) == 4 and sizes[1] and sizes[3] and not sizes[2] and type.elem_type in _FLOATS
    return (type.elem_type, sizes[1], sizes[3]) if is_cache else ()


def _stem(name: str) -> str:
    return ".".join(re.findall(r"[a-z]+|\d+", _ENDS.sub(" ", name.lower())))


def _joined(graph: GraphProto, before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, str]:
    """Those that a node joins to what is new."""
    behind = {node.input[0]: node.output[0] for node in graph.node if node.op_type in _SAME}
    made = dict[str, str]()
    for node in graph.node:
        for past, present in _ends(node):
            for _ in range(8):
                if present in after or present not in behind:
                    break
                present = behind[present]
            if past in before and present in after:
                made[past] = present
    return made


def _ends(node: NodeProto) -> list[tuple[str, str]]:
    if node.op_type == "Concat" and node.input:
        axes = [helper.get_attribute_value(entry) for entry in node.attribute if entry.name == "axis"]
        return [(node.input[0], node.output[0])] if axes in ([2], [-2]) else []
    first = _ATTENTION.get(node.op_type)
    if first is None:
        return []
    return [(node.input[first[0] + at], node.output[first[1] + at]) for at in (0, 1)
            if len(node.input) > first[0] + at and len(node.output) > first[1] + at]  # fmt: skip
