"""Model files into graphs.

Invariant: a graph that is returned is complete and typed, every operator in it is supported, and its inputs are numbers
whose free dimensions the caller has bound. Everything that is wrong is found before stopping and raised as one error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import numpy as np
from onnx import IR_VERSION, GraphProto, ModelProto, ValueInfoProto, numpy_helper
from onnx.defs import onnx_opset_version

from ..base.errors import BadFile, MccError, Problem, UnsupportedModel, WrongUse, warn
from ..base.names import readable
from ..base.near import near_file
from ..base.own_functions import OwnFunction
from ..base.structures import Interface, leaves, named
from ..graph.ir import Graph, Invalid, Refused, Value
from ..importers import defaults, exported_decoder, ranges, registry, states
from ..importers.api import AS_IT_IS, Reading, Source
from ..importers.joining import joined
from .bounds import EVERYTHING, Bounds, Limits
from .contradictions import said_types
from .declarations import declared_shapes, partly_declared
from .drawing import give_seeds
from .findings import Findings
from .foreign import plain_text, recognised
from .graphs import names_made, normal_domain
from .implied import Assumption, assumptions, has_declared_shapes
from .inputs import DimRanges, Inputs, InputShapes, kind_name
from .lost_parameters import filled_in, parameters
from .nodes import NodeReader
from .open_bounds import with_all_bounds
from .open_sizes import Sizes, SizesMisfit, SizesMissing, proposed, refitted
from .ordering import texts
from .scope import Scope, ScopedValue
from .signature import STANDARD_DOMAINS, newest_opset
from .slots import received
from .tensors import declared

OLDEST_OPSET = 1
STANDARD_INPUT = Path("-")  # as tools name it
_MOST_RANKS = 32  # Ifs with branches of different rank
# protobuf comes with onnx; it has no types of its own to import
_DecodeError: type[Exception] = import_module("google.protobuf.message").DecodeError


def load(
    path: str | Path,
    dims: DimRanges | None = None,
    shapes: InputShapes | None = None,
    bounds: Bounds | None = None,
    reading: Reading = AS_IT_IS,
) -> Graph:
    """The graph of a file. Raises MccError."""
    path = Path(path)
    model = read_proto(path, reading)
    dims = {**ranges.declared(model), **(dims or {})}

    def sized(sizes: Sizes) -> Graph:
        given = {**(dims or {}), **sizes.dims}
        return load(path, given, shapes, bounds, replace(reading, dims=given))

    try:
        return load_proto(model, path.parent, dims, shapes, path.name, bounds=bounds, own=reading.functions)
    except BadFile as error:
        declared = defaults.declared(model)
        if not declared and dims:
            own = reading.functions
            free = partial(load_proto, model, path.parent, None, shapes, path.name, bounds=bounds, own=own)
            raise refitted(error, free) from None
        if not declared:
            raise
        raise proposed(SizesMisfit(declared, path.name, error.problems[0].why), len(model.graph.node), sized) from None


@cache
def _standard_input() -> bytes:
    """All of it: several targets read one model."""
    return sys.stdin.buffer.read()


def name_of(path: Path) -> str:
    """What a model is called that nobody names."""
    return "model" if path == STANDARD_INPUT else path.stem


_DISTANT = {  # addresses, whose slashes a path has lost
    "http:": "curl -LO http://{0}   # then name {1}",
    "https:": "curl -LO https://{0}   # then name {1}",
    "hf:": "hf download {0} --local-dir {1}   # then name the .onnx file in {1}, or the folder of a language model",
}


def contents(path: Path) -> bytes:
    """The bytes of a model."""
    try:
        return b"" if path.is_dir() else _standard_input() if path == STANDARD_INPUT else path.read_bytes()
    except OSError as problem:
        why = problem.strerror or str(problem)
        if path.is_symlink() and not path.exists():
            why = f"it is a link to {path.readlink()}, which does not exist"
        scheme = path.parts[0] if path.parts else ""
        if scheme in _DISTANT:
            why, fix = "files are read from this machine", _DISTANT[scheme].format("/".join(path.parts[1:]), path.name)
            raise BadFile(Problem(f"{path.name} is not here", str(path), why, fix)) from None
        fix = near_file(path, "*.onnx") or "name an ONNX file that exists"
        raise BadFile(Problem(f"cannot read {path.name}", str(path), why, fix)) from None


def read_proto(path: Path, reading: Reading = AS_IT_IS) -> ModelProto:
    """What a file holds, without data in other files; one of another format as the ONNX model that it means, with what
    is to stand in front of it."""
    model = _one(path, reading)
    for front in reversed(reading.prepend):
        model = joined(_one(front.file, Reading(trust=reading.trust)), model, front)
    if reading.seeded:
        give_seeds(model)
    return model


def _one(path: Path, reading: Reading) -> ModelProto:
    data = contents(path)
    found = registry.read(Source(path, data), reading)
    if found is not None:
        return found
    try:
        model: ModelProto = ModelProto.FromString(data)
    except _DecodeError:
        raise _not_onnx(path, data) from None
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise _not_onnx(path, data)
    return exported_decoder.alone(model, path, reading)


def load_proto(
    model: ModelProto,
    folder: Path | None = None,
    dims: DimRanges | None = None,
    shapes: InputShapes | None = None,
    name: str = "the model",
    fixed: Mapping[str, np.ndarray] | None = None,
    bounds: Bounds | None = None,
    own: Sequence[OwnFunction] = (),
) -> Graph:
    """The same for a model that is in memory; external data is looked for in `folder`. `own` functions compute
    operators that nothing else knows.

    Inputs that `fixed` gives a value become constants, such as axes or sizes that have to be known when compiling.
    """
    if fixed:
        model = _with_constants(model, fixed)
    _check_texts(model, name)
    model = _without_repeats(model)
    findings = Findings(bool(dims or shapes))

    def read_as(
        found: Findings,
        assumed: Assumption | None = None,
        chosen: Mapping[str, int] | None = None,
        limits: Limits | None = None,
    ) -> Graph:
        limits = limits or Limits(bounds or {})
        return _read(model, folder, dims or {}, shapes or {}, name, limits, found, assumed, chosen or {}, own)

    def bounded(found: Findings, more: Bounds) -> None:
        read_as(found, limits=Limits({**more, **(bounds or {})}))

    def read(assumed: Assumption | None = None) -> Graph:
        return read_as(Findings(findings.sized) if assumed else findings, assumed)

    def sized(sizes: Sizes) -> Graph:
        given = {**(dims or {}), **sizes.dims}, {**(shapes or {}), **sizes.shapes}, {**(bounds or {}), **sizes.bounds}
        return load_proto(model, folder, given[0], given[1], name, bounds=given[2], own=own)

    try:
        return read()
    except SizesMissing as missing:
        raise proposed(missing, len(model.graph.node), sized) from None
    except UnsupportedModel as error:
        used = _by_use(lambda chosen, found: read_as(found, None, chosen), findings)
        if used is not None:
            return used
        known = declared_shapes(model.graph, dims or {})
        for assumption in assumptions(model.graph, known) if findings.undeclared else ():
            try:
                graph = read(assumption)
            except MccError:
                continue
            if has_declared_shapes(graph, known):
                return graph
        if EVERYTHING in (bounds or {}) and findings.undeclared:
            return read_as(Findings(findings.sized), limits=Limits(bounds or {}, shapes=True))
        raise with_all_bounds(error, findings, len(model.graph.node), bounded) from None


def _read(
    model: ModelProto,
    folder: Path | None,
    dims: DimRanges,
    shapes: InputShapes,
    name: str,
    limits: Limits,
    findings: Findings,
    assumed: Assumption | None,
    chosen: Mapping[str, int],
    own: Sequence[OwnFunction],
) -> Graph:
    opsets = _opsets(model, name)
    graph = Graph(model.graph.name or readable(Path(name).stem))
    unsaid = _unsaid(opsets)
    scope = Scope(graph, {**opsets, **unsaid}, shapes=declared_shapes(model.graph, dims), said=said_types(model.graph))
    scope.partly = partly_declared(model.graph, dims)
    inputs = Inputs(model.graph, name, dims, shapes, limits, findings)
    limits.declare((*model.graph.value_info, *model.graph.output))
    reader = NodeReader(name, folder, model.functions, findings, limits)
    reader.chosen, reader.own, reader.unsaid = chosen, own, unsaid
    reader.reserve(names_made(model.graph))
    reader.constants(model.graph, scope)
    given = inputs.values()
    taken: set[str] = set()
    for title, whole in given:
        graph.inputs += leaves(whole)
        taken.update(value.name for value in leaves(whole))
        findings.check_bytes(leaves(whole), f"input {title!r} in {name}")
        if title in scope.values or len(taken) < len(graph.inputs):
            findings.add("one name for two values", f"input {title!r} in {name}", Invalid(f"{title!r} is made twice"))
        reader.reserve(value.name for value in leaves(whole))
        scope.values[title] = received(reader.writer(scope, title), whole)
        if assumed and assumed.input == title and isinstance(whole, Value):
            scope.values[title] = assumed.known(graph, whole)
    findings.stop_if_any()
    reader.check_extent(model.graph, scope)
    reader.nodes(model.graph.node, scope)
    found = reader.outputs(model.graph, scope) or []
    if any(not isinstance(whole, Value) for whole in (*(whole for _, whole in given), *found)):
        graph.interface = _interface(model.graph, given, found)
    graph.states_of_file = states.declared(model)
    graph.assumptions |= reader.assumptions
    graph.assumed = tuple(reader.assumed)
    graph.filled_in, graph.parameters = filled_in(model.graph), parameters(model.graph)
    findings.stop_if_any()
    _check_outputs(model.graph, graph, name)
    _check_extent(graph, dims, shapes, name)
    reader.results_made.judge(model, graph.inputs, findings)
    findings.stop_if_any()
    limits.check()
    for value in graph.inputs:
        if assumed and value.name == assumed.input:
            assumed.check(graph, value)
    return graph


def _by_use(read: Callable[[Mapping[str, int], Findings], Graph], findings: Findings) -> Graph | None:
    """The graph where Ifs with branches of different rank are those whose rank can be used; where both can, the one
    that the file declares. None where that does not tell."""
    chosen: dict[str, int] = {}
    while findings.ranks and findings.only_ranks and len(chosen) < _MOST_RANKS:
        origin, declared_branch = next(iter(findings.ranks.items()))
        outcomes: dict[int, tuple[Graph | None, Findings]] = {}
        for branch in (0, 1):
            found = Findings(findings.sized)
            try:
                outcomes[branch] = read({**chosen, origin: branch}, found), found
            except MccError:
                if found.only_ranks and origin not in found.ranks:
                    outcomes[branch] = None, found
        if len(outcomes) == 2 and declared_branch is not None:
            outcomes = {declared_branch: outcomes[declared_branch]}
        if len(outcomes) != 1:
            return None
        ((chosen[origin], (graph, findings)),) = outcomes.items()
        if graph is not None:
            return graph
    return None


def is_open(entry: ValueInfoProto, dims: DimRanges, bounds: Bounds) -> bool:
    """Does a file leave sizes of an input open, which nobody bounds?"""
    type = entry.type.optional_type.elem_type if entry.type.HasField("optional_type") else entry.type
    if type.HasField("sequence_type"):
        return entry.name not in bounds
    if not type.HasField("tensor_type"):
        return False
    shape = declared(type)[1]
    return shape is None or any(not isinstance(dim, int) and dim not in dims for dim in shape)


def _interface(
    proto: GraphProto, inputs: Sequence[tuple[str, ScopedValue]], outputs: Sequence[ScopedValue]
) -> Interface:
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


def _without_repeats(model: ModelProto) -> ModelProto:
    """The model with each output named once: a name that stands there twice is one tensor."""
    names = [output.name for output in model.graph.output]
    repeated = [n for n, name in enumerate(names) if name in names[:n]]
    if not repeated:
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for position in reversed(repeated):
        del copy.graph.output[position]
    return copy


def _not_onnx(path: Path, data: bytes) -> BadFile:
    known = recognised(path, data) or plain_text(path, data)
    if known is not None:
        why, fix = f"it is {known.what}", known.fix
    elif not data:
        why, fix = "the file is empty", "copy or export it again"
    else:
        why, fix = f"its {len(data)} bytes are of another format, or were cut off", "export or copy it again"
    return BadFile(Problem(f"{path.name or path} is not an ONNX model", str(path), why, fix))


def _check_texts(model: ModelProto, name: str) -> None:
    around: list[object] = [entry.domain for entry in model.opset_import]
    for function in model.functions:
        around += [function.name, function.domain, function.overload, *function.input, *function.output]
    bodies = (text for function in model.functions for text in texts(function.node))
    for text in (*around, *bodies, *texts(model.graph.node, model.graph)):
        if not isinstance(text, str):
            why = f"{text!r} is a name that is not text in UTF-8"
            raise BadFile(Problem(f"{name} is damaged", name, why, "export or copy it again"))


def _unsaid(opsets: Mapping[str, int]) -> dict[str, int]:
    """The newest version of ONNX's own domains that a file does not name, though it names others: it is what
    onnxruntime takes."""
    missing = [domain for domain in STANDARD_DOMAINS if opsets and domain not in opsets]
    return {domain: newest_opset(domain) for domain in missing}


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


def _check_extent(graph: Graph, dims: DimRanges, shapes: InputShapes, file: str) -> None:
    """Sizes of 0 that leave nothing to compute are hardly meant: refused where an option sets them, a warning where the
    model does. A past of 0 tokens leaves something."""
    none = [f"--dim {dim}=1" for dim, size in dims.items() if tuple(size) == (0, 0)]
    for title, sizes in shapes.items():
        if any(size == 0 and not isinstance(size, str) for size in sizes):
            none.append(f"--shape {title}={','.join(str(size or 1) for size in sizes)}")
    if not graph.outputs or not all(0 in value.type.shape for value in graph.outputs):
        return
    if not none:
        named = ", ".join(f"{value.name} is {value.type}" for value in graph.outputs)
        warn(f"{file} computes nothing: all of its outputs have no elements ({named})")
    else:
        why = "all of its outputs have no elements then: a run would do nothing"
        ranges = [text.replace("=1", "=0..8") for text in none if text.startswith("--dim")]
        or_range = f"; a range may begin at 0: {' '.join(ranges)}" if ranges else ""
        raise WrongUse(Problem("a size of 0 leaves nothing to compute", file, why, f"try {' '.join(none)}{or_range}"))


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
                findings.add("invalid output", f"output {entry.name!r} in {file}", Invalid("it is not a tensor"))
            continue
        value = plain[form]
        where = f"output {entry.name!r} in {file}"
        if kind is None:
            continue
        if kind == "sequence_type" and value.producer is not None and value.producer.op.name == "ZipMap":
            continue  # a compiled model gives the scores that the maps are made of
        if kind != "tensor_type":
            findings.add("invalid output", where, Invalid(f"it is declared as {kind_name(kind)}, but is {value.type}"))
            continue
        try:
            dtype = declared(entry.type)[0] if entry.type.tensor_type.elem_type else value.type.dtype
        except Refused as refused:
            findings.add("invalid output", where, refused)
            continue
        if dtype is not value.type.dtype:
            findings.add(
                "an output contradicts its declaration",
                where,
                Invalid(f"it is declared as {dtype}, but its node makes {value.type}", "export it again"),
            )
    findings.stop_if_any()
