"""A graph as it was, to be put back after passes have changed it in place.

Invariant: every object of the graph is the one that it was, and holds what it held. Operators, facts and constants are
shared, as nobody changes them: a snapshot takes no memory for weights.
"""

from __future__ import annotations

from typing import Any

from .ir import Graph, Node, Value


class Snapshot:
    def __init__(self, graph: Graph) -> None:
        self.saved: dict[Graph | Node | Value, dict[str, Any]] = {}
        waiting: list[Graph | Node | Value] = [graph]
        while waiting:
            found = waiting.pop()
            if found in self.saved:
                continue
            self.saved[found] = _copied(vars(found))
            if isinstance(found, Graph):
                waiting += [*found.inputs, *found.nodes, *found.outputs]
            elif isinstance(found, Node):
                waiting += [*found.present_inputs, *found.present_outputs, *found.regions]

    def restore(self) -> None:
        """Puts everything back, as often as one likes."""
        for found, contents in self.saved.items():
            vars(found).clear()
            vars(found).update(_copied(contents))


def _copied(contents: dict[str, Any]) -> dict[str, Any]:
    """With lists and tables of its own."""
    return {name: value.copy() if isinstance(value, list | dict) else value for name, value in contents.items()}
