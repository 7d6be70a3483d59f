"""A .tflite file as an ONNX model in memory.

Invariant: everything that is wrong is found before stopping and raised as one error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from ...base.errors import BadFile, Problem, UnsupportedModel, WrongUse
from ...base.names import c_identifier
from ...base.near import meant
from ...graph.ir import Invalid, Refused
from .. import defaults, states
from ..api import AS_IT_IS, Reading
from .file import Model, Operator, Signature, SizeOpen, Subgraph, Tensor, read
from .flat import Damaged
from .onnx_nodes import OPSET, Shared, Writer
from .refused import reason
from .resized import Size, Sizes, asked, open_sizes
from .scope import Scope, SharedScope
from .site import Site, onnx_type, registry
from .sizes import fold
from .types import Types
from .variables import with_states

IDENTIFIER = b"TFL3"
_SHOWN = 8
# what an operator ends in whose tensors have not the shapes and values that TFLite asks for
_MISFITS = (ArithmeticError, LookupError, TypeError, ValueError)
_IN_ORDER = ("ASSIGN_VARIABLE", "CALL_ONCE", "IF", "READ_VARIABLE", "WHILE")


def is_tflite(data: bytes) -> bool:
    return data[4:8] == IDENTIFIER


def to_onnx(data: bytes, file: str, reading: Reading = AS_IT_IS) -> ModelProto:
    """The model of a file's contents."""
    try:
        model = read(data)
        signature = _chosen(model, file, reading.signature)
        first = _Conversion(model, file, reading, follows=_lacks_shapes(model))
        try:
            return first.proto(signature)
        except BadFile:
            if first.follows or not first.open:
                raise
            try:  # sizes of tensors that the file leaves open may be placeholders: LiteRT computes them
                return _Conversion(model, file, reading, follows=True).proto(signature)
            except (BadFile, UnsupportedModel):
                pass
            raise
    except Damaged as damage:
        fix = "export or copy it again"
        raise BadFile(Problem(f"{file} is a damaged TensorFlow Lite model", file, str(damage), fix)) from None


_NEVER_SCALARS = frozenset(
    ("AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "SOFTMAX", "TRANSPOSE_CONV")
)


def _lacks_shapes(model: Model) -> bool:
    """Does the file leave out shapes of what its operators make, which LiteRT computes?"""
    return any(
        operator.name in _NEVER_SCALARS and any(not graph.tensors[number].dims for number in operator.outputs)
        for graph in model.subgraphs
        for operator in graph.operators
    )


def _chosen(model: Model, file: str, key: str) -> Signature:
    """The signature that is asked for; else the one of the first subgraph, or none."""
    if key:
        keys = [signature.key for signature in model.signatures]
        if key not in keys:
            why = f"it has {', '.join(map(repr, keys)) or 'none'}"
            raise WrongUse(Problem(f"there is no signature {key!r}", file, why, meant(key, keys, "--signature")))
        return model.signatures[keys.index(key)]
    return next((found for found in model.signatures if found.subgraph == 0), Signature("", 0, {}, {}))


def by_depth(graph: Subgraph) -> list[tuple[int, Operator]]:
    """Operators with their places in the file, those that more operators come before later: where two branches meet,
    the longer one ends last, and what follows is made part of that. What reads and writes variables keeps its order."""
    if any(operator.name in _IN_ORDER for operator in graph.operators):
        return list(enumerate(graph.operators))
    depths: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    for place, operator in enumerate(graph.operators):
        depth = 1 + max((depths.get(number, 0) for number in operator.inputs), default=0)
        depths.update(dict.fromkeys(operator.outputs, depth))
        found.append((depth, place))
    return [(place, graph.operators[place]) for _, place in sorted(found)]


class _Conversion:
    def __init__(self, model: Model, file: str, reading: Reading, follows: bool = False) -> None:
        """With `follows` all sizes follow from those that inputs have in the file."""
        self.model, self.file, self.reading = model, file, reading
        self.shared = Shared()
        self.whole = SharedScope(model, self.shared, self.nodes)
        self.problems: list[Problem] = []
        self.invalid = False
        self.follows = follows
        self.open: Sizes = {}  # where sizes are those of the file

    def proto(self, signature: Signature) -> ModelProto:
        self._check_operators()
        scope = Scope(self.whole, signature.subgraph, Writer(self.shared))
        graph = scope.subgraph
        outputs = list[ValueInfoProto]()
        for number in dict.fromkeys(graph.inputs):
            title = signature.inputs.get(number) or graph.tensors[number].name or "input"
            scope.values[number] = self.shared.names.take(title)
        given = {name: graph.tensors[number] for number, name in scope.values.items()}
        sizes = asked(given, self.reading, self.file)
        if self.follows:
            sizes = sizes or {name: tensor.shape for name, tensor in given.items()}
        self.open = {} if sizes else open_sizes(given)
        inputs = [self._info(name, tensor, sizes.get(name)) for name, tensor in given.items()]
        if sizes:
            self.whole.types = Types(self.shared)
            self.whole.types.declare(self._numbered(inputs))
        titles = {n: signature.outputs.get(n) or graph.tensors[n].name or "output" for n in graph.outputs}
        kept = {number: self.shared.names.take(title) for number, title in titles.items()}
        self.whole.open.append(signature.subgraph)
        self.nodes(scope)
        for place, number in enumerate(graph.outputs):
            if number not in kept:
                continue
            try:
                made = scope.result(place)
            except Refused as refused:
                self._add("a result is missing", f"output {graph.tensors[number].name!r} in {self.file}", refused)
                continue
            name = kept.pop(number)
            scope.writer.nodes.append(helper.make_node("Identity", [made], [name], name))
            outputs.append(self._info(name, scope.tensor(number), self._open(name, scope.tensor(number))))
        pairs = {}
        if not self.problems:
            found = with_states(self.whole, scope.writer)
            pairs = {state.after: state.before for state in found}
            inputs += [self._info(state.before, state.tensor) for state in found]
            outputs += [self._info(state.after, state.tensor) for state in found]
        if self.problems:
            raise (BadFile if self.invalid else UnsupportedModel)(*self.problems)
        proto = scope.writer.graph(graph.name or "main", inputs, outputs)
        proto.initializer.extend(self.shared.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        version = helper.find_min_ir_version_for(opsets)
        made = helper.make_model(
            proto,
            producer_name="mccompile",
            doc_string=self.model.description,
            opset_imports=opsets,
            ir_version=version,
        )
        states.declare(made, pairs)
        if not sizes:
            defaults.declare(made, self.open)
        return made

    def nodes(self, scope: Scope) -> None:
        """The operators of a subgraph."""
        graph = scope.subgraph
        for place, operator in by_depth(graph):
            convert, first = registry().get(operator.key), len(scope.writer.nodes)
            try:
                if convert is not None:  # else it is refused already
                    with np.errstate(all="ignore"):
                        convert(Site(operator, scope))
                        fold(scope, operator, first)
                        if self.whole.types is not None:
                            self.whole.types.follow(scope.writer.nodes[first:])
            except Refused as refused:
                self._add(f"{operator.name} cannot be compiled", self._where(place, operator, graph), refused)
            except _MISFITS as error:
                misfit = Invalid(f"its operands and attributes do not fit together: {error}")
                self._add(f"{operator.name} cannot be compiled", self._where(place, operator, graph), misfit)
            for number in operator.outputs:
                if number not in scope.handles:
                    scope.values.setdefault(
                        number, graph.tensors[number].name or f"tensor {number}"
                    )  # what was refused is said once

    def _check_operators(self) -> None:
        """Refuses the operators without a decomposition, all at once."""
        places: dict[tuple[str, bool], list[str]] = {}
        for graph in self.model.subgraphs:
            for place, operator in enumerate(graph.operators):
                if operator.key not in registry():
                    where = self._where(place, operator, graph)
                    places.setdefault((operator.name, operator.is_custom), []).append(where)
        for (name, is_custom), found in places.items():
            shown = [*found[:_SHOWN], *([f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])]
            why, fix = ("it is a custom operator", "change the model to do without it") if is_custom else reason(name)
            self.problems.append(Problem(f"operator {name} is not supported", "\n".join(shown), why, fix))

    def _where(self, place: int, operator: Operator, graph: Subgraph) -> str:
        made = ", ".join(repr(graph.tensors[number].name) for number in operator.outputs[:2])
        of = f" of subgraph {graph.name!r}" if len(self.model.subgraphs) > 1 else ""
        return f"operator {place}{of}, which makes {made}, in {self.file}"

    def _add(self, what: str, where: str, refused: Refused) -> None:
        self.invalid |= isinstance(refused, Invalid)
        fix = self._number_fix() if isinstance(refused, SizeOpen) else refused.fix
        names = {size: None for sizes in self.open.values() for size in sizes if isinstance(size, str)}
        if names and isinstance(refused, Invalid):
            fix = f"give other sizes than those of the file: {' '.join(f'--dim {name}=SIZE' for name in names)}"
        fix = fix or ("export it again" if isinstance(refused, Invalid) else "change the model to do without")
        problem = Problem(what, where, refused.why, fix)
        if problem not in self.problems:
            self.problems.append(problem)

    def _number_fix(self) -> str:
        """What to do about a size that has a range."""
        ranges = {name: high for name, (low, high) in self.reading.dims.items() if low < high}
        given = ",".join(f"{name}={size}" for name, size in ranges.items())
        return f"give one number in place of a range: --dim {given}" if given else ""

    def _numbered(self, inputs: list[ValueInfoProto]) -> list[ValueInfoProto]:
        """The same with numbers for the dimensions that have one."""
        return [defaults.numbered(entry, self.reading.dims) for entry in inputs]

    @staticmethod
    def _open(name: str, tensor: Tensor) -> list[Size | None]:
        """The sizes of a result, of which some may be known at run time only."""
        named = f"{c_identifier(name)}_"
        return [f"{named}{axis}" if axis in tensor.open else size for axis, size in enumerate(tensor.dims)]

    def _info(self, name: str, tensor: Tensor, sizes: Sequence[Size | None] | None = None) -> ValueInfoProto:
        try:
            return helper.make_tensor_value_info(name, onnx_type(tensor.type), tensor.dims if sizes is None else sizes)
        except Refused as refused:
            self._add("unsupported tensor", f"tensor {tensor.name!r} in {self.file}", refused)
            return ValueInfoProto(name=name)
