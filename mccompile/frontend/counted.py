"""How many elements are true, where a file sums them beside NonZero of the same mask, as torch writes `x[mask] = y`.

Invariant: the sum is over every element that NonZero reads, so it is the size of what that gives.
"""

from __future__ import annotations

from ..base.dtypes import bool_, i64
from ..graph.ir import Graph, Node, Value

_KEEP_ELEMENTS = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def counted(node: Node, graph: Graph) -> Value | None:
    """What NonZero in the same graph gives, if the node's result is how many places that has."""
    total = node.outputs[0]
    if node.op.name != "ReduceSum" or node.op.domain or total is None or total.type.dtype is not i64:
        return None
    if not total.type.is_static or total.type.count != 1:
        return None  # of one element: everything is summed
    value = node.inputs[0]
    while value is not None:
        places = _places(value, graph) if value.type.dtype is bool_ else None
        if places is not None:
            return places
        made = value.producer
        if made is None or made.op.domain or made.op.name not in _KEEP_ELEMENTS:
            return None
        if value.type.dtype is bool_ and made.op.name == "Cast":
            return None  # it is not numbers that are summed, but which of them are not zero
        value = made.inputs[0]
    return None


def _places(mask: Value, graph: Graph) -> Value | None:
    """Where it is true, if that is asked for in this graph."""
    readers = {user for user, _ in mask.uses if user.op.name == "NonZero" and not user.op.domain}
    return next((node.output for node in graph.nodes if node in readers), None)
