"""A node as the file spells it: the version of its operator that applies, and what it is given."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import AttributeProto, GraphProto, NodeProto

from ..base.records import dataclass
from ..graph.ir import Value
from ..ops.api import Operator, find
from . import composed
from .attribute_values import check_values
from .functions import attributes_of, resolved
from .node_checks import is_graph
from .onnxruntime_forms import check_onnxruntime_form
from .scope import Found, Scope
from .signature import STANDARD_DOMAINS, Signature, check_form, signature, without_consumed


@dataclass(frozen=True)
class Spelled:
    node: NodeProto
    scope: Scope
    domain: str
    opset: int
    cls: type[Operator] | None  # none for what is decomposed, and for what is not known
    sig: Signature | None  # of operators that ONNX defines
    version: int  # the since_version that applies
    given: Sequence[AttributeProto]  # its attributes, those of a function around it filled in
    inputs: Sequence[Found | None]

    @classmethod
    def of(cls, node: NodeProto, scope: Scope, domain: str) -> Spelled:
        """Raises Invalid for a spelling that the standard, or onnxruntime for its own operators, does not have."""
        opset = scope.opsets.get(domain, 1)
        operator = find(domain, node.op_type)
        is_onnx = domain in STANDARD_DOMAINS and not composed.is_of_onnxruntime(domain, node.op_type, opset)
        sig = signature(domain, node.op_type, opset) if is_onnx else None
        if sig is None:
            version = max((v for v in operator.versions if v <= opset), default=0) if operator else 0
        else:
            version = sig.version if operator and sig.version in operator.versions else without_consumed(sig)
            check_form(sig, resolved(node, scope.attributes))
        given = attributes_of(node, scope.attributes)
        check_onnxruntime_form(domain, node, given)
        if is_onnx or domain in composed.domains():
            check_values(given)
        inputs = [scope.find(name) for name in node.input]
        return cls(node, scope, domain, opset, operator, sig, version, given, inputs)

    @property
    def title(self) -> tuple[str, str]:
        return self.domain, self.node.op_type

    @property
    def body(self) -> GraphProto:
        """Its first region."""
        return next(a.g for a in self.given if is_graph(a))

    def operands(self) -> list[Value | None]:
        """Without those at the end that are left out."""
        operands = [value if isinstance(value, Value) else None for value in self.inputs]
        least = self.sig.schema.min_input if self.sig is not None else 0
        while len(operands) > least and operands[-1] is None:
            operands.pop()
        return operands
