"""The backward graph: nodes that compute gradients, written behind the network by the operators' own rules.

Invariant: nothing below this pass knows of training. A gradient is the sum over all readers of a value; where `of` does
not depend on a value, it is zeros. What no rule differentiates is refused by node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...base.errors import InternalError, Problem, UnsupportedModel
from ...base.provenance import show
from ...graph.ir import Graph, Node, Refused, Value, reads
from ...ops.api import Operator, resolve
from ...ops.rules.backward import Backward, Writer
from .disjoint import summed

FREEZE = "let nothing in front of this node learn (--learn), so that no gradient has to pass it"


def gradients(graph: Graph, of: Value, by: Sequence[Value]) -> list[Value]:
    """Appends to the graph the nodes that compute the gradient of the scalar `of` by each of `by`."""
    for value in (of, *by):
        if not value.type.dtype.is_float:
            raise _problem("no gradient", f"value {value.name}", f"it is {value.type}, and only floats have one", "")
    if not of.type.is_static or of.type.count != 1:
        fix = "sum it up: ReduceMean or ReduceSum over all axes"
        raise _problem("no gradient", f"value {of.name}", f"it is {of.type}, not one number", fix)
    return _Gradients(graph, set(by)).found(of, by)


class _Gradients:
    def __init__(self, graph: Graph, by: set[Value]) -> None:
        self.graph = graph
        self.writer = Writer(graph, resolve)
        self.parts: dict[Value, list[Value]] = {}  # of the gradient of a value, one of each reader
        self.moving = set(by)  # what follows from them
        _follow(graph.nodes, self.moving)

    def found(self, of: Value, by: Sequence[Value]) -> list[Value]:
        forward = list(self.graph.nodes)
        self.parts[of] = [self.writer.expand(self.writer.number(1, of), of.type.static_shape)]
        for node in reversed(forward):
            if any(value in self.parts and value in self.moving for value in node.present_outputs):
                self.pass_node(node)
        found = [self.total(value) or self.writer.zeros(value) for value in by]
        self.graph.sort()  # some read results that were written behind them
        return found

    def total(self, value: Value | None) -> Value | None:
        parts = self.parts.get(value) if value is not None else None
        if not parts or value is None:
            return None
        self.parts[value] = [summed(self.writer, parts)]
        return self.parts[value][0]

    def pass_node(self, node: Node) -> None:
        """From the gradients of a node's results to those of its operands."""
        if self.moving.isdisjoint(reads(node)):  # it makes one of `by`
            return
        wanted = frozenset(i for i, value in enumerate(node.inputs) if value in self.moving)
        if not isinstance(node.op, Operator):
            raise InternalError(f"{node.op.qualified_name} is not an operator")
        first = len(self.graph)
        back = Backward(self.writer, node, [self.total(value) for value in node.outputs], wanted)
        try:
            if any(not back.input(index).type.dtype.is_float for index in wanted):
                back.refuse("the weights that learn are rounded to integers before it")
            node.op.gradient(back)
            if not back.parts and any(value in self.moving for value in _captured(node)):
                back.refuse("its body reads what learns")
        except Refused as refused:
            where = f'node "{show(node.provenance)}" ({node.op.qualified_name})'
            raise _problem("no gradient", where, refused.why, refused.fix or FREEZE) from None
        if wanted != back.given:
            raise InternalError(f"{node.op.qualified_name} gives no gradient of operands {sorted(wanted - back.given)}")
        for index, gradient in back.gradients.items():
            self.parts.setdefault(back.input(index), []).append(gradient)
        if back.parts:
            nodes = list(self.graph.nodes)[first:]
            if back.everywhere:
                self.read_instead(node, back.parts)
            self.pass_parts(nodes, back)

    def read_instead(self, node: Node, parts: Sequence[Value]) -> None:
        """Lets all nodes read these results."""
        for old, new in zip(node.outputs, parts, strict=False):
            for reader, position in list(old.uses) if old is not None else ():
                self.graph.set_input(reader, position, new)

    def pass_parts(self, nodes: Sequence[Node], back: Backward) -> None:
        """Through nodes that compute the results of another one."""
        _follow(nodes, self.moving)
        for value, of in zip(back.parts, back.all_of, strict=False):
            if of is not None:
                self.parts.setdefault(value, []).append(of)
        for node in reversed(nodes):
            if any(value in self.parts and value in self.moving for value in node.present_outputs):
                self.pass_node(node)


def _follow(nodes: Iterable[Node], moving: set[Value]) -> None:
    """Adds the results of nodes that read what moves: floats, and integers that these were rounded to."""
    for node in nodes:
        moved = [value for value in reads(node) if value in moving]
        rounded = any(not value.type.dtype.is_float for value in moved) or getattr(node.op, "quantizes", False)
        if moved:
            moving.update(value for value in node.present_outputs if rounded or value.type.dtype.is_float)


def _captured(node: Node) -> list[Value]:
    """What regions of a node read from around it."""
    return list(reads(node))[len(list(node.present_inputs)) :] if node.regions else []


def _problem(what: str, where: str, why: str, fix: str) -> UnsupportedModel:
    return UnsupportedModel(Problem(what, where, why, fix))
