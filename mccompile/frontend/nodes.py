"""Nodes of a file into nodes of a graph: operators found and typed, functions inlined, regions kept.

Invariant: a node is added to the graph only when its operator is supported and its types are known; otherwise the
reason is collected and its results count as broken, so whatever reads them is checked as far as it goes without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from ..base.own_functions import OwnFunction
from ..graph.ir import Invalid, Node, Refused, Site, Unsupported, Value
from ..ops.api import OnnxNode, find, resolve
from ..ops.constant import constant_value
from ..ops.control_flow import RanksDiffer
from ..ops.rules.trips import Changes, Grows
from ..ops.rules.window import PadsFollow
from . import composed, growing_loops, peeled_loops, searches, sequences
from .attribute_values import check_values
from .bounds import Limits
from .contradictions import Results
from .declarations import backwards
from .extent import over_budget
from .findings import Findings
from .functions import attributes_of, body_of, defaults_of, resolved, type_proto
from .graphs import normal_domain
from .node_checks import MISFITS, check_branches, check_new, check_operands, is_graph, no_class, refusal
from .onnxruntime_forms import check_onnxruntime_form
from .ordering import names_read
from .own_functions import asked_for, external, operand_types
from .regions import RegionReader
from .scope import Found, Missing, Scope, is_structure
from .sequence_loops import loop
from .signature import CONSUMED, STANDARD_DOMAINS, Signature, check_form, signature, without_consumed
from .tensors import attribute_value


class NodeReader(RegionReader):
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
                node, counted = self._counted(node, operands, scope)
                operands[: len(counted)] = counted
        name = scope.origin(node)
        wanted = max((number + 1 for number, result in enumerate(node.output) if result), default=0)

        def constant(array: np.ndarray) -> Value:
            return self.constant(array, scope, name)

        onnx_node = OnnxNode(name, version, attributes, operands, wanted, constant)
        onnx_node.string_room = lambda: self.limits.strings
        onnx_node.results, onnx_node.limits = self.declared_results(node.output, scope)
        bounds = {n: self.limits.of_value(node.input[n]).most(0) for n in cls.bounded if n < len(node.input)}
        onnx_node.most = {number: most for number, most in bounds.items() if most is not None}
        if (domain, node.op_type) == ("", "Loop"):
            onnx_node.steps = self.steps(next(a.g for a in given if is_graph(a)), scope)
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
            node, counted = self._counted(node, operands, scope)
            operands[: len(counted)] = counted
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
