"""What a file declares of its values against what is computed: every result of a node, those in bodies included.

A type that differs is judged by ONNX's own inference, which knows nothing of this compiler. Where that says what the
file declares, the mistake is ours, and compiling ends: a wrong type is a wrong result. Else the file is wrong. Other
runtimes refuse a wrong element type, and so is it here; they go by the nodes where only sizes are wrong, and so does
this compiler. Invariant: only what is certain counts, so a size that is not a number contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    shape_inference,
)

from ..base.dtypes import DType
from ..base.errors import InternalError
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..graph.ir import Invalid, Unsupported, Value
from .findings import Findings
from .functions import type_proto
from .ordering import sorted_model
from .tensors import declared

ALWAYS = False  # tests compare every result with ONNX's inference, whatever the file declares
# sizes that follow from floats, or that the inference knows in part only: what is behind them says no sizes either
_ROUNDED = frozenset({"Resize", "Upsample", "STFT"})
_COUNTS_WINDOWS = 22  # opset from which the inference leaves out windows that begin behind the input, as its text says
_LONG = 1 << 16  # elements of a vector; shapes are far shorter
_LARGE = 4096  # bytes of an initializer that no shape follows from


@dataclass(frozen=True)
class KnownType:
    """A type as far as it is known."""

    dtype: DType | None
    shape: tuple[int | None, ...] | None

    def allows(self, type: TensorType) -> bool:
        return self.allows_element(type) and self.allows_shape(type)

    def allows_element(self, type: TensorType) -> bool:
        return self.dtype is None or self.dtype is type.dtype

    def allows_shape(self, type: TensorType) -> bool:
        if self.shape is None:
            return True
        pairs = zip(self.shape, type.shape, strict=False)
        return len(self.shape) == type.rank and all(
            said == found or said is None or not isinstance(found, int) for said, found in pairs
        )

    def agrees(self, other: KnownType) -> bool:
        if self.dtype is not other.dtype or self.shape is None or other.shape is None:
            return self.dtype is other.dtype
        pairs = zip(self.shape, other.shape, strict=False)
        return len(self.shape) == len(other.shape) and all(a == b or a is None or b is None for a, b in pairs)

    def __str__(self) -> str:
        if self.shape is None:
            return str(self.dtype)
        dims = ",".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.dtype or ''}[{dims}]"


@dataclass(frozen=True)
class NodeResult:
    """A result of a node, by the name that the file has for it."""

    where: str
    name: str
    said: KnownType | None
    value: Value


def said_types(graph: GraphProto) -> dict[str, KnownType]:
    """What a graph declares of its values."""
    entries = ((entry.name, entry.type) for entry in (*graph.value_info, *graph.output))
    return {name: said for name, type in entries if (said := _said(type)) is not None}


def _said(type: TypeProto, sizes: bool = True) -> KnownType | None:
    if type.WhichOneof("value") != "tensor_type":
        return None
    tensor = type.tensor_type
    try:
        dtype, shape = declared(type) if tensor.elem_type else (None, None)
    except (Invalid, Unsupported):
        return None
    known = None if shape is None else tuple(dim if isinstance(dim, int) and sizes else None for dim in shape)
    return KnownType(dtype, known)


class Results:
    """The results that have to be judged, collected while a model is read."""

    def __init__(self) -> None:
        self.doubtful: list[NodeResult] = []

    def add(self, name: str, value: Value, said: KnownType | None, where: Callable[[], str]) -> None:
        if ALWAYS or (said is not None and not said.allows(value.type)):
            self.doubtful.append(NodeResult(where(), name, said, value))

    def judge(self, model: ModelProto, inputs: Sequence[Value], findings: Findings) -> None:
        """Adds what the file has wrong; raises InternalError for what we have wrong."""
        inferred = _inferred(model, inputs) if self.doubtful else {}
        sorted_types: Mapping[str, KnownType] | None = (
            None  # what the inference says where each node reads what is there
        )
        ours = []
        for made in self.doubtful:
            standard, type = inferred.get(made.name), made.value.type
            if standard is not None and not standard.allows(type):
                if sorted_types is None:
                    sorted_types = _inferred(sorted_model(model), inputs)
                then = sorted_types.get(made.name)
                if then is not None and then.allows(type):
                    why = f"it is declared as {standard}, and {type} where its nodes run in an order that is possible"
                    fix = "sort its nodes, and infer its types anew"
                    findings.add("a value contradicts its declaration", made.where, Invalid(why, fix))
                elif ALWAYS or (made.said is not None and made.said.agrees(standard)):
                    ours.append(f"{made.name!r} ({made.where}) is {type}, ONNX says {standard}")
            elif made.said is not None and not made.said.allows_element(type):
                why = f"{made.name!r} is declared as {made.said}, but its node makes {type}"
                findings.add("a value contradicts its declaration", made.where, Invalid(why, "export it again"))
        if ours:
            raise InternalError("types are not those of the standard:\n  " + "\n  ".join(ours[:20]))


_ENDS_THE_PROCESS = {"EyeLike"}  # onnx's inference does, for one of a value whose shape it does not know


def _inferred(model: ModelProto, inputs: Sequence[Value]) -> Mapping[str, KnownType]:
    """What ONNX's inference says of values, whatever the file declares of them; only names that mean one value."""
    copy = _bare(model)
    if any(node.op_type in _ENDS_THE_PROCESS for graph in _graphs(copy.graph) for node in graph.node):
        return {}
    given = {value.name: value for value in inputs}
    for entry in copy.graph.input:
        if entry.name in given:
            entry.type.CopyFrom(type_proto(given[entry.name]))
    try:
        plain = shape_inference.infer_shapes(copy)
        # with values, every element of a vector is kept, however many there are
        copy = plain if _has_long_vector(plain.graph) else shape_inference.infer_shapes(copy, data_prop=True)
    except Exception:  # onnx raises many kinds; there is no second opinion then
        return {}
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)
    rounded = any(_is_rounded(node, opset) for graph in _graphs(copy.graph) for node in graph.node)
    rounded = rounded or any(map(_has_places_in_scalars, _graphs(copy.graph)))
    found: dict[str, KnownType | None] = {}
    for graph in _graphs(copy.graph):
        own = {entry.name for entry in graph.input}
        types = {entry.name: entry.type for entry in (*graph.output, *graph.value_info) if entry.name not in own}
        found |= {name: None if name in found else _said(type, not rounded) for name, type in types.items()}
    return {name: said for name, said in found.items() if said is not None}


def _is_rounded(node: NodeProto, opset: int) -> bool:
    given = {attribute.name: attribute for attribute in node.attribute}
    rounds_up = "ceil_mode" in given and given["ceil_mode"].i and opset < _COUNTS_WINDOWS
    # with auto_pad SAME, output_padding moves the padding and not the size, but the inference adds it
    padded_twice = "auto_pad" in given and given["auto_pad"].s.startswith(b"SAME") and "output_padding" in given
    return node.op_type in _ROUNDED or bool(rounds_up) or padded_twice


def _has_places_in_scalars(graph: GraphProto) -> bool:
    """NonZero of a scalar has no row by the standard, and one in onnxruntime, as here."""
    found = {name for node in graph.node if node.op_type == "NonZero" for name in node.output}
    types = (entry.type for entry in (*graph.value_info, *graph.output) if entry.name in found)
    shapes = (said.shape for said in map(_said, types) if said is not None and said.shape)
    return any(shape[0] == 0 for shape in shapes)


def _has_long_vector(graph: GraphProto) -> bool:
    shapes = (v.type.tensor_type.shape.dim for g in _graphs(graph) for v in (*g.input, *g.value_info, *g.output))
    return any(len(dims) == 1 and dims[0].dim_value > _LONG for dims in shapes)


def _bare(model: ModelProto) -> ModelProto:
    """The model without what it declares of results, and without large weights."""
    copy = ModelProto(ir_version=model.ir_version)
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    _strip(model.graph, copy.graph)
    for graph in _graphs(copy.graph):
        del graph.value_info[:]
        for output in graph.output:
            output.ClearField("type")
    return copy


def _strip(graph: GraphProto, copy: GraphProto) -> None:
    copy.name = graph.name
    copy.node.extend(graph.node)
    copy.input.extend(graph.input)
    copy.output.extend(graph.output)
    for tensor in graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL or tensor.ByteSize() > _LARGE:
            copy.initializer.append(TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type))
        else:
            copy.initializer.append(tensor)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    waiting = [graph]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += _bodies(attribute for node in found.node for attribute in node.attribute)


def _bodies(attributes: Iterable[AttributeProto]) -> list[GraphProto]:
    return [attribute.g for attribute in attributes if attribute.type == AttributeProto.GRAPH]
