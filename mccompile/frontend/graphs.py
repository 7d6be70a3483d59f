"""Graphs of a file: constants, the order of nodes, and what the outputs are. What a node is, subclasses know.

Invariant: everything that is missing or made twice is reported once and counts as broken from then on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, TypeProto

from ..base.constant import Constant
from ..base.names import c_identifier
from ..base.structures import Maybe, Structure, in_order, leaves, named
from ..base.tensor import TensorType
from ..graph.ir import Fact, Graph, Invalid, Refused, Unsupported, Value
from . import sequences
from .adding import NodeAdder
from .bounds import Limits
from .contradictions import said_types
from .declarations import declared_shapes, partly_declared
from .findings import Findings
from .ordering import Circle
from .ordering import in_order as sorted_nodes
from .scope import FunctionKey, Missing, Scope, ScopedValue
from .signature import similar
from .tensors import declared, dense_constant_of, tensor_constant


class GraphReader(NodeAdder, ABC):
    functions: dict[FunctionKey, FunctionProto]  # that nodes may call

    def __init__(self, file: str, folder: Path | None, findings: Findings, limits: Limits) -> None:
        super().__init__(limits)
        self.file, self.folder, self.findings = file, folder, findings

    @abstractmethod
    def node(self, node: NodeProto, scope: Scope) -> None:
        """Adds a node to the scope's graph, or reports why not."""

    def constants(self, graph: GraphProto, scope: Scope) -> None:
        """The initializers, those that are also listed as inputs included: a default that a compiled model keeps."""
        tensors = [*((t.name, t) for t in graph.initializer), *((s.values.name, s) for s in graph.sparse_initializer)]
        for name, tensor in tensors:
            where = f"initializer {name!r} in {self.file}"
            if name in scope.values:
                self.findings.add("one name for two values", where, Invalid(f"{name!r} is made twice"))
                continue
            try:
                scope.values[name] = Value.of_constant(self.unique(name, scope), self._tensor(tensor))
            except Refused as refused:
                self.findings.add("a tensor cannot be read", where, refused)
                scope.values[name] = Missing.BROKEN

    def _tensor(self, tensor: TensorProto | SparseTensorProto) -> Constant:
        if isinstance(tensor, SparseTensorProto):
            return dense_constant_of(tensor, self.folder)
        return tensor_constant(tensor, self.folder)

    def nodes(self, nodes: Sequence[NodeProto], scope: Scope) -> None:
        """Adds the nodes to the scope's graph."""

        def missing(node: NodeProto, name: str) -> None:
            known = [*scope.values, *(made for other in nodes for made in other.output)]
            refused = Invalid(f"it reads {name!r}, which nothing makes", similar(name, known))
            self.findings.add("a value is missing", self._where(node, scope), refused)
            scope.values[name] = Missing.BROKEN

        try:
            ordered = sorted_nodes(nodes, lambda name: scope.find(name) is not None, missing)
        except Circle as circle:
            names = [scope.origin(node) for node in circle.nodes]
            refused = Invalid(
                "these nodes form a cycle: " + " -> ".join([*names, names[0]]),
                "a loop has to be written with the operators Loop or Scan",
            )
            self.findings.add("the graph has a cycle", f"{len(names)} nodes in {self.file}", refused)
            self.findings.stop()
        for node in ordered:
            self.node(node, scope)

    def outputs(self, graph: GraphProto, scope: Scope) -> list[ScopedValue] | None:
        """Binds the outputs of the scope's graph; None where one is broken."""
        found = self.results(graph, scope)
        if found is not None:
            for position, (entry, whole) in enumerate(zip(graph.output, found, strict=True)):
                if isinstance(whole, Maybe) and entry.type.WhichOneof("value") != "optional_type":
                    for value in whole.leaves():  # the name is that of the output
                        if value.producer is not None:
                            value.name = self.unique(f"{value.name}/optional", scope, made_up=True)
                    found[position] = sequences.content(self.writer(scope, entry.name), whole)
            self.bind([output.name for output in graph.output], found, scope)
        return found

    def results(self, graph: GraphProto, scope: Scope) -> list[ScopedValue] | None:
        """What the outputs of a graph are; None where one is broken."""
        whole: list[ScopedValue] = []
        for output in graph.output:
            value = scope.find(output.name)
            if value is None or value is Missing.ABSENT:
                where = f"output {output.name!r} of graph {graph.name!r} in {self.file}"
                known = [name for name, found in scope.values.items() if isinstance(found, Value)]
                self.findings.add("a value is missing", where, Invalid("nothing makes it", similar(output.name, known)))
            if value is not None and not isinstance(value, Missing):
                whole.append(value)
        return whole if len(whole) == len(graph.output) else None

    def bind(self, names: Sequence[str], found: Sequence[ScopedValue], scope: Scope) -> None:
        """Makes these the outputs of the scope's graph; what one consists of is named after it."""
        own = {*scope.graph.inputs, *(v for node in scope.graph.nodes for v in node.present_outputs)}
        for name, whole in zip(names, found, strict=True):
            for value, part in zip(leaves(whole), leaves(named(whole, name)), strict=True):
                renamed = scope.outer is None and value.name != part
                if renamed or (value not in own and value.constant is None) or value in scope.graph.outputs:
                    value = self.copy(value, part, scope)
                scope.graph.outputs.append(value)

    def region(
        self,
        graph: GraphProto,
        scope: Scope,
        prefix: str,
        facts: Sequence[Fact | Structure[Fact]] | None,
        search_only: bool = False,
    ) -> Scope:
        """The body of If, Loop or Scan, whose outputs are still to be bound; `facts` about its inputs, where the
        operator knows them better than the file.

        With `search_only` it is read for the sake of the operators in it that are not supported.
        """
        names = [entry.name for entry in graph.input]
        if len(set(names)) < len(names):
            twice = Invalid("it has one name for two inputs", "give each a name of its own")
            self.findings.add("invalid body", f"{prefix.rstrip('/')} in {self.file}", twice)
        inner = Scope(
            Graph(graph.name), scope.opsets, scope, {}, scope.attributes, prefix, scope.provenance, scope.functions
        )
        inner.around = scope.around | {c_identifier(prefix.removesuffix("/").rpartition("/")[0])}
        inner.shapes, inner.said = declared_shapes(graph, {}), said_types(graph)
        inner.partly = partly_declared(graph, {})
        self.limits.declare((*graph.value_info, *graph.output))
        self.constants(graph, inner)
        for number, entry in enumerate(graph.input):
            if search_only:
                inner.values[entry.name] = Missing.BROKEN
                continue
            known = facts is not None and number < len(facts)
            fact = facts[number] if facts is not None and known else Fact(_static_type(entry.type))
            made = [
                Value(self.unique(name, inner), leaf)
                for name, leaf in zip(leaves(named(fact, entry.name)), leaves(fact), strict=True)
            ]
            inner.graph.inputs += made
            inner.values[entry.name] = in_order(fact, iter(made))
        self.nodes(graph.node, inner)
        return inner

    def _where(self, node: NodeProto, scope: Scope) -> str:
        domain = normal_domain(node.domain)
        label = f"{domain}.{node.op_type}" if domain else node.op_type
        opset = scope.opsets.get(domain)
        version = f", opset {opset}" if opset is not None else ""
        return f'node "{scope.origin(node)}" ({label}{version}) in {self.file}'


def normal_domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def names_made(graph: GraphProto) -> set[str]:
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    return made | {name for node in graph.node for name in node.output}


def _static_type(type: TypeProto) -> TensorType:
    """What a region's input is declared to be."""
    if type.WhichOneof("value") != "tensor_type":
        raise Unsupported("an input of its body is not a tensor")
    dtype, shape = declared(type)
    if shape is None:
        raise Unsupported("the rank of an input of its body is not known")
    sizes = tuple(dim for dim in shape if isinstance(dim, int))
    if len(sizes) != len(shape):
        raise Unsupported("the shape of an input of its body is not known")
    return TensorType(dtype, sizes)
