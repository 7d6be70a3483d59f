"""Operators that C functions of the user's own compute, and that nothing else here knows: their types, by what the
model declares or by a few lines of Python, and what these say that they compute, for onnx's reference evaluator.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from ..base.discovery import import_file
from ..base.dtypes import DTYPES, DType, of_array
from ..base.own_functions import OwnFunction
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..graph.ir import Invalid, Unsupported, Value
from ..judge.rules import Own
from ..ops.external import External, handed_attributes

Declared = tuple[DType | None, Shape | None]


@dataclass(frozen=True)
class Operand:
    """What `types` of a file of Python is told of an operand."""

    dtype: str  # "f32"
    shape: Shape


def external(
    own: OwnFunction,
    operands: Sequence[TensorType | None],
    attributes: Mapping[str, Any],
    results: Sequence[Declared],
) -> External:
    """The operator. `results` are what the model declares."""
    types = _types(own, operands, attributes, results)
    return External(
        own.name,
        tuple(type.dtype if type else None for type in operands),
        tuple((type.dtype, type.shape) for type in types),
        handed_attributes(dict(attributes)),
        own.include,
        own.workspace,
        own.align,
        own.strided,
    )


def _types(
    own: OwnFunction,
    operands: Sequence[TensorType | None],
    attributes: Mapping[str, Any],
    results: Sequence[Declared],
) -> Sequence[TensorType]:
    rule = getattr(module_of(own), "types", None) if own.python else None
    if rule is not None:
        found = rule([type and Operand(type.dtype.name, type.shape) for type in operands], dict(attributes))
        return [_type(own, entry) for entry in found]
    if own.results:
        return own.results
    types = [TensorType(dtype, shape) for dtype, shape in results if dtype is not None and shape is not None]
    if len(types) < len(results):
        raise Unsupported(
            f"the model does not declare what result {len(types)} of {own.subject} is",
            f"say it: --external {own.subject}={own.name},result=f32:1x8 with its own type and sizes",
        )
    return types


def _type(own: OwnFunction, entry: Any) -> TensorType:
    try:
        dtype, shape = entry
        found = DTYPES[dtype] if isinstance(dtype, str) and dtype in DTYPES else of_array(np.empty(0, dtype))
        return TensorType(found, tuple(shape))
    except (TypeError, ValueError):
        why = f"types() of {own.python} gives {entry!r}, which is not an element type with a shape"
        raise Invalid(why, 'give a list of pairs such as ("f32", (1, 8))') from None


def module_of(own: OwnFunction) -> ModuleType:
    path = Path(own.python)
    return import_file(path, f"mccompile_own.{zlib.crc32(str(path.resolve()).encode()):08x}_{path.stem}")


def operand_types(values: Sequence[Value | None]) -> list[TensorType | None]:
    return [value.type if value else None for value in values]


def asked_for(own: Sequence[OwnFunction], domain: str, node: NodeProto) -> OwnFunction | None:
    """The function that computes a node, as a node or by its operator."""
    by_name = (each for each in own if node.name and each.subject == node.name)
    return next(by_name, None) or next((each for each in own if each.names(domain, node.op_type)), None)


def runs(own: Sequence[OwnFunction], node: NodeProto) -> Own | None:
    """What a file of Python says that a node computes."""
    asked = asked_for(own, node.domain, node)
    run = getattr(module_of(asked), "run", None) if asked is not None and asked.python else None
    if run is None:
        return None

    def compute(operands: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        made = run(list(operands), {name: _plain(value) for name, value in attributes.items()})
        return tuple(map(np.asarray, made)) if isinstance(made, tuple | list) else (np.asarray(made),)

    return compute


def evaluators(own: Sequence[OwnFunction], nodes: Sequence[NodeProto]) -> list[type[Any]]:
    """Classes of operators for onnx's reference evaluator, of those that a file of Python computes."""
    from onnx.reference.op_run import OpRun

    found: dict[tuple[str, str], type[Any]] = {}
    for node in nodes:
        run = runs(own, node)
        if run is None or (node.domain, node.op_type) in found:
            continue

        def compute(self: Any, *operands: Any, run: Own = run, **_: Any) -> tuple[np.ndarray, ...]:
            return run(operands, {a.name: helper.get_attribute_value(a) for a in self.onnx_node.attribute})

        fields = {"op_domain": node.domain, "_run": compute}
        found[node.domain, node.op_type] = type(node.op_type, (OpRun,), fields)
    return list(found.values())


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return tuple(value) if isinstance(value, list) else value
