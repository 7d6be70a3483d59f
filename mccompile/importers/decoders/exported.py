"""A decoder that another tool exported to ONNX, in the form that `as_onnx` gives one: tokens in, logits behind the last
of them out, and the cache as states.

Invariant: one text without padding is what is computed, so masks are ones, and positions count on from the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from .. import states
from ..renaming import name_apart
from .as_onnx import PAST, TOKENS
from .caches import pairs
from .config import unsupported

_TOKENS, _LOGITS = "input_ids", "logits"
_ALL, _LAST = "logits/all", "logits/last"  # behind every new token, and behind the last one
_PAST = "past_key_values."
_MASK, _BRANCH, _KEPT = "attention_mask", "use_cache_branch", ("num_logits_to_keep",)
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)
_PLACES = ("position_ids", "cache_position")
_NO_CACHE = "export it with its cache: optimum-cli export onnx --task text-generation-with-past"


def as_decoder(model: ModelProto, name: str) -> ModelProto:
    """The model, changed. `name`: of its file, for messages."""
    graph = model.graph
    inputs = open_inputs(graph)
    outputs = {entry.name: entry for entry in graph.output}
    caches = pairs(graph, inputs)
    named = _standard_names(graph, inputs, outputs, caches)
    if named:
        name_apart(graph, "", named)
        return as_decoder(model, name)
    if _TOKENS not in inputs or _LOGITS not in outputs:
        fix = f"to compile it as any network, name the file: mccompile {name} -o out"
        raise unsupported(f"{name} has no input {_TOKENS!r} or no output {_LOGITS!r}", fix)
    for each in inputs:
        if each.startswith(_PAST) and each not in caches:
            _cache(inputs[each], PAST)
            raise unsupported(f"{name} has no output that continues {each}", _NO_CACHE)
    if not caches:
        raise unsupported(f"{name} takes no keys and values of the tokens before", _NO_CACHE)
    known = (*caches, _TOKENS, _MASK, *_PLACES, _BRANCH, *_KEPT)
    other = [each for each in inputs if each not in known or (each == _MASK and _rank(inputs[each]) != 2)]
    if other:
        raise unsupported(f"{name} has the input {other[0]!r}, which a decoder of text alone would not", _NO_CACHE)
    length = inputs[_TOKENS].type.tensor_type.shape.dim
    tokens = TOKENS if len(length) < 2 or length[1].dim_value != 1 else 1
    _Writer(model, inputs).write(next(iter(caches)), tokens)
    del graph.input[:], graph.output[:], graph.value_info[:]
    graph.input.append(helper.make_tensor_value_info(_TOKENS, inputs[_TOKENS].type.tensor_type.elem_type, [1, tokens]))
    graph.input.extend(_cache(inputs[before], PAST) for before in caches)
    graph.output.append(helper.make_tensor_value_info(_LOGITS, TensorProto.FLOAT, None))
    behind = f"{PAST} + {tokens}"
    graph.output.extend(_renamed(_cache(inputs[before], behind), after) for before, after in caches.items())
    states.declare(model, {after: before for before, after in caches.items()})
    return model


def open_inputs(graph: GraphProto) -> dict[str, ValueInfoProto]:
    constants = {tensor.name for tensor in graph.initializer}
    return {entry.name: entry for entry in graph.input if entry.name not in constants}


def _standard_names(
    graph: GraphProto,
    inputs: Mapping[str, ValueInfoProto],
    outputs: Mapping[str, ValueInfoProto],
    caches: Mapping[str, str],
) -> dict[str, str]:
    """Of tokens and logits, where a file has no other inputs and outputs that could be them."""
    rest = [each for each in inputs if each not in (*caches, _MASK, *_PLACES, _BRANCH, *_KEPT)]
    made = [each for each in outputs if each not in caches.values()]
    found = {}
    if caches and len(rest) == 1 and _rank(inputs[rest[0]]) == 2:
        found[rest[0]] = _TOKENS if inputs[rest[0]].type.tensor_type.elem_type in _INTEGERS else rest[0]
    if caches and len(made) == 1 and _rank(outputs[made[0]]) == 3:
        found[made[0]] = _LOGITS
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    return {name: own for name, own in found.items() if name != own and own not in taken}


def _rank(entry: ValueInfoProto) -> int:
    return len(entry.type.tensor_type.shape.dim)


def _cache(entry: ValueInfoProto, length: str) -> ValueInfoProto:
    """Of one text: [1, heads, length, channels]."""
    type = entry.type.tensor_type
    sizes = [dim.dim_value for dim in type.shape.dim]
    if len(sizes) != 4 or not (sizes[1] and sizes[3]) or sizes[2]:
        raise unsupported(f"{entry.name} is not [batch, heads, tokens, channels] with a free number of tokens")
    return helper.make_tensor_value_info(entry.name, type.elem_type, [1, sizes[1], length, sizes[3]])


def _renamed(entry: ValueInfoProto, name: str) -> ValueInfoProto:
    entry.name = name
    return entry


class _Writer:
    """What takes the place of inputs that say nothing of one text, and of logits that nobody asks for."""

    def __init__(self, model: ModelProto, inputs: Mapping[str, ValueInfoProto]) -> None:
        self.graph, self.inputs = model.graph, inputs
        self.made: list[NodeProto] = []  # in front of the others

    def write(self, cache: str, tokens: int | str) -> None:
        length = self.size(_TOKENS, 1) if tokens == TOKENS else self.constant(np.ones(1, np.int64))
        past = self.size(cache, 2)
        total = self.op("Add", past, length)
        if _BRANCH in self.inputs:
            self.constant(np.ones(1, np.bool_), _BRANCH)
            choose_branches(self.graph, _BRANCH)
        for name in _KEPT:
            if name in self.inputs:
                self.constant(np.ones([1] * len(self.inputs[name].type.tensor_type.shape.dim), np.int64), name)
        if _MASK in self.inputs:
            shape = self.op("Concat", self.constant(np.ones(1, np.int64)), total, axis=0)
            one = helper.make_tensor("one", self.inputs[_MASK].type.tensor_type.elem_type, [1], [1])
            self.op("ConstantOfShape", shape, made=_MASK, value=one)
            self.sums(total)
        for name in (each for each in _PLACES if each in self.inputs):
            ends = (self.op("Reshape", each, self.constant(np.zeros(0, np.int64))) for each in (past, total))
            places = self.op("Range", *ends, self.constant(np.array(1, np.int64)))
            row = self.op("Reshape", places, self.constant(np.array([1] * (_rank(self.inputs[name]) - 1) + [-1])))
            self.op("Cast", row, made=name, to=self.inputs[name].type.tensor_type.elem_type)
        for node in self.graph.node:
            for names in (node.input, node.output):
                names[:] = [_ALL if name == _LOGITS else name for name in names]
        last = self.constant(np.array([-1]))
        self.graph.node.append(helper.make_node("Gather", [_ALL, last], [_LAST], axis=1))
        self.graph.node.append(helper.make_node("Cast", [_LAST], [_LOGITS], to=TensorProto.FLOAT))
        nodes = [*self.made, *self.graph.node]
        del self.graph.node[:]
        self.graph.node.extend(nodes)

    def op(self, name: str, *inputs: str, made: str = "", **attributes: Any) -> str:
        made = made or f"mccompile/decoder/{name}_{len(self.made)}"
        self.made.append(helper.make_node(name, inputs, [made], made, **attributes))
        return made

    def constant(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"mccompile/decoder/constant_{len(self.graph.initializer)}"
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def size(self, name: str, axis: int) -> str:
        return self.op("Gather", self.op("Shape", name), self.constant(np.array([axis])))

    def sums(self, total: str) -> None:
        """Of a mask of ones: how many there are."""
        small = (tensor for tensor in self.graph.initializer if _is_small(tensor))
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in small}
        constants |= dict(_constants(self.graph.node))
        masks = {_MASK: self.inputs[_MASK].type.tensor_type.elem_type}
        for node in self.graph.node:
            told = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
            if node.op_type == "Cast" and node.input[0] in masks:
                masks[node.output[0]] = told["to"]
            if node.op_type != "ReduceSum" or node.input[0] not in masks:
                continue
            axes = constants.get(node.input[1]) if len(node.input) > 1 else np.array(told.get("axes", []))
            if axes is not None and axes.tolist() in ([1], [-1]):
                shape = self.constant(np.array([1, 1] if told.get("keepdims", 1) else [1]))
                summed = self.op("Reshape", total, shape)
                node.CopyFrom(helper.make_node("Cast", [summed], node.output, node.name, to=masks[node.input[0]]))


def _is_small(tensor: TensorProto) -> bool:
    return len(tensor.dims) <= 1 and sum(tensor.dims) <= 1


def _constants(nodes: Iterable[NodeProto]) -> Iterable[tuple[str, np.ndarray]]:
    for node in nodes:
        for entry in node.attribute if node.op_type == "Constant" else ():
            if entry.name == "value" and _is_small(entry.t):
                yield node.output[0], numpy_helper.to_array(entry.t)
            if entry.name == "value_ints":
                yield node.output[0], np.array(entry.ints)


def choose_branches(graph: GraphProto, name: str) -> None:
    """The nodes of the branch where `name` is true, in place of each If that asks for it."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        if node.op_type != "If" or node.input[0] != name:
            nodes.append(node)
            continue
        branch = next(entry.g for entry in node.attribute if entry.name == "then_branch")
        graph.initializer.extend(branch.initializer)
        nodes.extend(branch.node)
        for inner, outer in zip(branch.output, node.output, strict=True):
            nodes.append(helper.make_node("Identity", [inner.name], [outer]))
    del graph.node[:]
    graph.node.extend(nodes)
