"""ONNX models as the judge takes them: plain graphs of nodes, with the functions that the standard or the model defines
as bodies.

Invariant: nothing is computed or simplified here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, helper, numpy_helper

from ..base.own_functions import OwnFunction
from ..judge.rules import Graph, Node
from .own_functions import runs
from .signature import in_force

_NATIVE = ("", "ai.onnx")
_Functions = Mapping[tuple[str, str], FunctionProto]


def judged(model: ModelProto, own: Sequence[OwnFunction] = ()) -> Graph:
    """Data in other files has to be loaded. `own`: what computes operators that nothing else here knows."""
    versions = {_domain(entry.domain): entry.version for entry in model.opset_import}
    functions = {(_domain(each.domain), each.name): each for each in model.functions}
    graph = _graph(_with_types(model).graph, versions, functions)
    nodes = zip(graph.nodes, model.graph.node, strict=True)
    return replace(graph, nodes=tuple(replace(node, own=runs(own, proto)) for node, proto in nodes)) if own else graph


def _with_types(model: ModelProto) -> ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):  # too large, or an operator it cannot
        return model


def _graph(graph: GraphProto, versions: Mapping[str, int], functions: _Functions) -> Graph:
    types = {
        entry.name: _type(entry.type.tensor_type.elem_type)
        for entry in (*graph.input, *graph.value_info, *graph.output)
        if entry.type.HasField("tensor_type") and entry.type.tensor_type.elem_type
    }
    constants: dict[str, Any] = {}
    for tensor in graph.initializer:
        constants[tensor.name] = numpy_helper.to_array(tensor)
        types[tensor.name] = _type(tensor.data_type)
    for sparse in graph.sparse_initializer:
        constants[sparse.values.name] = _dense(sparse)
    names = tuple(entry.name for entry in graph.input if entry.name not in constants)
    nodes = tuple(_node(node, versions, functions, {}) for node in graph.node)
    return Graph(names, tuple(entry.name for entry in graph.output), nodes, constants, types)


def _node(node: NodeProto, versions: Mapping[str, int], functions: _Functions, given: Mapping[str, Any]) -> Node:
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                attributes[attribute.name] = given[attribute.ref_attr_name]
        else:
            attributes[attribute.name] = _value(attribute, versions, functions)
    domain = _domain(node.domain)
    version = versions.get(domain, 1)
    body = _body(node, domain, version, functions, attributes)
    return Node(node.op_type, domain, version, attributes, tuple(node.input), tuple(node.output), body)


def _value(attribute: AttributeProto, versions: Mapping[str, int], functions: _Functions) -> Any:
    if attribute.type == AttributeProto.GRAPH:
        return _graph(attribute.g, versions, functions)
    if attribute.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(attribute.t)
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        return _dense(attribute.sparse_tensor)
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if attribute.type == AttributeProto.STRINGS:
        return [each.decode(errors="surrogateescape") for each in value]
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value


def _body(
    node: NodeProto, domain: str, version: int, functions: _Functions, attributes: Mapping[str, Any]
) -> Graph | None:
    own = None if in_force(domain, node.op_type, version) else functions.get((domain, node.op_type))
    if own is None:
        if not onnx.defs.has(node.op_type, version, domain):
            return None
        schema: Any = onnx.defs.get_schema(node.op_type, version, domain)
        if not schema.has_function:
            return None
        own = schema.function_body
        defaults = {
            n: helper.get_attribute_value(a.default_value) for n, a in schema.attributes.items() if a.default_value.name
        }
        attributes = {n: v.decode() if isinstance(v, bytes) else v for n, v in defaults.items()} | dict(attributes)
    attributes = {a.name: _value(a, {}, {}) for a in own.attribute_proto} | dict(attributes)
    versions = {_domain(entry.domain): entry.version for entry in own.opset_import}
    nodes = tuple(_node(each, versions, functions, attributes) for each in own.node)
    return Graph(tuple(own.input), tuple(own.output), nodes)


def _dense(sparse: Any) -> Any:
    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    found = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        found.reshape(-1)[indices] = values
    else:
        found[tuple(indices.T)] = values
    return found


def _domain(domain: str) -> str:
    return "" if domain in _NATIVE else domain


def _type(number: int) -> str:
    return str(helper.tensor_dtype_to_np_dtype(number).name) if number != onnx.TensorProto.STRING else "str"
