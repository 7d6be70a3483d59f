"""Nodes of a file into nodes of a graph: operators found and typed, functions inlined, regions kept.

Invariant: a node is added to the graph only when its operator is supported and its types are known; otherwise the
reason is collected and its results count as broken, so whatever reads them is checked as far as it goes without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from ..base.own_functions import OwnFunction
from ..graph.ir import Invalid, Node, Refused, Site, Unsupported, Value
from ..ops.api import OnnxNode, find
from ..ops.constant import constant_value
from ..ops.control_flow import RanksDiffer
from ..ops.rules.trips import Changes, Grows
from ..ops.rules.window import PadsFollow
from . import composed, growing_loops, peeled_loops, searches, sequences
from .bounds import Limits
from .contradictions import Results
from .declarations import backwards
from .extent import over_budget
from .findings import Findings
from .functions import attributes_of, body_of, defaults_of, resolved, type_proto
from .graphs import normal_domain
from .node_checks import MISFITS, check_branches, check_new, check_operands, is_graph, no_class, refusal
from .ordering import names_read
from .own_functions import asked_for, external, operand_types
from .regions import RegionReader
from .scope import Found, Missing, Scope, is_structure
from .sequence_loops import loop
from .signature import CONSUMED, Signature, in_force
from .spelled import Spelled
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
        if not node.overload and in_force(domain, node.op_type, scope.opsets.get(domain)):
            function = None
        own = asked_for(self.own, domain, node)
        if own is not None and (function is not None or find(domain, node.op_type) is None):
            return self._own(own, node, scope)
        if function is not None:
            return self._call(node, function, scope, {}, f"{scope.origin(node)}/")
        self._assume_version(domain, scope)
        found = Spelled.of(node, scope, domain)
        results = self._read_otherwise(found)
        return self._operator(found) if results is None else results

    def _assume_version(self, domain: str, scope: Scope) -> None:
        """What is taken where the file does not name its version of a domain."""
        name = domain or "ai.onnx"
        if domain in self.unsaid and scope.opsets[domain] == self.unsaid[domain]:
            taken = f"{self.unsaid[domain]}, the newest, is taken"
        elif domain in scope.opsets:
            return
        elif domain in composed.domains():
            taken = "1 is taken"
        else:
            known = ", ".join(repr(d or "ai.onnx") for d in scope.opsets if d not in self.unsaid)
            raise Invalid(f"the model does not say its version of domain {name!r}; it names {known or 'none'}")
        self.assumed[f"the model does not name its version of domain {name!r}: {taken}"] = None

    def _read_otherwise(self, found: Spelled) -> Sequence[Found] | None:
        """The results of what is not a single operator of the graph: searches, branches that are known, sequences,
        decompositions. None: it is one."""
        node, scope, inputs = found.node, found.scope, found.inputs
        if found.title in searches.NAMES:
            return searches.read(self, node, scope)
        if found.title == ("", "If"):
            check_branches(found.given)
            if (chosen := self._condition(inputs)) is not None:
                return self._branch(node, chosen, scope)
        sig = found.sig
        if not found.domain and sig and (node.op_type in sequences.WRITERS or any(map(is_structure, inputs))):
            return self._structured(node, sig, inputs, scope)
        if found.cls is not None and found.version in found.cls.versions:
            return None
        if sig and sig.has_body:
            return self._body(node, sig, inputs, scope)
        if found.title in composed.names():
            return self._composed(found)
        self._regions(node, None, scope)
        no_class(found.cls, found.domain, node, found.version)

    def _operator(self, found: Spelled) -> Sequence[Found]:
        """The results of an operator that has a class."""
        node, scope, cls = found.node, found.scope, found.cls
        assert cls is not None
        attributes = {a.name: attribute_value(a, self.folder) for a in found.given if not is_graph(a)}
        if found.sig and found.version > found.sig.version:
            attributes.pop(CONSUMED, None)
        operands = found.operands()
        broken = any(self._is_broken(name, scope) for name in names_read(node))
        if not broken:
            check_operands(found.sig, operands)
            if found.title == ("", "Loop"):
                node, counted = self._counted(node, operands, scope)
                operands[: len(counted)] = counted
        onnx_node = self._asked(found, node, attributes, operands)
        regions = self._regions(node, None if broken else (cls, onnx_node), scope)
        if broken or regions is None:
            return [Missing.BROKEN] * len(node.output)
        if found.title == ("", "Constant"):
            if "sparse_value" in attributes:  # read as a dense tensor already
                attributes["value"] = attributes.pop("sparse_value")
            return [Value.of_constant(self.unique(node.output[0], scope), constant_value(attributes))]
        onnx_node.regions, results = regions
        onnx_node.add = lambda op, inputs: self.put(op, inputs, scope, onnx_node.name)[0]
        try:
            return self.append(cls, onnx_node, node.output, results, scope)
        except PadsFollow:
            return self._composed(found)
        except Changes as changes:
            if found.title != ("", "Loop"):
                raise
            return self._changing_loop(found, changes, node, operands, onnx_node)

    def _asked(
        self, found: Spelled, node: NodeProto, attributes: dict[str, Any], operands: list[Value | None]
    ) -> OnnxNode:
        """A node as classes of operators see it."""
        scope, name, cls = found.scope, found.scope.origin(node), found.cls
        assert cls is not None
        wanted = max((number + 1 for number, result in enumerate(node.output) if result), default=0)

        def constant(array: np.ndarray) -> Value:
            return self.constant(array, scope, name)

        asked = OnnxNode(name, found.version, attributes, operands, wanted, constant)
        asked.string_room = lambda: self.limits.strings
        asked.results, asked.limits = self.declared_results(node.output, scope)
        bounds = {
            n: self.limits.of_value(scope.known_as(node.input[n])).most(0) for n in cls.bounded if n < len(node.input)
        }
        asked.most = {number: most for number, most in bounds.items() if most is not None}
        if found.title == ("", "Loop"):
            asked.steps = self.steps(found.body, scope)
        return asked

    def _changing_loop(
        self,
        found: Spelled,
        changes: Changes,
        node: NodeProto,
        operands: Sequence[Value | None],
        onnx_node: OnnxNode,
    ) -> Sequence[Found]:
        """A Loop whose states have other types behind a trip than before it."""
        begins = peeled_loops.runs(*operands[:2])
        if isinstance(changes, Grows) and not (begins and changes.may_broadcast):
            if found.opset < growing_loops.FIRST_OPSET:
                raise changes
            return growing_loops.read(self, found.node, changes, onnx_node, found.scope)
        if not begins or growing_loops.OWN in found.scope.opsets:  # there a trip does not grow by what was found
            raise changes
        body = next(a.g for a in attributes_of(node, found.scope.attributes) if is_graph(a))
        return peeled_loops.read(self, node, body, operands, found.scope)

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

    def _composed(self, found: Spelled) -> Sequence[Found]:
        """An operator that this compiler decomposes."""
        node, scope = found.node, found.scope
        if any(self._is_broken(name, scope) for name in node.input if name):
            return [Missing.BROKEN] * len(node.output)
        values = [value if isinstance(value, Value) else None for value in found.inputs]
        check_operands(found.sig, values)
        attributes = {a.name: attribute_value(a, self.folder) for a in found.given}
        function = composed.composed(
            found.domain, node, attributes, values, [scope.shapes.get(name) for name in node.output]
        )
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
        inner.around = scope.around
        inner.shapes = backwards(function.node, shapes)
        given_names = _called(function.input, node.input, scope)
        inner.callers = {**backwards(function.node, _called(function.output, node.output, scope)), **given_names}
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


def _called(formals: Sequence[str], actuals: Sequence[str], scope: Scope) -> dict[str, str]:
    """What the user calls the operands or results of a function."""
    return {f: scope.known_as(actual)[0] for f, actual in zip(formals, actuals, strict=False) if actual}
