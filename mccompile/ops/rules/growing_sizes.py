"""Sizes that are another one in every trip of a loop, since they follow from how much of a growing buffer is used.

Other sizes that a trip finds may be the same in all of them, which a run checks.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...base.dims import Symbol, symbols
from ...graph.ir import Graph, Value

_USED = "SlotPosition"  # how much of a buffer is used


def growing_sizes(body: Graph) -> set[Symbol]:
    """The symbols that results of nodes are the first to name, and that follow from how much is used."""
    grows: set[Value] = set()
    found: set[Symbol] = set()
    for node in body.nodes:
        reads = list(node.present_inputs)
        results = list(node.present_outputs)
        if node.op.name == _USED or any(value in grows for value in reads):
            grows.update(results)
            found |= _named(results) - _named(reads)
    return found


def _named(values: Iterable[Value]) -> set[Symbol]:
    found: set[Symbol] = set()
    for value in values:
        dims = list(value.type.shape)
        dims += [] if value.fact.value is None else value.fact.value.reshape(-1).tolist()
        for dim in dims:
            if not isinstance(dim, int | float | bool):
                found |= symbols(dim)
    return found
