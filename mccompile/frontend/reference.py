"""Nodes and models through onnx's own evaluator.

Invariant: whatever goes wrong inside the evaluator comes out as `EvaluationFailed`; it has gaps, and they are not the
model's fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import ModelProto

from ..graph.ir import Graph, Node
from .save import node_model, to_onnx

# what its operators are seen to raise for what they do not know; it documents nothing
_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class EvaluationFailed(Exception):
    """The evaluator cannot do it."""


def run_node(node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
    """The node's results for these operands; None where an operand or a result is absent."""
    feeds = {f"in{i}": array for i, array in enumerate(arrays) if array is not None}
    found = iter(run_model(node_model(node), feeds))
    return [next(found) if value is not None else None for value in node.outputs]


def run_graph(graph: Graph, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a graph."""
    return run_model(to_onnx(graph), feeds)


def run_model(model: ModelProto | str, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model, in order."""
    return evaluator(model)(feeds)


def evaluator(model: ModelProto | str) -> Callable[[Mapping[str, np.ndarray]], list[np.ndarray]]:
    """What gives the outputs of a model, in order, for inputs by name."""
    from onnx.reference import ReferenceEvaluator  # takes a moment to import, and many compilations fold nothing

    try:
        ready = ReferenceEvaluator(model)
    except _FAILURES as failure:
        raise EvaluationFailed(f"{type(failure).__name__}: {failure}") from failure
    return lambda feeds: _run(ready.run, feeds)


def _run(run: Callable[..., object], feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    try:
        with np.errstate(all="ignore"):
            results = run(None, dict(feeds))
    except _FAILURES as failure:
        raise EvaluationFailed(f"{type(failure).__name__}: {failure}") from failure
    assert isinstance(results, list)
    arrays = []
    for result in results:
        if not isinstance(result, np.ndarray | np.generic):
            raise EvaluationFailed(f"a result is a {type(result).__name__}")
        arrays.append(np.asarray(result))
    return arrays
