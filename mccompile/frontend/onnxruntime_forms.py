"""The form of nodes of onnxruntime's own operators: operands, results and attributes.

Invariant: what writes an operator out is asked only about nodes that passed here, so it may take every attribute to be
of its type. The schemas stand in onnxruntime.toml, which a script writes from an onnxruntime that is installed. ONNX's
own operators are in signature.py, values of attributes in attribute_values.py.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from onnx import AttributeProto, NodeProto

from ..graph.ir import Invalid, Unsupported
from .composed_body import CONTRIB
from .signature import check_operand_count, similar

FILE = Path(__file__).with_name("onnxruntime.toml")
REQUIRED = "!"  # behind the type of an attribute


@cache
def _forms() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def check_onnxruntime_form(domain: str, node: NodeProto, attributes: Sequence[AttributeProto]) -> None:
    """Raises Refused where a node is not as onnxruntime's schema wants it; nodes of other operators pass."""
    form = _forms().get(node.op_type) if domain == CONTRIB else None
    if form is None:
        return
    check_operand_count(node, form["operands"], form["results"])
    for position in form["needed"]:
        if position >= len(node.input) or not node.input[position]:
            raise Invalid(f"operand {position} is missing")
    formal = form.get("attributes", {})
    for attribute in attributes:
        if attribute.name not in formal:
            why = f"attribute {attribute.name} of {node.op_type} is not known"
            raise Unsupported(why, similar(attribute.name, formal))
        have, want = AttributeProto.AttributeType.Name(attribute.type), formal[attribute.name].rstrip(REQUIRED)
        if have != want:
            raise Invalid(f"attribute {attribute.name!r} is of type {have}, it must be {want}")
    given = {attribute.name for attribute in attributes}
    for name, kind in formal.items():
        if kind.endswith(REQUIRED) and name not in given:
            raise Invalid(f"attribute {name!r} is missing")
