"""What a file declares of the shapes of its values, for operators whose results follow from data.

Invariant: only what is said in numbers counts. A shape that an operator can tell itself is never taken from here; one
that it cannot is checked at run time, so a declaration that turns out wrong gives a status and not a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import onnx
from onnx import GraphProto, NodeProto, ValueInfoProto

# result 0 has the shape of operand 0
_SAME_SHAPE = frozenset({
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "CastLike", "Ceil", "Celu", "Clip",
    "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Neg",
    "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign",
    "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
})  # fmt: skip
Said = TypeVar("Said")
Shapes = dict[str, tuple[int, ...]]
Partly = dict[str, tuple[int | None, ...]]  # sizes that are said, None where one is not


def declared_shapes(graph: GraphProto, sizes: Mapping[str, tuple[int, int]]) -> Shapes:
    """Shapes by name; `sizes` says how large named dimensions are."""
    found: Shapes = {}
    for entry in (*graph.value_info, *graph.output):
        shape = _shape(entry, sizes)
        if shape is not None:
            found[entry.name] = shape
    return backwards(graph.node, found)


def partly_declared(graph: GraphProto, sizes: Mapping[str, tuple[int, int]]) -> Partly:
    """Shapes of which some sizes are said, by name."""
    dims = {entry.name: _dims(entry, sizes) for entry in (*graph.value_info, *graph.output)}
    some = {name: found for name, found in dims.items() if found and None in found and any(found)}
    return backwards(graph.node, some)


def declared_ranks(graph: GraphProto) -> list[int | None]:
    """The ranks of a graph's inputs, None where they are not said."""
    types = [entry.type.tensor_type for entry in graph.input]
    return [len(type.shape.dim) if type.HasField("shape") else None for type in types]


def backwards(nodes: Iterable[NodeProto], known: Mapping[str, Said]) -> dict[str, Said]:
    """What is said of values, and of those that they are made from element by element."""
    found = dict(known)
    for node in reversed(list(nodes)):
        if node.op_type in _SAME_SHAPE and node.domain in ("", "ai.onnx") and node.input and node.output:
            said = found.get(node.output[0])
            if said is not None and node.input[0]:
                found.setdefault(node.input[0], said)
    return found


def _shape(entry: ValueInfoProto, sizes: Mapping[str, tuple[int, int]]) -> tuple[int, ...] | None:
    dims = _dims(entry, sizes)
    known = tuple(dim for dim in dims or () if dim is not None)
    return known if dims is not None and len(known) == len(dims) else None


def _dims(entry: ValueInfoProto, sizes: Mapping[str, tuple[int, int]]) -> tuple[int | None, ...] | None:
    if entry.type.WhichOneof("value") != "tensor_type" or not entry.type.tensor_type.HasField("shape"):
        return None
    shape: list[int | None] = []
    for dim in entry.type.tensor_type.shape.dim:
        low, high = sizes.get(dim.dim_param, (-1, 0)) if dim.HasField("dim_param") else (dim.dim_value, dim.dim_value)
        is_said = low == high >= 0 and (dim.HasField("dim_param") or dim.HasField("dim_value"))
        shape.append(low if is_said else None)
    return tuple(shape)


def declare_again(model: Path, result: Path) -> None:
    """Shapes that no operand tells, as the model's file has them: another program wrote its guesses in their place."""
    said = {entry.name: entry for entry in onnx.load(model, load_external_data=False).graph.value_info}
    if not said:
        return
    made = onnx.load(result)
    there = {name for node in made.graph.node for name in node.output}
    others = [entry for entry in made.graph.value_info if entry.name not in said]
    del made.graph.value_info[:]
    made.graph.value_info.extend([*others, *(entry for name, entry in said.items() if name in there)])
    onnx.save(made, result)
