"""Functions: attributes that refer to those of the call, and the bodies that ONNX gives for operators.

Invariant: what comes out of here refers to no function any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, helper

from ..base.structures import Items, Maybe, Slots, Structure
from ..graph.ir import Invalid, Value
from .signature import Signature

CallAttributes = Mapping[str, AttributeProto]  # of the function call that is being inlined; empty outside of one


def attributes_of(node: NodeProto, call: CallAttributes) -> list[AttributeProto]:
    """The node's attributes; those that refer to the function's are looked up, or left out where the call does so."""
    found = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            actual = call.get(attribute.ref_attr_name)
            if actual is None:
                continue
            copy = AttributeProto()
            copy.CopyFrom(actual)
            copy.name = attribute.name
            attribute = copy
        found.append(attribute)
    return found


def resolved(node: NodeProto, call: CallAttributes) -> NodeProto:
    """The node with the attributes that it has in this call."""
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(attributes_of(node, call))
    return copy


def body_of(sig: Signature, opset: int, node: NodeProto, operands: Sequence[TypeProto | None]) -> FunctionProto:
    """What ONNX says an operator does, for these operands; `node` is resolved."""
    schema = sig.schema
    if not schema.has_context_dependent_function:
        version = max((v for v in schema.function_opset_versions if v <= opset), default=sig.version)
        plain: FunctionProto = FunctionProto.FromString(schema.get_function_with_opset_version(version))
        return plain
    version = max((v for v in schema.context_dependent_function_opset_versions if v <= opset), default=sig.version)
    call = NodeProto()
    call.CopyFrom(node)
    types = []
    for position, type in enumerate(operands):
        if type is None:
            call.input[position] = ""
            types.append(TypeProto())
        else:
            types.append(type)
    try:
        data = schema.get_context_dependent_function_with_opset_version(
            version, call.SerializeToString(), [type.SerializeToString() for type in types]
        )
    except Exception as error:  # onnx raises many kinds
        raise Invalid(f"ONNX cannot write it out: {error}") from None
    body: FunctionProto = FunctionProto.FromString(data)
    return body


def type_proto(value: Value | Structure[Value]) -> TypeProto:
    """The type of a value as ONNX has it."""
    match value:
        case Maybe():
            return helper.make_optional_type_proto(type_proto(value.value))
        case Items() | Slots():
            return helper.make_sequence_type_proto(helper.make_tensor_type_proto(value.dtype.onnx, None))
    dims = [dim if isinstance(dim, int) else str(dim) for dim in value.type.shape]
    return helper.make_tensor_type_proto(value.type.dtype.onnx, dims)


def defaults_of(sig: Signature) -> dict[str, AttributeProto]:
    """Attributes that a call has without saying so."""
    return {
        name: formal.default_value
        for name, formal in sig.schema.attributes.items()
        if formal.default_value.type != AttributeProto.UNDEFINED
    }
