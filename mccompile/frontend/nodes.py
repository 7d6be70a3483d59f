"""Nodes of a file into nodes of a graph: operators found and typed, functions inlined, regions kept.

Invariant: a node is added to the graph only when its operator is supported and its types are known; otherwise the
reason is collected and its results count as broken, so whatever reads them is checked as far as it goes without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from ..base.own_functions import OwnFunction
from ..graph.ir import Fact, Graph, Invalid, Node, Refused, Site, Unsupported, Value
from ..ops.api import OnnxNode, Operator, find, resolve
from ..ops.constant import constant_value
from ..ops.control_flow import Impossible, RanksDiffer
from ..ops.rules.trips import Changes, Grows
from ..ops.rules.window import PadsFollow
from . import composed, growing_loops, peeled_loops, searches, sequences
from .attribute_values import check_values
from .bounds import Limits
from .contradictions import Results, said_types
from .declarations import backwards, declared_ranks, declared_shapes
from .evaluate import constant_of
from .extent import over_budget
from .findings import Findings
from .functions import attributes_of, body_of, defaults_of, resolved, type_proto
from .graphs import GraphReader, normal_domain
from .loop_trips import exact_trips, without_condition
from .node_checks import MISFITS, check_branches, check_new, check_operands, is_graph, no_class, refusal
from .onnxruntime_forms import check_onnxruntime_form
from .ordering import names_read, node_name
from .own_functions import asked_for, external, operand_types
from .scope import Found, Missing, Scope, Whole, is_structure
from .sequence_loops import loop
from .signature import CONSUMED, STANDARD_DOMAINS, Signature, check_form, signature, without_consumed
from .tensors import attribute_value


class NodeReader(GraphReader):
    def __init__(
        self,
        file: str,
        folder: Path | None,
        functions: Iterable[FunctionProto],
        findings: Findings,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(file, folder, findings, limits or Limits({}))
        self.functions = {(normal_domain(f.domain), f.name, f.overload): f for f in functions}
        self.results_made = Results()
        self.own: Sequence[OwnFunction] = ()  # that compute operators which nothing here knows
        self.chosen: Mapping[str, int] = {}  # the branch of an If that has to be taken, since only its rank can be used
        self.declared_branches: dict[str, int] = {}  # the one whose rank the file declares, where ranks differ
        self.facts_used: dict[str, None] = {}  # what was concluded from values of constants
        self.assumed: dict[str, None] = {}  # where the file does not say it
        self.unsaid: Mapping[str, int] = {}  # versions of domains that it does not name

    # -- nodes

    def check_extent(self, graph: GraphProto, scope: Scope) -> None:
        """Stops where inlined functions would have more nodes than the budget allows."""
        found = over_budget(graph, self.functions)
        if found is not None:
            node, refused = found
            self._refuse(node, refused, scope)
            self.findings.stop()

    def node(self, node: NodeProto, scope: Scope) -> None:
        results: Sequence[Found]
        try:
            check_new(node.output, scope.values)
            results = self._read(node, scope)
        except (Refused, *MISFITS) as error:
            self._refuse(node, refusal(error), scope)
            results = [Missing.BROKEN] * len(node.output)
        for name, value in zip(node.output, results, strict=False):
            if name:
                scope.values[name] = value
                if isinstance(value, Value) and not scope.functions:
                    self.results_made.add(name, value, scope.said.get(name), lambda: self._where(node, scope))

    def _refuse(self, node: NodeProto, refused: Refused, scope: Scope) -> None:
        domain = normal_domain(node.domain)
        label = f"{domain}.{node.op_type}" if domain else node.op_type
        what = f"invalid {label} node" if isinstance(refused, Invalid) else f"unsupported operator {label}"
        self.findings.add(what, self._where(node, scope), refused)
        if isinstance(refused, RanksDiffer):
            self.findings.ranks[scope.origin(node)] = self.declared_branches.get(scope.origin(node))

    def _read(self, node: NodeProto, scope: Scope) -> Sequence[Found]:
        """The results of a node, which is added to the graph; raises Refused."""
        domain = normal_domain(node.domain)
        function = self.functions.get((domain, node.op_type, node.overload))
        own = asked_for(self.own, domain, node)
        if own is not None and (function is not None or find(domain, node.op_type) is None):
            return self._own(own, node, scope)
        if function is not None:
            return self._call(node, function, scope, {}, f"{scope.origin(node)}/")
        if domain in self.unsaid and scope.opsets[domain] == self.unsaid[domain]:
            taken = f"{self.unsaid[domain]}, the newest, is taken"
            self.assumed[f"the model does not name its version of domain {domain or 'ai.onnx'!r}: {taken}"] = None
        elif domain not in scope.opsets and domain in composed.domains():
            self.assumed[f"the model does not name its version of domain {domain!r}: 1 is taken"] = None
        elif domain not in scope.opsets:
            known = ", ".join(repr(d or "ai.onnx") for d in scope.opsets if d not in self.unsaid)
            name = domain or "ai.onnx"
            raise Invalid(f"the model does not say its version of domain {name!r}; it names {known or 'none'}")
        opset = scope.opsets.get(domain, 1)
        cls = find(domain, node.op_type)
        is_onnx = domain in STANDARD_DOMAINS and not composed.is_of_onnxruntime(domain, node.op_type, opset)
        sig = signature(domain, node.op_type, opset) if is_onnx else None
        if sig is None:
            version = max((v for v in cls.versions if v <= opset), default=0) if cls else 0
        else:
            version = sig.version if cls and sig.version in cls.versions else without_consumed(sig)
            check_form(sig, resolved(node, scope.attributes))
        given = attributes_of(node, scope.attributes)
        check_onnxruntime_form(domain, node, given)
        if is_onnx or domain in composed.domains():
            check_values(given)
        inputs = [scope.find(name) for name in node.input]
        if (domain, node.op_type) in searches.NAMES:
            return searches.read(self, node, scope)
        if (domain, node.op_type) == ("", "If"):
            check_branches(attributes_of(node, scope.attributes))
            if (chosen := self._condition(inputs)) is not None:
                return self._branch(node, chosen, scope)
        if not domain and sig and (node.op_type in sequences.WRITERS or any(map(is_structure, inputs))):
            return self._structured(node, sig, inputs, scope)
        if cls is None or version not in cls.versions:
            if sig and sig.has_body:
                return self._body(node, sig, inputs, scope)
            if (domain, node.op_type) in composed.names():
                return self._composed(domain, node, sig, inputs, scope)
            self._regions(node, None, scope)
            no_class(cls, domain, node, version)
        plain = (a for a in attributes_of(node, scope.attributes) if not is_graph(a))
        attributes = {a.name: attribute_value(a, self.folder) for a in plain}
        if sig and version > sig.version:
            attributes.pop(CONSUMED, None)
        operands = [value if isinstance(value, Value) else None for value in inputs]
        least = sig.schema.min_input if sig is not None else 0
        while len(operands) > least and operands[-1] is None:
            operands.pop()
        broken, as_given = any(self._is_broken(name, scope) for name in names_read(node)), node
        if not broken:
            check_operands(sig, operands)
            if (domain, node.op_type) == ("", "Loop"):
                node, operands = self._counted(node, operands, scope)
        name = scope.origin(node)
        wanted = max((number + 1 for number, result in enumerate(node.output) if result), default=0)

        def constant(array: np.ndarray) -> Value:
            return self.constant(array, scope, name)

        onnx_node = OnnxNode(name, version, attributes, operands, wanted, constant)
        onnx_node.string_room = lambda: self.limits.strings
        onnx_node.results, onnx_node.limits = self.declared_results(node.output, scope)
        bounds = {n: self.limits.of_value(node.input[n]).most(0) for n in cls.bounded if n < len(node.input)}
        onnx_node.most = {number: most for number, most in bounds.items() if most is not None}
        regions = self._regions(node, None if broken else (cls, onnx_node), scope)
        if broken or regions is None:
            return [Missing.BROKEN] * len(node.output)
        if (domain, node.op_type) == ("", "Constant"):
            if "sparse_value" in attributes:  # read as a dense tensor already
                attributes["value"] = attributes.pop("sparse_value")
            return [Value.of_constant(self.unique(node.output[0], scope), constant_value(attributes))]
        onnx_node.regions, results = regions
        onnx_node.add = lambda op, inputs: self.put(op, inputs, scope, name)[0]
        try:
            return self.append(cls, onnx_node, node.output, results, scope)
        except PadsFollow:
            return self._composed(domain, node, sig, inputs, scope)
        except Changes as changes:
            if cls is not resolve("", "Loop"):
                raise
            begins = peeled_loops.runs(*operands[:2])
            if isinstance(changes, Grows) and not (begins and changes.may_broadcast):
                if opset < growing_loops.FIRST_OPSET:
                    raise
                return growing_loops.read(self, as_given, changes, onnx_node, scope)
            if not begins or growing_loops.OWN in scope.opsets:  # there a trip does not grow by what was found
                raise
            body = next(a.g for a in attributes_of(node, scope.attributes) if is_graph(a))
            return peeled_loops.read(self, node, body, operands, scope)

    def _own(self, own: OwnFunction, node: NodeProto, scope: Scope) -> Sequence[Found]:
        """An operator that nothing here knows, which a function of the user's own computes."""
        inputs = [scope.find(name) for name in node.input]
        if any(self._is_broken(name, scope) for name in node.input if name):
            return [Missing.BROKEN] * len(node.output)
        if any(map(is_structure, inputs)) or any(map(is_graph, node.attribute)):
            raise Unsupported("a function of your own takes tensors only")
        operands = [value if isinstance(value, Value) else None for value in inputs]
        check_operands(None, operands)
        attributes = {a.name: attribute_value(a, self.folder) for a in attributes_of(node, scope.attributes)}
        said = (scope.said.get(name) for name in node.output)
        declared = [(s.dtype if s else None, scope.shapes.get(name)) for s, name in zip(said, node.output, strict=True)]
        op = external(own, operand_types(operands), attributes, declared)
        if len(op.gives) < len(node.output):
            raise Invalid(f"it has {len(node.output)} results, {own.subject} gives {len(op.gives)}")
        facts = op.infer(Site(tuple(value.fact if value else None for value in operands), len(node.output)))
        results = [Value(self.unique(n, scope), f) if n else None for n, f in zip(node.output, facts, strict=False)]
        scope.graph.add(Node(op, operands, results, (scope.origin(node),)))
        return [value or Missing.ABSENT for value in results]

    def _condition(self, operands: Sequence[Found | None]) -> bool | None:
        """What the condition of an If is, where that follows from constants."""
        constant = constant_of(operands[0], self._computed) if isinstance(operands[0], Value) else None
        return bool(constant.array.reshape(-1)[0]) if constant is not None and constant.array.size == 1 else None

    def _counted(
        self, node: NodeProto, operands: list[Value | None], scope: Scope
    ) -> tuple[NodeProto, list[Value | None]]:
        """A loop that ends by its condition as one that counts, where it is known how often it runs."""

        def known(value: Found | None) -> np.ndarray | None:
            constant = constant_of(value, self._computed) if isinstance(value, Value) else None
            return None if constant is None else constant.array

        place = next((n for n, a in enumerate(node.attribute) if is_graph(a) and not a.ref_attr_name), None)
        if place is None or len(operands) < 2:
            return node, operands
        body, constants = node.attribute[place].g, [known(value) for value in operands]
        present = [value is not None for value in operands]
        trips = exact_trips(body, scope.opsets[""], constants, present, lambda name: known(scope.find(name)))
        if trips is None:
            return node, operands
        origin = scope.origin(node)
        self.facts_used[f"{origin} runs {trips} times"] = None
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.attribute[place].g.CopyFrom(without_condition(body))
        counted = [self.constant(np.array(value), scope, origin) for value in (np.int64(trips), np.bool_(True))]
        return copy, [*counted, *operands[2:]]

    def _is_broken(self, name: str, scope: Scope) -> bool:
        return scope.find(name) in (Missing.BROKEN, None)

    def _branch(self, node: NodeProto, chosen: bool, scope: Scope) -> Sequence[Found]:
        """Only the branch that is taken, inlined in place of an If whose condition is known."""
        self.facts_used[f"the condition of {scope.origin(node)} is {str(chosen).lower()}"] = None
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
    ) -> tuple[tuple[Graph, ...], list[Whole] | None] | None:
        """The node's regions, and what they give where that is not only tensors; None where one could not be read.
        Without an operator they are searched only."""
        graphs = [(a.name, a.g) for a in attributes_of(node, scope.attributes) if is_graph(a)]
        scopes: list[Scope] = []
        results: list[list[Whole] | None] = []
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
        wholes: list[Whole] | None = None
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

    def _alike(self, node: NodeProto, scopes: list[Scope], results: list[list[Whole] | None]) -> list[Whole]:
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

    # -- sequences and optional values

    def _structured(
        self, node: NodeProto, sig: Signature, inputs: Sequence[Found | None], scope: Scope
    ) -> Sequence[Found]:
        """The results of a node that has to do with sequences or optional values."""
        if any(self._is_broken(name, scope) for name in names_read(node)):
            return [Missing.BROKEN] * len(node.output)
        operands = [None if isinstance(value, Missing) else value for value in inputs]
        if node.op_type == "Identity":
            return [value for value in inputs if value is not None]
        if node.op_type in sequences.WRITERS:
            attributes = {a.name: attribute_value(a, self.folder) for a in attributes_of(node, scope.attributes)}
            writer = self.writer(scope, scope.origin(node))
            return [*sequences.WRITERS[node.op_type](writer, attributes, operands)]
        if node.op_type == "Loop":
            (graph,) = (a.g for a in attributes_of(node, scope.attributes) if is_graph(a))
            return loop(self, node, graph, operands, scope) or [Missing.BROKEN] * len(node.output)
        if node.op_type == "SequenceMap":
            return self._body(node, sig, inputs, scope)
        wrong = next((number, value) for number, value in enumerate(operands) if is_structure(value))
        raise Invalid(f"operand {wrong[0]} is {sequences.shown(wrong[1])}, {node.op_type} takes tensors")

    # -- functions

    def _body(self, node: NodeProto, sig: Signature, inputs: Sequence[Found | None], scope: Scope) -> Sequence[Found]:
        """An operator that this compiler has no class for, but that ONNX defines by other operators."""
        if any(self._is_broken(name, scope) for name in node.input if name):
            return [Missing.BROKEN] * len(node.output)
        values = [value if isinstance(value, Value) else None for value in inputs]
        if not any(map(is_structure, inputs)):
            check_operands(sig, values)
        types = [None if value is None or isinstance(value, Missing) else type_proto(value) for value in inputs]
        function = body_of(sig, scope.opsets[sig.domain], resolved(node, scope.attributes), types)
        return self._call(node, function, scope, defaults_of(sig), scope.origin(node))

    def _composed(
        self, domain: str, node: NodeProto, sig: Signature | None, inputs: Sequence[Found | None], scope: Scope
    ) -> Sequence[Found]:
        """An operator that this compiler decomposes."""
        if any(self._is_broken(name, scope) for name in node.input if name):
            return [Missing.BROKEN] * len(node.output)
        values = [value if isinstance(value, Value) else None for value in inputs]
        check_operands(sig, values)
        attributes = {a.name: attribute_value(a, self.folder) for a in attributes_of(node, scope.attributes)}
        function = composed.composed(domain, node, attributes, values, [scope.shapes.get(name) for name in node.output])
        plain = NodeProto()
        plain.CopyFrom(node)
        del plain.attribute[:]
        return self._call(plain, function, scope, {}, scope.origin(node))

    def _call(
        self,
        node: NodeProto,
        function: FunctionProto,
        scope: Scope,
        defaults: Mapping[str, AttributeProto],
        provenance: str,
    ) -> Sequence[Found]:
        """Writes the body of a function into the scope's graph."""
        key = (normal_domain(node.domain), node.op_type, node.overload)
        if key in scope.functions:
            raise Invalid(f"function {node.op_type} calls itself")
        if len(node.input) > len(function.input) or len(node.output) > len(function.output):
            raise Invalid(
                f"it has {len(node.input)} operands and {len(node.output)} results, function {node.op_type} takes "
                f"{len(function.input)} and gives {len(function.output)}"
            )
        attributes = {**defaults, **{a.name: a for a in function.attribute_proto}}
        attributes |= {a.name: a for a in attributes_of(node, scope.attributes)}
        opsets = {**scope.opsets, **{normal_domain(o.domain): o.version for o in function.opset_import}}
        shapes = {
            formal: scope.shapes[actual]
            for formal, actual in zip(function.output, node.output, strict=False)
            if actual in scope.shapes
        }
        inner = Scope(
            scope.graph, opsets, None, {}, attributes, f"{scope.origin(node)}/", provenance, (*scope.functions, key)
        )
        inner.shapes = backwards(function.node, shapes)
        for position, formal in enumerate(function.input):
            actual = scope.find(node.input[position]) if position < len(node.input) else None
            inner.values[formal] = Missing.ABSENT if actual is None else actual
        given = set(inner.values.values())
        self.nodes(function.node, inner)
        results: list[Found] = []
        for formal, actual_name in zip(function.output, node.output, strict=False):
            value = inner.find(formal) if actual_name else Missing.ABSENT
            if value is None:
                raise Invalid(f"function {node.op_type} does not make its result {formal!r}")
            if isinstance(value, Value) and actual_name and value not in given and value not in results:
                value.name = self.unique(actual_name, scope)
            results.append(value)
        return results
