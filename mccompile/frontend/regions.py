"""Nodes with regions: which branch of an If is taken, how often a Loop runs, what bodies give.

Invariant: a region is read once for the graph that is made; what is left out of it is left out for a stated fact, or
ends the run with an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import GraphProto, NodeProto

from ..graph.ir import Fact, Graph, Invalid, Node, Unsupported, Value
from ..ops.api import OnnxNode, Operator, resolve
from ..ops.control_flow import Impossible
from . import sequences
from .bounds import Limits
from .contradictions import said_types
from .declarations import declared_ranks, declared_shapes
from .evaluate import constant_of
from .findings import Findings
from .functions import attributes_of
from .graphs import GraphReader
from .loop_counters import steps_of
from .loop_trips import exact_trips, without_condition
from .node_checks import is_graph
from .ordering import node_name
from .scope import Found, Missing, Scope, ScopedValue, is_structure


class RegionReader(GraphReader):
    def __init__(self, file: str, folder: Path | None, findings: Findings, limits: Limits) -> None:
        super().__init__(file, folder, findings, limits)
        self.chosen: Mapping[str, int] = {}  # the branch of an If that has to be taken, since only its rank can be used
        self.declared_branches: dict[str, int] = {}  # the one whose rank the file declares, where ranks differ
        self.assumptions: dict[str, None] = {}  # what was concluded from values of constants

    def _condition(self, operands: Sequence[Found | None]) -> bool | None:
        """What the condition of an If is, where that follows from constants."""
        constant = constant_of(operands[0], self._computed) if isinstance(operands[0], Value) else None
        return bool(constant.array.reshape(-1)[0]) if constant is not None and constant.array.size == 1 else None

    def _known(self, value: Found | None) -> np.ndarray | None:
        constant = constant_of(value, self._computed) if isinstance(value, Value) else None
        return None if constant is None else constant.array

    def steps(self, body: GraphProto, scope: Scope) -> Mapping[int, int]:
        """What a trip of a Loop adds to those of its operands that count."""
        return steps_of(body, lambda name: self._known(scope.find(name)))

    def _counted(
        self, node: NodeProto, operands: Sequence[Found | None], scope: Scope
    ) -> tuple[NodeProto, list[Value]]:
        """A loop that ends by its condition as one that counts, where it is known how often it runs: the node, and what
        its first operands are then."""
        place = next((n for n, a in enumerate(node.attribute) if is_graph(a) and not a.ref_attr_name), None)
        if place is None or len(operands) < 2:
            return node, []
        body, constants = node.attribute[place].g, [self._known(value) for value in operands]
        present = [value not in (None, Missing.ABSENT) for value in operands]
        trips = exact_trips(body, scope.opsets[""], constants, present, lambda name: self._known(scope.find(name)))
        if trips is None:
            return node, []
        origin = scope.origin(node)
        self.assumptions[f"{origin} runs {trips} times"] = None
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.attribute[place].g.CopyFrom(without_condition(body))
        counted = [self.constant(np.array(value), scope, origin) for value in (np.int64(trips), np.bool_(True))]
        return copy, counted

    def _is_broken(self, name: str, scope: Scope) -> bool:
        return scope.find(name) in (Missing.BROKEN, None)

    def _branch(self, node: NodeProto, chosen: bool, scope: Scope) -> Sequence[Found]:
        """Only the branch that is taken, inlined in place of an If whose condition is known."""
        self.assumptions[f"the condition of {scope.origin(node)} is {str(chosen).lower()}"] = None
        wanted = "then_branch" if chosen else "else_branch"
        graph = next(a.g for a in attributes_of(node, scope.attributes) if a.name == wanted)
        shapes = declared_shapes(graph, {})
        said = said_types(graph)
        inner = replace(scope, outer=scope, values={}, prefix=f"{scope.origin(node)}/", shapes=shapes, said=said)
        self.constants(graph, inner)
        self.nodes(graph.node, inner)
        if len(graph.output) < len(node.output):
            raise Invalid(f"it has {len(node.output)} results, its {wanted} gives {len(graph.output)}")
        results: list[Found] = []
        for output, name in zip(graph.output, node.output, strict=False):
            value = inner.find(output.name)
            if value is None:
                raise Invalid(f"its {wanted} gives {output.name!r}, which nothing makes")
            if isinstance(value, Value) and name and value in inner.values.values() and value not in results:
                value.name = self.unique(name, scope)
            results.append(value)
        return results

    def _regions(
        self, node: NodeProto, operator: tuple[type[Operator], OnnxNode] | None, scope: Scope
    ) -> tuple[tuple[Graph, ...], list[ScopedValue] | None] | None:
        """The node's regions, and what they give where that is not only tensors; None where one could not be read.
        Without an operator they are searched only."""
        graphs = [(a.name, a.g) for a in attributes_of(node, scope.attributes) if is_graph(a)]
        scopes: list[Scope] = []
        results: list[list[ScopedValue] | None] = []
        around = self.findings
        apart: list[Findings] = []
        # then_branch before else_branch; every other operator has one region
        graphs.sort(key=lambda entry: entry[0], reverse=True)
        if operator is not None:
            operator[1].ranks = [declared_ranks(graph) for _, graph in graphs]
        for number, (name, graph) in enumerate(graphs):
            facts = operator[0].region_inputs(operator[1], number) if operator else None
            self.findings = Findings(around.sized)
            apart.append(self.findings)
            scopes.append(self.region(graph, scope, f"{scope.origin(node)}/{name}/", facts, operator is None))
            results.append(self.results(graph, scopes[-1]))
            self.findings = around
        wholes: list[ScopedValue] | None = None
        if any(map(is_structure, (value for result in results for value in result or ()))):
            wholes = self._alike(node, scopes, results)
        found: list[Graph | None] = []
        for (_, graph), inner, result in zip(graphs, scopes, results, strict=True):
            if result is not None:
                self.bind([output.name for output in graph.output], result, inner)
            found.append(inner.graph if result is not None else None)
        if operator is not None and operator[0] is resolve("", "If"):
            self._replace_impossible(node, found, apart, scope)
        for findings in apart:
            around.take(findings)
        whole = [graph for graph in found if graph is not None]
        return (tuple(whole), wholes) if len(whole) == len(found) else None

    def _alike(
        self, node: NodeProto, scopes: list[Scope], results: list[list[ScopedValue] | None]
    ) -> list[ScopedValue]:
        """Makes sequences and the like, which two branches give, of one form."""
        if node.op_type != "If":
            raise Unsupported("its body gives a sequence", "collect tensors of one shape")
        whole = [result for result in results if result is not None]
        if len(whole) < 2 or len(whole[0]) != len(whole[1]):
            return whole[0]
        writers = [self.writer(scope, scope.provenance + node_name(node)) for scope in scopes]
        for position, pair in enumerate(zip(*whole, strict=True)):
            whole[0][position], whole[1][position] = sequences.alike(writers, pair)
        return whole[0]

    def _replace_impossible(
        self, node: NodeProto, branches: list[Graph | None], apart: list[Findings], scope: Scope
    ) -> None:
        """A branch whose sizes do not fit ends the run with an error, if the other one is right: exporters leave
        branches in a model that are never taken for its sizes."""
        for number, findings in enumerate(apart):
            other = branches[1 - number]
            if branches[number] is None and other is not None and findings.first_reason and findings.only_misfits:
                branches[number] = self._impossible(node, other, findings.first_reason, scope)
                apart[number] = Findings(self.findings.sized)
        then, otherwise = branches
        if then is None or otherwise is None:
            return
        origin = scope.origin(node)
        if origin in self.chosen:
            taken, other = (then, otherwise) if self.chosen[origin] == 0 else (otherwise, then)
            for inner in reversed(list(other.nodes)):
                other.remove(inner)
            why = f"the results of {origin} are used with the ranks that its other branch gives"
            branches[1 - self.chosen[origin]] = self._impossible(node, taken, why, scope)
            return
        ranks = [
            (None if said is None or said.shape is None else len(said.shape), a.type.rank, b.type.rank)
            for said, a, b in zip(map(scope.said.get, node.output), then.outputs, otherwise.outputs, strict=False)
            if a.type.rank != b.type.rank
        ]
        fitting = [branch for branch in (0, 1) if all(rank[0] == rank[1 + branch] for rank in ranks)]
        if ranks and fitting:
            self.declared_branches[origin] = fitting[0]

    def _impossible(self, node: NodeProto, other: Graph, why: str, scope: Scope) -> Graph:
        """What stands for a branch that cannot run; its results are like those of the other."""
        graph = Graph("impossible")
        types = [value.type for value in other.outputs]
        op = Impossible(why, tuple(t.dtype for t in types), tuple(t.shape for t in types))
        results = [
            Value(self.unique(f"{value.name}/impossible", scope, True), Fact(value.type)) for value in other.outputs
        ]
        graph.add(Node(op, [], results, (scope.origin(node),)))
        graph.outputs += results
        return graph
