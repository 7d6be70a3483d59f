"""ONNX files into graphs.

Invariant: a graph that is returned is complete and typed, every operator in it is supported, and its inputs are numbers
whose free dimensions the caller has bound. Everything that is wrong is found before stopping and raised as one error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from onnx import IR_VERSION, GraphProto, ModelProto, ValueInfoProto, numpy_helper
from onnx.defs import onnx_opset_version

from ..base import dims as dimensions
from ..base.dims import Dim
from ..base.dtypes import DType, bool_, i64
from ..base.errors import BadFile, MccError, Problem, UnsupportedModel, WrongUse, raise_all
from ..base.names import c_identifier
from ..base.structures import Interface, Items, Maybe, Room, Slots, leaves, named
from ..base.tensor import TensorType
from ..graph.ir import Fact, Graph, Invalid, Refused, Unsupported, Value
from .bounds import Bounds, Limits
from .declarations import declared_shapes
from .findings import Findings
from .implied import Assumption, assumptions, has_declared_shapes
from .nodes import NodeReader, names_made, normal_domain
from .ordering import texts
from .scope import Scope, Whole
from .sequences import received
from .signature import similar
from .tensors import declared

OLDEST_OPSET = 1
DimRanges = Mapping[str, tuple[int, int]]  # free dimension -> lowest and highest size
# input -> sizes and names of free dimensions; of a sequence, of every element, or the shapes of all of them
InputShapes = Mapping[str, Sequence[int | str | tuple[int, ...]]]

# protobuf comes with onnx; it has no types of its own to import
_DecodeError: type[Exception] = import_module("google.protobuf.message").DecodeError


def load(
    path: str | Path, dims: DimRanges | None = None, shapes: InputShapes | None = None, bounds: Bounds | None = None
) -> Graph:
    """The graph of a file. Raises MccError."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise BadFile(Problem(f"cannot read {path.name}", str(path), why, "name an ONNX file that exists")) from None
    try:
        model = ModelProto.FromString(data)
    except _DecodeError:
        raise _not_onnx(path, data) from None
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise _not_onnx(path, data)
    return load_proto(model, path.parent, dims, shapes, path.name, bounds=bounds)


def load_proto(
    model: ModelProto,
    folder: Path | None = None,
    dims: DimRanges | None = None,
    shapes: InputShapes | None = None,
    name: str = "the model",
    fixed: Mapping[str, np.ndarray] | None = None,
    bounds: Bounds | None = None,
) -> Graph:
    """The same for a model that is in memory; external data is looked for in `folder`.

    Inputs that `fixed` gives a value become constants, such as axes or sizes that have to be known when compiling.
    """
    if fixed:
        model = _with_constants(model, fixed)
    _check_texts(model, name)
    findings = Findings()

    def read(assumed: Assumption | None = None) -> Graph:
        found = Findings() if assumed else findings
        return _read(model, folder, dims or {}, shapes or {}, name, bounds or {}, found, assumed)

    try:
        return read()
    except UnsupportedModel:
        known = declared_shapes(model.graph, dims or {})
        for assumption in assumptions(model.graph, known) if findings.undeclared else ():
            try:
                graph = read(assumption)
            except MccError:
                continue
            if has_declared_shapes(graph, known):
                return graph
        raise


def _read(
    model: ModelProto,
    folder: Path | None,
    dims: DimRanges,
    shapes: InputShapes,
    name: str,
    bounds: Bounds,
    findings: Findings,
    assumed: Assumption | None,
) -> Graph:
    opsets = _opsets(model, name)
    graph = Graph(model.graph.name or Path(name).stem)
    scope = Scope(graph, opsets, shapes=declared_shapes(model.graph, dims))
    limits = Limits(bounds)
    inputs = _Inputs(model.graph, name, dims, shapes, limits, findings)
    limits.declare((*model.graph.value_info, *model.graph.output))
    reader = NodeReader(name, folder, model.functions, findings, limits)
    reader.reserve(names_made(model.graph))
    reader.constants(model.graph, scope)
    given = inputs.values()
    for title, whole in given:
        graph.inputs += leaves(whole)
        if title in scope.values or len({value.name for value in graph.inputs}) < len(graph.inputs):
            findings.add("one name for two values", f"input {title!r} in {name}", Invalid(f"{title!r} is made twice"))
        reader.reserve(value.name for value in leaves(whole))
        scope.values[title] = received(reader.writer(scope, title), whole)
        if assumed and assumed.input == title and isinstance(whole, Value):
            scope.values[title] = assumed.known(graph, whole)
    findings.stop_if_any()
    reader.nodes(model.graph.node, scope)
    found = reader.outputs(model.graph, scope) or []
    if any(not isinstance(whole, Value) for whole in (*(whole for _, whole in given), *found)):
        graph.interface = _interface(model.graph, given, found)
    graph.facts_used |= reader.facts_used
    findings.stop_if_any()
    _check_outputs(model.graph, graph, name)
    limits.check()
    for value in graph.inputs:
        if assumed and value.name == assumed.input:
            assumed.check(graph, value)
    return graph


def is_open(entry: ValueInfoProto, dims: DimRanges, bounds: Bounds) -> bool:
    """Does a file leave sizes of an input open, which nobody bounds?"""
    type = entry.type.optional_type.elem_type if entry.type.HasField("optional_type") else entry.type
    if type.HasField("sequence_type"):
        return entry.name not in bounds
    if not type.HasField("tensor_type"):
        return False
    shape = declared(type)[1]
    return shape is None or any(not isinstance(dim, int) and dim not in dims for dim in shape)


def _interface(proto: GraphProto, inputs: Sequence[tuple[str, Whole]], outputs: Sequence[Whole]) -> Interface:
    titles = [output.name for output in proto.output]
    return Interface(
        tuple((title, named(whole, title)) for title, whole in inputs),
        tuple((title, named(whole, title)) for title, whole in zip(titles, outputs, strict=False)),
    )


def _with_constants(model: ModelProto, fixed: Mapping[str, np.ndarray]) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in fixed.items())
    return copy


def _not_onnx(path: Path, data: bytes) -> BadFile:
    if data.startswith(b"version https://git-lfs"):
        why, fix = "it is a placeholder of Git LFS, not the model itself", "fetch it with `git lfs pull`"
    elif not data:
        why, fix = "the file is empty", "copy or export it again"
    else:
        why, fix = f"its {len(data)} bytes are of another format, or were cut off", "export or copy it again"
    return BadFile(Problem(f"{path.name} is not an ONNX model", str(path), why, fix))


def _check_texts(model: ModelProto, name: str) -> None:
    around: list[object] = [entry.domain for entry in model.opset_import]
    for function in model.functions:
        around += [function.name, function.domain, function.overload, *function.input, *function.output]
    bodies = (text for function in model.functions for text in texts(function.node))
    for text in (*around, *bodies, *texts(model.graph.node, model.graph)):
        if not isinstance(text, str):
            why = f"{text!r} is a name that is not text in UTF-8"
            raise BadFile(Problem(f"{name} is damaged", name, why, "export or copy it again"))


def _opsets(model: ModelProto, name: str) -> dict[str, int]:
    """Version by domain, if this is a file of an age that can be read."""
    if model.ir_version > IR_VERSION:
        raise UnsupportedModel(
            Problem(
                f"{name} is newer than the installed onnx package",
                name,
                f"it has IR version {model.ir_version}, the package knows versions up to {IR_VERSION}",
                "update the package: pip install --upgrade onnx",
            )
        )
    opsets = {normal_domain(entry.domain): entry.version for entry in model.opset_import}
    version = opsets.setdefault("", 1) if model.ir_version < 3 else opsets.get("")
    if version is not None and version < OLDEST_OPSET:
        raise UnsupportedModel(
            Problem(
                f"{name} uses opset {version}",
                name,
                f"the oldest opset that is supported is {OLDEST_OPSET}",
                "export the model anew, or convert it with onnx.version_converter",
            )
        )
    if version is not None and version > onnx_opset_version():
        raise UnsupportedModel(
            Problem(
                f"{name} uses opset {version}",
                name,
                f"the newest opset that the installed onnx package knows is {onnx_opset_version()}",
                "update the package: pip install --upgrade onnx",
            )
        )
    return opsets


@dataclass(frozen=True)
class _Declared:
    """The type that a file declares for an input."""

    dtype: DType
    shape: tuple[int | str | None, ...] | None  # of a sequence: of its elements
    is_sequence: bool
    is_optional: bool


class _Inputs:
    """The inputs of a model with their free dimensions bound as the user says."""

    def __init__(
        self,
        graph: GraphProto,
        file: str,
        dims: DimRanges,
        shapes: InputShapes,
        limits: Limits,
        findings: Findings,
    ) -> None:
        self.limits = limits
        self.file, self.ranges, self.shapes, self.findings = file, dims, shapes, findings
        constants = {tensor.name for tensor in graph.initializer}
        constants |= {tensor.values.name for tensor in graph.sparse_initializer}
        self.inputs = [entry for entry in graph.input if entry.name not in constants]
        self.free: dict[str, None] = {}  # names of free dimensions that the file has
        self.bound: dict[str, Dim] = {}
        self.unbound: dict[str, list[str]] = {}  # flag to add -> what it is for

    def values(self) -> list[tuple[str, Whole]]:
        types = [(entry.name, found) for entry in self.inputs if (found := self._declared(entry)) is not None]
        self.free = {dim: None for _, found in types for dim in found.shape or () if isinstance(dim, str)}
        self._check_use([name for name, _ in types])
        for name, (low, high) in self.ranges.items():
            self.bound[name] = dimensions.symbol(_symbol_name(name, self.bound), low, high)
        for name, found in types:  # a size given for one input holds for the others too
            for dim, size in zip(found.shape or (), self.shapes.get(name, ()), strict=False):
                if isinstance(dim, str) and isinstance(size, int):
                    self.bound.setdefault(dim, size)
        values: list[tuple[str, Whole]] = []
        for name, found in types:
            whole = self._sequence(name, found) if found.is_sequence else self._tensor(name, found)
            if whole is not None:
                flag = Value(f"{name}_present", Fact(TensorType(bool_, ())))
                values.append((name, Maybe(flag, whole) if found.is_optional else whole))
        if self.unbound:
            places = [f"{' and '.join(dict.fromkeys(users))} in {self.file}" for users in self.unbound.values()]
            raise UnsupportedModel(
                Problem(
                    "free dimensions have no size",
                    "\n".join(places),
                    "memory is planned at compile time, so every size must be known",
                    f"add {' '.join(self.unbound)} (with sizes of your own)",
                )
            )
        return values

    def _tensor(self, name: str, found: _Declared) -> Value | None:
        sizes = self._shape(name, found.shape)
        return None if sizes is None else Value(name, Fact(TensorType(found.dtype, sizes)))

    def _sequence(self, name: str, found: _Declared) -> Items[Value] | Slots[Value] | None:
        """A tensor for each element where the user says the shape of each; else slots for so many as he says."""
        given, most = self.shapes.get(name, ()), self.limits.of(name).most(0)
        listed = tuple(shape for shape in given if isinstance(shape, tuple))
        if (listed and len(listed) == len(given)) or (most is None and name in self.shapes and not given) or most == 0:
            self.limits.used.add(name)
            names = leaves(named(Items(found.dtype, listed), name))
            return Items(
                found.dtype,
                tuple(Value(n, Fact(TensorType(found.dtype, s))) for n, s in zip(names, listed, strict=True)),
            )
        if most is None:
            self.unbound.setdefault(f"--bound {name}=10", []).append(f"sequence {name!r}")
            return None
        self.limits.used.add(name)
        shape = self._shape(name, found.shape)
        if shape is None:
            return None
        largest = tuple(dimensions.upper(dim) for dim in shape)
        room = Room(most, largest, ragged=any(not isinstance(dim, int) for dim in shape))
        data = Value(name, Fact(TensorType(found.dtype, (most, room.size))))
        length = Value(f"{name}_length", Fact(TensorType(i64, ())))
        shapes = Value(f"{name}_shapes", Fact(TensorType(i64, (most, len(largest))))) if room.ragged else None
        return Slots(found.dtype, room, data, length, shapes)

    def _declared(self, entry: ValueInfoProto) -> _Declared | None:
        where = f"input {entry.name!r} in {self.file}"
        try:
            type = entry.type
            is_optional = type.WhichOneof("value") == "optional_type"
            type = type.optional_type.elem_type if is_optional else type
            is_sequence = type.WhichOneof("value") == "sequence_type"
            type = type.sequence_type.elem_type if is_sequence else type
            kind = type.WhichOneof("value")
            if kind != "tensor_type":
                raise Unsupported(f"it is {_kind_name(kind)}, and only tensors can be passed in and out")
            dtype, shape = declared(type)
            if dtype.kind == "complex":
                raise Unsupported("its elements are complex numbers, which are not supported")
            return _Declared(dtype, shape, is_sequence, is_optional)
        except Refused as refused:
            what = "unsupported input" if isinstance(refused, Unsupported) else "wrong input"
            self.findings.add(what, where, refused)
            return None

    def _check_use(self, names: list[str]) -> None:
        problems = []
        for dim, (low, high) in self.ranges.items():
            named_in_shape = any(dim in shape for shape in self.shapes.values())
            size = f"{low}" if low == high else f"{low}..{high}"
            named_in_shape |= any(dim in self._names_in(other) for other in self.free)
            if dim not in self.free and not named_in_shape:
                known = f"those of {self.file} are {', '.join(self.free)}" if self.free else f"{self.file} has none"
                what, where = f"there is no free dimension {dim!r}", f"--dim {dim}={size}"
                problems.append(Problem(what, where, known, similar(dim, self.free)))
            elif not 0 <= low <= high:
                problems.append(Problem("a range is empty", f"--dim {dim}={size}", fix=f"write --dim {dim}=LOW..HIGH"))
        for name, shape in self.shapes.items():
            if name not in names:
                known = f"those of {self.file} are {', '.join(names)}" if names else f"{self.file} has none"
                where = f"--shape {name}={','.join(map(str, shape))}"
                problems.append(Problem(f"there is no input {name!r}", where, known, similar(name, names)))
        raise_all(WrongUse, problems)

    def _shape(self, name: str, shape: tuple[int | str | None, ...] | None) -> tuple[Dim, ...] | None:
        """The shape of an input; None where something is not bound, which is noted."""
        wanted = [size for size in self.shapes[name] if not isinstance(size, tuple)] if name in self.shapes else None
        if wanted is not None:
            self._check_shape(name, shape, wanted)
            given: Sequence[int | str | None] = wanted
        elif shape is None:
            self.unbound.setdefault(f"--shape {name}=1,3,32,32", []).append(f"input {name!r}")
            return None
        else:
            given = shape
        sizes: list[Dim] = []
        for dim in given:
            if isinstance(dim, int):
                sizes.append(dim)
            elif dim is not None and (found := self._bound_size(dim)) is not None:
                sizes.append(found)
            elif dim is None:
                example = ",".join(str(d) if isinstance(d, int) else "1" for d in given)
                self.unbound.setdefault(f"--shape {name}={example}", []).append(f"input {name!r}")
            else:
                for part in self._names_in(dim):
                    self.unbound.setdefault(f"--dim {_quoted(part)}=1", []).append(f"{dim!r} of input {name!r}")
        return tuple(sizes) if len(sizes) == len(given) else None

    def _bound_size(self, dim: str) -> Dim | None:
        """The size that a name in the file stands for; exporters also write arithmetic, such as 2*time + 1."""
        if dim in self.bound:
            return self.bound[dim]
        try:
            return dimensions.parse(dim, self.bound)
        except (ValueError, SyntaxError):
            return None

    def _names_in(self, dim: str) -> list[str]:
        """The names in arithmetic over names, of which one has to be known otherwise; else just the name."""
        inside = list(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", dim)))
        known = {*self.ranges, *(other for other in self.free if other.isidentifier())}
        table = dict.fromkeys(inside, 2)
        try:
            dimensions.parse(dim, table)
        except (ValueError, SyntaxError):
            return [dim]
        arithmetic = not dim.isidentifier() and (any(name in known for name in inside) or re.search(r"[*+/]", dim))
        return inside if arithmetic and dim not in self.ranges else [dim]

    def _check_shape(self, name: str, shape: tuple[int | str | None, ...] | None, wanted: Sequence[int | str]) -> None:
        where = f"--shape {name}={','.join(map(str, wanted))}"
        if shape is None:
            return
        text = ",".join("?" if dim is None else str(dim) for dim in shape)
        clash = len(shape) != len(wanted) or any(
            isinstance(have, int) and isinstance(want, int) and have != want
            for have, want in zip(shape, wanted, strict=False)
        )
        if clash or any(isinstance(want, int) and want < 0 for want in wanted):
            raise WrongUse(
                Problem(
                    "a shape does not fit the model",
                    where,
                    f"{self.file} says that {name!r} is {text}",
                    "only free dimensions can be given a size",
                )
            )


def _check_outputs(proto: GraphProto, graph: Graph, file: str) -> None:
    """Declared kinds and element types of outputs against those that follow from the nodes. Shapes are but
    comments, which exporters and editors get wrong: the nodes say what is computed, and other runtimes go by them."""
    findings = Findings()
    plain = {value.name: value for value in graph.outputs}
    for entry in proto.output:
        kind = entry.type.WhichOneof("value")
        form = dict(graph.interface.outputs).get(entry.name) if graph.interface else entry.name
        if not isinstance(form, str):
            if kind == "tensor_type":
                findings.add("wrong output", f"output {entry.name!r} in {file}", Invalid("it is no tensor"))
            continue
        value = plain[form]
        where = f"output {entry.name!r} in {file}"
        if kind is None:
            continue
        if kind == "sequence_type" and value.producer is not None and value.producer.op.name == "ZipMap":
            continue  # a compiled model gives the scores that the maps are made of
        if kind != "tensor_type":
            findings.add("wrong output", where, Invalid(f"it is declared as {_kind_name(kind)}, but is {value.type}"))
            continue
        dtype = declared(entry.type)[0] if entry.type.tensor_type.elem_type else value.type.dtype
        if dtype is not value.type.dtype:
            findings.add(
                "an output contradicts its declaration",
                where,
                Invalid(f"it is declared as {dtype}, but its node makes {value.type}", "export it again"),
            )
    findings.stop_if_any()


def _kind_name(kind: str | None) -> str:
    names = {"sequence_type": "a sequence", "map_type": "a map", "optional_type": "an optional value"}
    return names.get(kind or "", "a value of unknown kind" if kind is None else kind.replace("_", " "))


def _symbol_name(text: str, taken: Mapping[str, Dim]) -> str:
    """A name that can stand in expressions, and that no variable in C has."""
    name = f"n_{c_identifier(text)}"
    used = {s.name for dim in taken.values() for s in dimensions.symbols(dim)}
    while name in used:
        name += "_"
    return name


def _quoted(dim: str) -> str:
    return dim if re.fullmatch(r"[\w.-]+", dim) else f'"{dim}"'
