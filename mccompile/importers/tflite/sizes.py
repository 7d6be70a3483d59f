"""Sizes that a file computes: with the shapes that it names they are known, and become constants.

Converters write shapes of results as SHAPE, STRIDED_SLICE and PACK where a batch is open.
"""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, NodeProto, helper

from .file import Operator
from .onnx_nodes import OPSET, Shared
from .scope import Scope

_MOST = 64  # elements of what is computed: sizes and axes are few
_WRONG = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def fold(scope: Scope, operator: Operator, first: int) -> None:
    """Computes the integers that an operator makes, whose nodes begin at `first`, where all that it reads is known."""
    nodes, shared = scope.writer.nodes[first:], scope.whole.shared
    tensors = [scope.subgraph.tensors[number] for number in operator.outputs]
    if not nodes or any(tensor.type not in ("INT32", "INT64") for tensor in tensors):
        return
    made = {name for node in nodes for name in node.output}
    read = {name for node in nodes for name in node.input if name and name not in made}
    if not read <= shared.arrays.keys() or sum(shared.arrays[name].size for name in read) > _MOST:
        return
    if any(attribute.type == AttributeProto.GRAPH for node in nodes for attribute in node.attribute):
        return
    names = [scope.values[number] for number in operator.outputs]
    found = _computed(nodes, sorted(read), names, shared)
    if found is not None:
        del scope.writer.nodes[first:]
        for number, array in zip(operator.outputs, found, strict=True):
            scope.values[number] = shared.constant(array)


def _computed(nodes: list[NodeProto], read: list[str], wanted: list[str], shared: Shared) -> list[np.ndarray] | None:
    from onnx.reference import ReferenceEvaluator  # takes a moment to import

    given = [helper.make_empty_tensor_value_info(name) for name in read]
    results = [helper.make_empty_tensor_value_info(name) for name in wanted]
    graph = helper.make_graph(nodes, "sizes", given, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    try:
        made = ReferenceEvaluator(model).run(wanted, {name: shared.arrays[name] for name in read})
        return [np.asarray(array) for array in made]
    except _WRONG:
        return None
