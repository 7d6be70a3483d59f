"""What the ONNX standard says of an operator at one opset: how many operands, of what types, which attributes.

Invariant: a node that passes `check_form` and `check_types` has the operands and attributes that its schema requires,
so operators need not look for that again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from onnx import AttributeProto, NodeProto, TensorProto, defs

from ..base.dtypes import DTYPES, DType
from ..base.near import meant
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..graph.ir import Invalid, Refused, Unsupported

STANDARD_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")

_Option = defs.OpSchema.FormalParameterOption
_TYPE_NUMBERS = dict(TensorProto.DataType.items())  # an onnx of some age does not know all of ours
_BY_TYPE_NAME = {
    f"tensor({name.lower()})": d for name, number in _TYPE_NUMBERS.items() for d in DTYPES.values() if d.onnx == number
}


@dataclass(frozen=True)
class Formal:
    name: str
    variable: str  # the type variable, such as T
    allowed: tuple[DType, ...]
    required: bool
    variadic: bool
    uniform: bool  # all operands of a variadic one have the same type


@dataclass(frozen=True)
class Signature:
    name: str
    domain: str
    version: int  # since_version
    schema: Any  # defs.OpSchema, whose type stub does not know of function bodies
    inputs: tuple[Formal, ...]

    @property
    def has_body(self) -> bool:
        """Is the operator defined by others, as a function?"""
        return bool(self.schema.has_function or self.schema.has_context_dependent_function)


@cache
def in_force(domain: str, name: str, opset: int | None) -> bool:
    """Is it an operator of the standard? Then a function of the model does not take its name: the standard leaves that
    open, and runtimes have the operator."""
    if domain not in STANDARD_DOMAINS or opset is None or not defs.has(name, opset, domain):
        return False
    return not defs.get_schema(name, opset, domain).deprecated


@cache
def signature(domain: str, name: str, opset: int) -> Signature:
    """What is in force at `opset`; raises Refused where nothing is."""
    schema: Any
    try:
        schema = defs.get_schema(name, opset, domain)
    except defs.SchemaError:
        raise _unknown(domain, name, opset) from None
    if schema.deprecated:
        raise Invalid(
            f"ONNX took {name} out in opset {schema.since_version}",
            "export the model with an older opset, or convert it with onnx.version_converter",
        )
    # not `formal.types`, which onnx 1.20 cannot hand over
    constraints = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    formals = []
    for formal in schema.inputs:
        names = constraints.get(formal.type_str, (formal.type_str,))
        allowed = tuple(d for name, d in sorted(_BY_TYPE_NAME.items()) if name in names)
        variadic = formal.option == _Option.Variadic
        required = formal.option == _Option.Single
        formals.append(Formal(formal.name, formal.type_str, allowed, required, variadic, bool(formal.is_homogeneous)))
    return Signature(name, domain, schema.since_version, schema, tuple(formals))


CONSUMED = "consumed_inputs"  # which operands the runtimes of the first opsets might overwrite; it means nothing


@cache
def without_consumed(sig: Signature) -> int:
    """The version with the same meaning that has no `consumed_inputs`; the signature's own where there is none."""
    attributes = _attributes(sig.schema)
    if attributes.pop(CONSUMED, None) is not None:
        schemas = defs.get_all_schemas_with_history()
        later = [s for s in schemas if s.domain == sig.domain and s.name == sig.name and s.since_version > sig.version]
        following = min(later, key=lambda schema: schema.since_version, default=None)
        if following is not None and _attributes(following) == attributes:
            return int(following.since_version)
    return sig.version


def _attributes(schema: Any) -> dict[str, tuple[bool, bytes]]:
    """Whether each is required, and its default."""
    return {name: (a.required, a.default_value.SerializeToString()) for name, a in schema.attributes.items()}


@cache
def newest_opset(domain: str) -> int:
    versions = (schema.since_version for schema in defs.get_all_schemas_with_history() if schema.domain == domain)
    return max((*versions, 1)) if domain else defs.onnx_opset_version()


@cache
def operator_names(domain: str) -> tuple[str, ...]:
    return tuple(sorted({schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == domain}))


def similar(name: str, known: Collection[str]) -> str:
    """`did you mean Conv?`, or nothing."""
    return meant(name, known, most=2)


def _unknown(domain: str, name: str, opset: int) -> Refused:
    if name in operator_names(domain):
        newest = defs.get_schema(name, domain)
        versions = sorted(
            s.since_version for s in defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, name)
        )
        if newest.deprecated and opset >= newest.since_version:
            return Invalid(f"ONNX took {name} out in opset {newest.since_version}")
        return Invalid(
            f"{name} exists from opset {versions[0]} on, the model says it uses opset {opset}",
            "export the model with a newer opset",
        )
    return Unsupported("ONNX has no such operator", similar(name, operator_names(domain)))


def check_operand_count(node: NodeProto, operands: Sequence[int], results: Sequence[int]) -> None:
    """Are there as many operands and results as from the first to the second of each pair?"""
    inputs, outputs = _present(node.input), _present(node.output)
    if len(node.input) < operands[0] or inputs > operands[1]:
        raise Invalid(f"it has {inputs} operands, {node.op_type} takes {_range(*operands)}")
    if not results[0] <= outputs <= results[1]:
        raise Invalid(f"it has {outputs} results, {node.op_type} gives {_range(*results)}")
    names = [attribute.name for attribute in node.attribute]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Invalid(f"attribute {twice!r} is there twice")


_AT_ANY_OPSET = frozenset({"Constant"})  # exporters write its newer attributes, and onnxruntime takes them


def check_form(sig: Signature, node: NodeProto) -> None:
    """The number of operands and results, and names and types of attributes."""
    schema = sig.schema
    check_operand_count(node, (schema.min_input, schema.max_input), (schema.min_output, schema.max_output))
    for position, (formal, name) in enumerate(zip(sig.inputs, node.input, strict=False)):
        if formal.required and not name:
            raise Invalid(f"operand {position} ({formal.name}) is missing")
    given = set()
    known = defs.get_schema(sig.name).attributes if sig.name in _AT_ANY_OPSET else schema.attributes
    for attribute in node.attribute:
        formal_attribute = known.get(attribute.name)
        if formal_attribute is None:
            why = f"{sig.name} has no attribute {attribute.name!r} at this opset"
            raise Invalid(why, similar(attribute.name, known))
        want = str(formal_attribute.type).rpartition(".")[2]
        have = AttributeProto.AttributeType.Name(attribute.type)
        if want != have:
            raise Invalid(f"attribute {attribute.name!r} is of type {have}, it must be {want}")
        given.add(attribute.name)
    for name, formal_attribute in schema.attributes.items():
        if formal_attribute.required and name not in given:
            raise Invalid(f"attribute {name!r} is missing")


def check_types(sig: Signature, types: Sequence[TensorType | None]) -> None:
    """Element types of the operands against what the schema allows, and against each other."""
    bound: dict[str, tuple[str, DType]] = {}
    for position, type in enumerate(types):
        formal = sig.inputs[min(position, len(sig.inputs) - 1)]
        if type is None:
            continue
        label = f"operand {position} ({formal.name})"
        if type.dtype not in formal.allowed:
            allowed = ", ".join(sorted(str(d) for d in formal.allowed)) or "no tensors"
            raise Invalid(f"{label} is {type}; {sig.name} takes {allowed} there", "insert a Cast")
        if formal.variadic and not formal.uniform:
            continue
        other, dtype = bound.setdefault(formal.variable, (label, type.dtype))
        if dtype is not type.dtype:
            raise Invalid(f"{other} is {dtype} but {label} is {type.dtype}; they must be of one type", "insert a Cast")


def _present(names: Sequence[str]) -> int:
    """How many there are, without absent ones at the end."""
    return max((position + 1 for position, name in enumerate(names) if name), default=0)


def _range(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"at least {low}" if high > 1000 else f"{low} to {high}"


@cache
def optional_results(domain: str, name: str) -> frozenset[int]:
    """The results that a node of this operator may leave out."""
    if not defs.has(name, domain):
        return frozenset()
    outputs = defs.get_schema(name, domain).outputs
    return frozenset(position for position, formal in enumerate(outputs) if formal.option == _Option.Optional)
