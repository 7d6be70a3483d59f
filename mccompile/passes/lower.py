"""lower: turns the graph into a program. Each operator writes its calls; values become views.

Every operator that cannot be lowered is collected before stopping, so the user sees all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..base.constant import Constant
from ..base.dims import NotStatic
from ..base.dtypes import string
from ..base.errors import Problem, UnsupportedModel, raise_all
from ..base.names import Names
from ..graph.ir import Graph, Node, Origin, Refused, Unsupported, Value
from ..ops.api import Lowering, Operator
from ..ops.control_flow import If
from ..ops.rules.known_shapes import FIX_DIMENSIONS
from ..program.ir import CONSTANT, INPUT, Buffer, Item, Measure, Program, View


def lower(graph: Graph, known: Mapping[Value, Constant] = MappingProxyType({})) -> Program:
    """The program of a graph; of what is known nothing is computed."""
    return _Lower(graph, known).run()


class _Lower:
    def __init__(self, graph: Graph, known: Mapping[Value, Constant]) -> None:
        self.graph, self.known = graph, known
        self.program = Program(graph.name, assumptions=dict(graph.assumptions), states=dict(graph.states))
        self.names = Names()
        self.views: dict[Value, View] = {}
        self.problems: list[Problem] = []
        self.repeats = False  # inside of a loop
        self.preamble: list[Item] = []  # what makes constants that cannot lie in the blob, before all else

    def run(self) -> Program:
        for value in self.graph.inputs:
            buffer = Buffer(self.names.take(value.name), value.type.dtype, value.type.shape, INPUT)
            self.program.inputs.append((value.name, buffer))
            self.views[value] = buffer.whole()
            if value.name in self.graph.lengths:
                self.program.body.append(Measure(self.graph.lengths[value.name], buffer.whole(), (value.name,)))
        for name, first in self.graph.initial.items():
            self.program.initial[name] = None
            if first is not None:
                label, type = self.names.take(first.name), first.type
                self.program.initial[name] = Buffer(label, type.dtype, type.shape, CONSTANT, first.constant)
        self.nodes(self.graph, self.program.body)
        raise_all(UnsupportedModel, self.problems)
        for value in self.graph.outputs:
            self.program.outputs.append((value.name, self.output(value)))
        self.program.body[:0] = self.preamble
        self.program.values = [
            (value.origin.name, view.permuted(sorted(range(value.type.rank), key=value.origin.order.__getitem__)))
            for value, view in self.views.items()
            if value.origin is not None and _is_whole(value, value.origin)
        ]
        return self.program

    def nodes(self, graph: Graph, body: list[Item]) -> None:
        for node in graph.nodes:
            computed = any(value not in self.known for value in node.present_outputs)
            if computed and all(self.available(value) for value in node.present_inputs):
                self.node(node, body)

    def available(self, value: Value) -> bool:
        """False below an operator that has been refused already."""
        return value in self.views or self.constant(value) is not None

    def constant(self, value: Value) -> Constant | None:
        return value.constant or self.known.get(value)

    def node(self, node: Node, body: list[Item]) -> None:
        def view_of(position: int) -> View:
            value = node.inputs[position]
            assert value is not None
            return self.view(value)

        def region(number: int, inner: list[Item], inputs: Sequence[View]) -> list[View]:
            graph = node.regions[number]
            self.views.update(zip(graph.inputs, inputs, strict=True))
            outside, self.repeats = self.repeats, self.repeats or not isinstance(node.op, If)
            self.nodes(graph, inner)
            self.repeats = outside
            if not all(self.available(value) for value in graph.outputs):
                raise _RefusedInside("")
            return [self.view(value) for value in graph.outputs]

        to = Lowering(self.program, body, node, view_of, self.names, region)
        to.returned = frozenset(self.graph.outputs)
        to.repeats = self.repeats
        for dim in (dim for made in node.present_outputs for dim in made.type.shape):
            to.require(dim)
        try:
            if not isinstance(node.op, Operator):
                raise Refused("it has no lowering")
            try:
                node.op.lower(to)
            except NotStatic as unknown:
                raise Unsupported(str(unknown), FIX_DIMENSIONS) from unknown
        except _RefusedInside:
            return
        except Refused as refused:
            where = ", ".join(f'node "{name}"' for name in node.provenance)
            self.problems.append(
                Problem(
                    f"cannot compile {node.op.qualified_name}", f"{where} ({node.op.name})", refused.why, refused.fix
                )
            )
            return
        for position, value in enumerate(node.outputs):
            if value is not None:
                self.views[value] = to.results[position]

    def view(self, value: Value) -> View:
        constant = self.constant(value)
        if value not in self.views and constant is not None:
            type = value.type
            if type.dtype is string:
                node = Node(_CONSTANT, [], [value], (value.name,))
                to = Lowering(self.program, self.preamble, node, lambda _: self.view(value), self.names, lambda *_: [])
                self.views[value] = to.strings(constant, value.name)
                return self.views[value]
            buffer = Buffer(self.names.take(value.name), type.dtype, type.shape, CONSTANT, constant)
            self.views[value] = buffer.whole()
        return self.views[value]

    def output(self, value: Value) -> View:
        """Outputs are dense: the API hands out a pointer to them. What is kept for the next run does not lie where
        something else is kept, so that all can be brought to their places one after the other; nor does what is handed
        out, which is read after that."""
        view, states = self.view(value), self.graph.states
        inputs = self.program.inputs
        is_state = value.name in states.values()
        kept = {buffer for name, buffer in inputs if name in states or name in self.graph.initial or is_state}
        if view.is_dense and view.buffer not in kept:
            return view
        provenance = value.producer.provenance if value.producer else (value.name,)
        copy = Node(_COPY, [value], [Value(value.name, value.fact)], provenance)
        to = Lowering(self.program, self.program.body, copy, lambda _: view, self.names, lambda *_: [])
        return to.copy(view)


def _is_whole(value: Value, origin: Origin) -> bool:
    """Does the value have all elements of the file's tensor, as they are there?"""
    shape = tuple(origin.type.shape[axis] for axis in origin.order)
    return value.constant is None and value.type == replace(origin.type, shape=shape)


class _RefusedInside(Refused):
    """Something in a region of a node was refused, and has been noted."""


class _Copy(Operator):
    """Stands for the copy of a strided output; never part of a graph."""


class _Constant(Operator):
    """Stands for the call that makes a constant; never part of a graph."""


_COPY, _CONSTANT = _Copy(), _Constant()
