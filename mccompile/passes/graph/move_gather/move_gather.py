"""move_gather: a Gather or Slice of few elements of an axis goes in front of the products that make them.

A classifier reads one token of the last layer, a language model the last one: queries, attention, projections and
feed-forward of the other tokens are computed for nobody. All readers of a tensor must take the same elements, and each
operator on the way must treat the elements of the axis one by one (operand_axes.py).

Without a product on the way the Gather stays where it is: it is a view there, and everything in front of it is fused.
Invariant: an element that is left is computed as before.
"""

from __future__ import annotations

import numpy as np

from ....base.constant import Constant
from ....base.dtypes import bool_
from ....base.errors import InternalError
from ....base.names import new_name
from ....graph.ir import Graph, Node, Op, Value, graphs
from ....ops.reshape import Reshape, SameElements, Squeeze, Unsqueeze
from ....ops.rules.elementwise import Elementwise
from ...api import Context
from ..eliminate_dead import drop_dead
from .operand_axes import PRODUCTS, operand_axes
from .selection import Selection, selection


def move_gather(graph: Graph, context: Context) -> None:
    if graph.updatable:
        return
    parts = list(graphs(graph))
    outputs = {value for part in parts for value in part.outputs}
    names = {value.name for part in parts for value in part.values()}
    if sum(_Moving(part, outputs, names).run() for part in parts):
        drop_dead(graph)


class _Moving:
    def __init__(self, graph: Graph, outputs: set[Value], names: set[str]) -> None:
        self.graph, self.outputs, self.names = graph, outputs, names
        self.nodes = list(graph.nodes)
        self.taken: dict[Value, Selection] = {}  # what all readers of a tensor take
        self.roots: dict[Node, Selection] = {}  # nodes that take it
        self.new: dict[tuple[Value, Selection], Value] = {}

    def run(self) -> int:
        """How many products are smaller."""
        staying = set[Node]()
        while True:
            self.analyse(staying)
            useless = [node for node in self.roots if not self.pays(node)]
            if not useless:
                break
            staying.update(useless)
        if not self.roots:
            return 0
        products = [node for node in self.nodes if isinstance(node.op, PRODUCTS) and node.output in self.taken]
        for node in self.nodes:
            if any(value in self.taken for value in node.present_outputs):
                self.narrow(node)
        for root, chosen in self.roots.items():
            self.replace(root, chosen)
        self.graph.sort()
        return len(products)

    # -- what is taken of each tensor

    def analyse(self, staying: set[Node]) -> None:
        votes: dict[Value, list[Selection]] = {}
        taken, roots = dict[Value, Selection](), dict[Node, Selection]()
        for node in reversed(self.nodes):
            results = [value for value in node.present_outputs if value.uses or value in self.outputs]
            for value in results:
                found = votes.get(value, [])
                if len(found) == len(value.uses) and len(set(found)) == 1 and value not in self.outputs:
                    taken[value] = found[0]
            axes = self.moved(node, results, taken)
            if axes is not None:
                chosen = taken[results[0]]
                for position, axis in axes.items():
                    votes.setdefault(_operand(node, position), []).append(chosen.along(axis))
                continue
            for value in results:
                taken.pop(value, None)
            root = None if node in staying else selection(node)
            if root is not None:
                votes.setdefault(_operand(node, 0), []).append(root)
                roots[node] = root
        self.taken, self.roots = taken, {node: root for node, root in roots.items() if node.inputs[0] in taken}

    @staticmethod
    def moved(node: Node, results: list[Value], taken: dict[Value, Selection]) -> dict[int, int] | None:
        found = {taken.get(value) for value in results}
        chosen = found.pop() if len(found) == 1 else None
        return None if chosen is None else operand_axes(node, chosen.axis)

    def pays(self, root: Node) -> bool:
        """Is there a product in front of it?"""
        waiting, seen = [root.inputs[0]], set[Value | None]()
        while waiting:
            value = waiting.pop()
            if value in seen or value not in self.taken or value is None or value.producer is None:
                continue
            seen.add(value)
            if isinstance(value.producer.op, PRODUCTS):
                return True
            waiting += value.producer.inputs
        return False

    # -- the graph with smaller tensors

    def narrow(self, node: Node) -> None:
        chosen = next(self.taken[value] for value in node.present_outputs if value in self.taken)
        for value, small in zip(node.outputs, self.computed(node, chosen), strict=True):
            if value is not None:
                value.name, small.name = small.name, value.name
                self.new[value, chosen] = small

    def computed(self, node: Node, chosen: Selection) -> list[Value]:
        axes = operand_axes(node, chosen.axis)
        assert axes is not None
        operands = [
            value if value is None or place not in axes else self.small(value, chosen.along(axes[place]))
            for place, value in enumerate(node.inputs)
        ]
        op: Op = node.op
        if isinstance(op, SameElements) and not isinstance(op, Squeeze | Unsqueeze):
            first = operands[0]
            assert first is not None
            count = first.type.shape[axes[0]]
            shape = [count if place == chosen.axis else dim for place, dim in enumerate(node.output.type.shape)]
            sizes = [dim if isinstance(dim, int) else -1 for dim in shape]
            op, operands = Reshape(allowzero=0), [first, self.constant(np.array(sizes, np.int64), node.output.name)]
        return self.compute(op, operands, node)

    def compute(self, op: Op, operands: list[Value | None], like: Node) -> list[Value]:
        names = [self.name(f"{(value or like.output).name}/taken") for value in like.outputs]
        return self.graph.compute(op, operands, names, like.provenance)

    def small(self, value: Value, chosen: Selection) -> Value:
        """The elements of an operand."""
        if (value, chosen) not in self.new:
            self.new[value, chosen] = self.selected(value, chosen)
        return self.new[value, chosen]

    def selected(self, value: Value, chosen: Selection) -> Value:
        if value.constant is not None:
            return self.constant(chosen.of(value.constant.array), value.name)
        maker = value.producer
        if maker is not None and self.is_mask(maker) and operand_axes(maker, chosen.axis) is not None:
            return self.computed(maker, chosen)[0]
        op, operands = chosen.node()
        constants = [self.constant(array, value.name) for array in operands]
        provenance = next(iter(value.uses))[0].provenance if maker is None else maker.provenance
        return self.graph.compute(op, [value, *constants], [self.name(f"{value.name}/taken")], provenance)[0]

    def is_mask(self, node: Node) -> bool:
        """Computed again for the elements that are taken: it is an expression of positions, not a tensor in memory."""
        return isinstance(node.op, Elementwise | Unsqueeze) and node.output.type.dtype is bool_ and node in self.nodes

    def replace(self, root: Node, chosen: Selection) -> None:
        new = self.new[_operand(root, 0), chosen]
        if new.type.rank != root.output.type.rank:
            axes = self.constant(np.array([chosen.axis], np.int64), root.output.name)
            new = self.compute(Squeeze(), [new, axes], root)[0]
        if new.type != root.output.type:
            raise InternalError(f"{root.output.name} of type {root.output.type} becomes {new.type}")
        self.graph.replace(root.output, new)

    def constant(self, array: np.ndarray, name: str) -> Value:
        return Value.of_constant(self.name(f"{name}/taken"), Constant.of(array))

    def name(self, text: str) -> str:
        return new_name(text, self.names)


def _operand(node: Node, position: int) -> Value:
    value = node.inputs[position]
    assert value is not None
    return value
