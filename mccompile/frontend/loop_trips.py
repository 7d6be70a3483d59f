"""How often a loop runs that ends by its condition, where that follows from constants.

Exporters write loops over time steps as `while step < steps`, besides a trip count or without one. Where nothing but
counters decides, the condition is computed here, trip after trip, and the loop becomes one of so many trips.
Invariant: only operators that give the same result on every machine are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from .declarations import declared_ranks
from .reference import EvaluationFailed, evaluator

_EXACT = frozenset({
    "Add", "And", "Cast", "CastLike", "Constant", "Equal", "Gather", "Greater", "GreaterOrEqual", "Identity", "Less",
    "LessOrEqual", "Max", "Min", "Mul", "Not", "Or", "Reshape", "Squeeze", "Sub", "Unsqueeze", "Where", "Xor",
})  # fmt: skip
_MOST_TRIPS, _MOST_NODES, _MOST_ELEMENTS = 10_000, 50, 100

Known = Callable[[str], np.ndarray | None]  # what a name outside of the body is, if it is constant


def exact_trips(
    body: GraphProto, opset: int, operands: list[np.ndarray | None], present: list[bool], outer: Known
) -> int | None:
    """The number of trips of a loop whose condition is made from its counter and from what such a counter makes; None
    where something else decides, or nothing does. `operands` are those of the loop as far as they are constant."""
    count, start = operands[:2]
    if any(value is None and there for value, there in zip((count, start), present[:2], strict=True)):
        return None
    inputs = [entry.name for entry in body.input]
    outputs = [entry.name for entry in body.output]
    found = _slice(body, inputs, outputs, outer)
    if found is None or not found.inputs - {1}:
        return None
    ones = [(1,) * (rank or 0) for rank in declared_ranks(body)[:2]]  # the counter and the condition as it takes them
    state: dict[int, np.ndarray] = {0: np.zeros(ones[0], np.int64), 1: np.ones(ones[1], np.bool_)}
    for number in found.inputs - {0, 1}:
        value = operands[number] if number < len(operands) else None
        if value is None or value.size > _MOST_ELEMENTS:
            return None
        state[number] = value
    most = 2**63 if count is None else max(int(count.reshape(-1)[0]), 0)
    goes_on = start is None or bool(start.reshape(-1)[0])
    trips = 0
    try:
        run = evaluator(found.model(opset, inputs, outputs, state))
        while goes_on and trips < min(most, _MOST_TRIPS):
            results = run({inputs[number]: state[number] for number in found.inputs})
            state = dict(zip((1, *found.carried), results, strict=True)) | {0: np.full(ones[0], trips + 1, np.int64)}
            goes_on = bool(state[1].reshape(-1)[0])
            state[1] = state[1].reshape(ones[1])
            trips += 1
    except EvaluationFailed:
        return None
    return trips if not goes_on or trips == most else None


class _Slice:
    """The nodes that the condition is made by."""

    def __init__(self, nodes: list[NodeProto], inputs: set[int], constants: Mapping[str, np.ndarray]) -> None:
        self.nodes, self.inputs, self.constants = nodes, inputs, constants
        self.carried = tuple(sorted(inputs - {0, 1}))

    def model(self, opset: int, inputs: list[str], outputs: list[str], state: Mapping[int, np.ndarray]) -> ModelProto:
        def info(name: str, array: np.ndarray) -> ValueInfoProto:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        given = [info(inputs[number], state[number]) for number in sorted(self.inputs)]
        # the condition, then what is carried: under names of their own, since two may be one value
        results = [outputs[0], *(outputs[number - 1] for number in self.carried)]
        copies = [helper.make_node("Identity", [name], [f"result/{n}"]) for n, name in enumerate(results)]
        made = [helper.make_empty_tensor_value_info(f"result/{n}") for n in range(len(results))]
        tensors = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph([*self.nodes, *copies], "condition", given, made, tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _slice(body: GraphProto, inputs: list[str], outputs: list[str], outer: Known) -> _Slice | None:
    makers = {name: node for node in body.node for name in node.output if name}
    tensors = {tensor.name: tensor for tensor in body.initializer}
    wanted, seen = [outputs[0]], set[str]()
    used: list[NodeProto] = []
    reached: set[int] = set()
    constants: dict[str, np.ndarray] = {}
    while wanted:
        name = wanted.pop()
        if not name or name in seen:
            continue
        seen.add(name)
        if name in inputs:
            number = inputs.index(name)
            reached.add(number)
            if number > 1:
                wanted.append(outputs[number - 1])
        elif name in makers:
            node = makers[name]
            if node.op_type not in _EXACT or node.domain not in ("", "ai.onnx") or len(used) == _MOST_NODES:
                return None
            if any(attribute.ref_attr_name for attribute in node.attribute):
                return None
            if node not in used:
                used.append(node)
            wanted.extend(node.input)
        else:
            value = _small(tensors[name]) if name in tensors else outer(name)
            if value is None or value.size > _MOST_ELEMENTS:
                return None
            constants[name] = value
    return _Slice([node for node in body.node if node in used], reached, constants)


def _small(tensor: TensorProto) -> np.ndarray | None:
    if tensor.data_location == TensorProto.EXTERNAL or np.prod(tensor.dims) > _MOST_ELEMENTS:
        return None
    return numpy_helper.to_array(tensor)


def without_condition(body: GraphProto) -> GraphProto:
    """The body of a loop that goes on as long as it counts."""
    copy = GraphProto()
    copy.CopyFrom(body)
    name = f"{body.output[0].name}/always"
    copy.initializer.append(numpy_helper.from_array(np.array(True), name))
    copy.output[0].name = name
    return copy
