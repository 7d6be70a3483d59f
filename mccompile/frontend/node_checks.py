"""What has to hold of a node before its operator is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from onnx import AttributeProto, NodeProto

from ..base.errors import is_strict
from ..base.own_functions import skeleton
from ..graph.ir import Invalid, Refused, Unsupported, Value
from ..ops.api import Operator, registry
from . import composed
from .signature import STANDARD_DOMAINS, Signature, check_types, similar

# what reading a node ends in whose operands or attributes are not as its operator asks for, where no rule says so
MISFITS = (ArithmeticError, LookupError, TypeError, ValueError)


def refusal(error: Exception) -> Refused:
    """Why a node is refused, also where no rule foresaw it."""
    if isinstance(error, Refused):
        return error
    if is_strict():  # tests see what no rule foresaw as the bug that it is
        raise error
    why = f"its operands and attributes do not fit together: {type(error).__name__}: {error}"
    return Invalid(why, "correct the model; if other runtimes run it, please report it")


def check_new(names: Sequence[str], values: Mapping[str, object]) -> None:
    """Does a node make what nothing else makes?"""
    names = [name for name in names if name]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise Invalid(f"it makes {name!r} twice", "give each value a name of its own")
        if isinstance(values.get(name), Value):
            raise Invalid(f"it makes {name!r}, which something else makes too", "give each value a name of its own")


def is_graph(attribute: AttributeProto) -> bool:
    return attribute.type == AttributeProto.GRAPH


def check_branches(attributes: Iterable[AttributeProto]) -> None:
    for attribute in filter(is_graph, attributes):
        if attribute.g.input:
            names = ", ".join(repr(entry.name) for entry in attribute.g.input)
            raise Invalid(
                f"its {attribute.name} has inputs ({names}), but a branch of If has no inputs",
                "take them out: a branch reads values of the enclosing graph by name",
            )


def check_operands(sig: Signature | None, operands: Sequence[Value | None]) -> None:
    for position, value in enumerate(operands):
        if value is not None and value.type.dtype.kind == "complex":
            raise Unsupported(f"operand {position} is {value.type}, and complex numbers are not supported")
    if sig is not None:
        check_types(sig, [value.type if value is not None else None for value in operands])


def no_class(cls: type[Operator] | None, domain: str, node: NodeProto, version: int) -> NoReturn:
    if cls is None:
        place = f" of domain {domain!r}" if domain else ""
        if reason := composed.why_not(domain, node.op_type):
            raise Unsupported(*reason)
        own = {*registry(), *composed.names()}
        known = [] if domain in STANDARD_DOMAINS else sorted(name for d, name in own if d == domain)
        function = re.sub(r"\W", "_", node.op_type)
        asked = f"--external {node.op_type}={function},include={function}.h"
        meant = similar(node.op_type, known)
        write = f"{meant} Or write" if meant else "write"
        raise Unsupported(
            f"mccompile has no operator {node.op_type}{place}; your own C function can compute it",
            f"{write} the function, then add {asked}\n{skeleton(function, f'{function}.h')}",
        )
    raise Unsupported(
        f"version {version} of {node.op_type} is not supported, versions {', '.join(map(str, cls.versions))} are",
        "export the model with another opset",
    )
