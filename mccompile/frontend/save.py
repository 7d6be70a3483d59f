"""Graphs and single nodes back to ONNX.

Invariant: what is written means the same as the graph. Operators are kept in their newest form, so a graph is written
in the newest opset, or for other programs in the oldest that has all its operators, from `EXCHANGE` on: since then
operators have only got more types and attributes. A graph with an operator that the opset cannot express is refused.
Names of nodes are unique.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    defs,
    helper,
    numpy_helper,
)

from ..base.constant import Constant
from ..base.dims import symbols
from ..base.errors import InternalError, Problem, UnsupportedModel
from ..base.names import Names
from ..base.provenance import show
from ..graph.ir import Graph, Node, Refused, Value, all_nodes
from ..importers import ranges, states
from ..ops.api import Operator

EXCHANGE = 21  # the first opset with integers of 4 bits
_SYMBOL = re.compile(r"\bn_([A-Za-z_]\w*)")  # what frontend/inputs.py calls free dimensions
_REGION_NAMES = {"If": ("then_branch", "else_branch")}  # every other operator with regions has one body


def to_onnx(graph: Graph) -> ModelProto:
    """The whole graph as a model."""
    writer = _Writer()
    return writer.model(writer.graph(graph))


def write(graph: Graph, path: Path) -> None:
    """The whole graph as a file for other programs, with the states and ranges of sizes that need no option."""
    writer = _Writer(max(map(_first_opset, all_nodes(graph)), default=EXCHANGE))
    model = writer.model(writer.graph(graph))
    states.declare(model, graph.states_of_file)
    free = {symbol for value in graph.inputs for dim in value.type.shape for symbol in symbols(dim)}
    if free:
        ranges.declare(model, {_name(s): s.bounds() for s in sorted(free)})
    path.write_bytes(model.SerializeToString())


def node_model(node: Node) -> ModelProto:
    """One node as a model: inputs `in0`, `in1` ..., outputs `out0` ...; what is absent is left out."""
    inputs = [f"in{i}" if value else "" for i, value in enumerate(node.inputs)]
    outputs = [f"out{i}" if value else "" for i, value in enumerate(node.outputs)]
    writer = _Writer(newest=_operator(node).to_onnx()[1])
    proto = helper.make_graph(
        [writer.node(node, inputs, outputs)],
        "node",
        [_info(name, value) for name, value in zip(inputs, node.inputs, strict=True) if value],
        [_info(name, value) for name, value in zip(outputs, node.outputs, strict=True) if value],
    )
    return writer.model(proto)


def _tells(node: Node) -> bool:
    """Do operands alone say which shapes the results have? Where they are computed, the file it was read from did."""
    try:
        node.op.infer(replace(node.site(), results=()))
    except Refused:
        return False
    return True


class _Writer:
    def __init__(self, newest: int | None = None) -> None:
        self.opset = newest or defs.onnx_opset_version()
        self.domains: dict[str, int] = {"": self.opset}
        self.names = Names()

    def model(self, graph: GraphProto) -> ModelProto:
        imports = [helper.make_opsetid(domain, version) for domain, version in sorted(self.domains.items())]
        version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
        return helper.make_model(graph, producer_name="mccompile", opset_imports=imports, ir_version=version)

    def graph(self, graph: Graph, is_region: bool = False) -> GraphProto:
        nodes = []
        for node in graph.nodes:
            names = [value.name if value else "" for value in node.inputs]
            nodes.append(self.node(node, names, [value.name if value else "" for value in node.outputs]))
        told = [_info(value.name, value) for node in graph.nodes if not _tells(node) for value in node.present_outputs]
        outputs = {value.name for value in graph.outputs}
        constants = [] if is_region else graph.constants()  # those that regions read are among the outermost graph's
        return helper.make_graph(
            nodes,
            graph.name,
            [_info(value.name, value) for value in graph.inputs],
            [_info(value.name, value) for value in graph.outputs],
            [numpy_helper.from_array(value.constant.array, value.name) for value in constants if value.constant],
            value_info=[entry for entry in told if entry.name not in outputs],
        )

    def node(self, node: Node, inputs: list[str], outputs: list[str]) -> NodeProto:
        attributes, opset = _operator(node).to_onnx()
        op = _standard(node)
        if op.domain and op.domain not in self.domains:
            versions = [s.since_version for s in defs.get_all_schemas_with_history() if s.domain == op.domain]
            self.domains[op.domain] = max(versions, default=1)
        version = (opset or self.opset) if not op.domain else self.domains[op.domain]
        name = self.names.take(" + ".join(node.provenance))
        proto = helper.make_node(op.name, inputs, outputs, name, domain=op.domain)
        proto.attribute.extend(self.attributes(node, op, attributes, version))
        region_names = _REGION_NAMES.get(op.name, ("body",))
        for name, region in zip(region_names, node.regions, strict=False):
            proto.attribute.append(helper.make_attribute(name, self.graph(region, is_region=True)))
        if not op.domain and version != self.opset:
            raise self._cannot_say(node, version, "export the model with a newer opset")
        return proto

    def _cannot_say(self, node: Node, version: int, fix: str) -> UnsupportedModel:
        where = f'node "{show(node.provenance)}" ({node.op.name})'
        why = f"what it does can be said in opset {version}, but not in opset {self.opset}"
        return UnsupportedModel(Problem("the graph cannot be written as ONNX", where, why, fix))

    def attributes(
        self, node: Node, op: type[Operator], attributes: Mapping[str, Any], version: int
    ) -> list[AttributeProto]:
        known: Mapping[str, Any] | None = None
        if defs.has(op.name, op.domain):
            if not defs.has(op.name, version, op.domain):
                raise self._cannot_say(node, defs.onnx_opset_version(), "leave the model as it is")
            known = defs.get_schema(op.name, version, op.domain).attributes
        made = []
        for name, value in attributes.items():
            if known is not None and name not in known:
                if not _says_nothing(op, name, value):
                    raise self._cannot_say(node, defs.onnx_opset_version(), "leave the model as it is")
                continue
            kind = int(known[name].type.value) if known else None
            if known and _is_default(value, known[name].default_value):
                continue  # the evaluator does not know all attributes, and need not where they say nothing
            if isinstance(value, Constant):
                value = numpy_helper.from_array(value.array, name)
            made.append(helper.make_attribute(name, value, attr_type=kind))
        return made


def _first_opset(node: Node) -> int:
    """From EXCHANGE on, the first that has the operator with these attributes and types, or else the newest."""
    op, (attributes, _) = _standard(node), _operator(node).to_onnx()
    if op.domain:
        return EXCHANGE
    newest = defs.onnx_opset_version()

    def says(version: int) -> bool:
        if not defs.has(op.name, version):
            return False
        schema = defs.get_schema(op.name, version)
        unknown = [name for name in attributes if name not in schema.attributes]
        sides = (schema.inputs, node.inputs), (schema.outputs, node.outputs)
        return all(_says_nothing(op, name, attributes[name]) for name in unknown) and all(
            value is None or _type(value) in formal[min(number, len(formal) - 1)].types
            for formal, values in sides
            for number, value in enumerate(values)
        )

    return next((version for version in range(EXCHANGE, newest) if says(version)), newest)


def _type(value: Value) -> str:
    return f"tensor({TensorProto.DataType.Name(value.type.dtype.onnx).lower()})"


def _says_nothing(op: type[Operator], name: str, value: object) -> bool:
    """Our operators follow the newest standard, which the installed onnx may be too old to know."""
    newer = defs.get_schema(op.name, op.domain).attributes
    return _is_default(value, newer[name].default_value) if name in newer else bool(value == getattr(op, name, None))


def _is_default(value: object, default: AttributeProto) -> bool:
    if default.type == AttributeProto.UNDEFINED or isinstance(value, Constant):
        return False
    known = helper.get_attribute_value(default)
    return bool(value == (known.decode() if isinstance(known, bytes) else known))


def is_standard(node: Node) -> bool:
    """Can the node be written as ONNX?"""
    return _standard_class(node) is not None


def _standard(node: Node) -> type[Operator]:
    found = _standard_class(node)
    if found is None and isinstance(node.op, Operator) and not node.op.writable:
        where, why = f'node "{show(node.provenance)}" ({node.op.qualified_name})', "its attributes have become operands"
        raise UnsupportedModel(Problem("the graph cannot be written as ONNX", where, why, "leave the model as it is"))
    if found is None:
        raise InternalError(f"{node.op.qualified_name} cannot be written as ONNX")
    return found


def _standard_class(node: Node) -> type[Operator] | None:
    """Operators of our own that are refinements of standard ones are written as these."""
    classes = (c for c in type(node.op).__mro__ if issubclass(c, Operator) and c.name and c.domain != "mccompile")
    return next((c for c in classes if c.writable), None)


def _operator(node: Node) -> Operator:
    if not isinstance(node.op, Operator):
        raise InternalError(f"{node.op.qualified_name} cannot be written as ONNX")
    return node.op


def _info(name: str, value: Value) -> ValueInfoProto:
    dims = [dim if isinstance(dim, int) else _name(dim) for dim in value.type.shape]
    return helper.make_tensor_value_info(name, value.type.dtype.onnx, dims)


def _name(dim: object) -> str:
    return _SYMBOL.sub(r"\1", str(dim))
