"""A network with another model in front: features, normalizing, any graph whose outputs are the network's inputs.

Invariant: the result computes what both compute one after the other; nothing is matched by guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import count
from math import prod
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, compose, helper, numpy_helper, version_converter

from ..base.errors import Problem, UnsupportedModel, WrongUse
from ..base.near import meant
from ..base.records import dataclass
from . import states
from .renaming import name_apart


@dataclass(frozen=True)
class Prepended:
    """A model in front. `pairs`: inputs of the network by output; empty: those of one name, or of one type."""

    file: Path
    pairs: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ",".join([f"--prepend {self.file}", *(f"{given}={taken}" for given, taken in self.pairs.items())])


def joined(front: ModelProto, network: ModelProto, asked: Prepended) -> ModelProto:
    """The model of both; `front` is that of the file that is asked for."""
    front, network = _of_one_opset(front, network, asked)
    given = list(front.graph.output)
    pairs: Mapping[str, str] = _pairs(given, {entry.name: entry for entry in _inputs(network)}, asked)
    prefix = _prefix(network)
    first = {entry.name for entry in _inputs(front)}
    ends = first | {entry.name for entry in given if entry.name not in pairs}
    network, pairs = _inputs_apart(network, pairs, ends, prefix)
    _refuse_same(ends, network, asked)
    front = _functions_apart(front, prefix)
    handed = {name: name if name in first else f"{prefix}given_{place}" for place, name in enumerate(pairs)}
    name_apart(front.graph, prefix, {**{name: name for name in ends}, **handed})
    made = ModelProto()
    made.CopyFrom(network)
    del made.graph.node[:], made.graph.input[:], made.graph.output[:]
    made.graph.node.extend(front.graph.node)
    _hand_over(made.graph, {handed[output]: into for output, into in pairs.items()}, network)
    made.graph.node.extend(network.graph.node)
    made.graph.input.extend([*front.graph.input, *(e for e in network.graph.input if e.name not in pairs.values())])
    made.graph.output.extend([*network.graph.output, *(entry for entry in given if entry.name not in pairs)])
    made.graph.initializer.extend(front.graph.initializer)
    made.graph.sparse_initializer.extend(front.graph.sparse_initializer)
    made.functions.extend(front.functions)
    domains = {entry.domain for entry in made.opset_import}
    made.opset_import.extend(entry for entry in front.opset_import if entry.domain not in domains)
    made.ir_version = max(front.ir_version, network.ir_version)
    lasting = {**states.declared(front), **states.declared(network)}
    states.declare(made, lasting)
    return made


def _hand_over(graph: GraphProto, pairs: Mapping[str, str], network: ModelProto) -> None:
    """Inputs of the network, in its shapes, from what is made in front."""
    taken = {entry.name: entry for entry in _inputs(network)}
    for name, into in pairs.items():
        wanted = _shape(taken[into])
        if 0 in wanted:  # it is as it comes
            graph.node.append(helper.make_node("Identity", [name], [into], name=f"{name}/same"))
            continue
        shape = numpy_helper.from_array(np.array(wanted, np.int64), f"{name}/shape")
        graph.initializer.append(shape)
        graph.node.append(helper.make_node("Reshape", [name, shape.name], [into], name=f"{name}/reshape"))


def _prefix(network: ModelProto) -> str:
    """Of names that the network has not: it may be joined already."""
    taken = {name.partition("/")[0] for node in network.graph.node for name in (*node.input, *node.output)}
    return next(f"frontend{n or ''}/" for n in count() if f"frontend{n or ''}" not in taken)


def _inputs_apart(
    network: ModelProto, pairs: Mapping[str, str], names: set[str], prefix: str
) -> tuple[ModelProto, Mapping[str, str]]:
    """The network, where what it is handed is called otherwise than inputs and outputs of the model in front."""
    outputs = {entry.name for entry in network.graph.output}
    apart = {name: f"{prefix}into/{name}" for name in pairs.values() if name in names - outputs}
    if not apart:
        return network, pairs
    made = ModelProto()
    made.CopyFrom(network)
    name_apart(made.graph, "", apart)
    return made, {output: apart.get(name, name) for output, name in pairs.items()}


def _functions_apart(model: ModelProto, prefix: str) -> ModelProto:
    """Functions, and nodes that call them."""
    kept = ("nodes", "edges", "inputs", "outputs", "initializers", "value_infos")
    return compose.add_prefix(model, prefix, **{f"rename_{what}": False for what in kept})


def _pairs(given: Sequence[ValueInfoProto], taken: Mapping[str, ValueInfoProto], asked: Prepended) -> dict[str, str]:
    by_name = {entry.name: entry for entry in given}
    found = dict(asked.pairs)
    for name, known, what in (
        *((name, by_name, "output of the model in front") for name in found),
        *((name, taken, "input of the network") for name in found.values()),
    ):
        if name not in known:
            fix = meant(name, known) or f"write --prepend {asked.file},OUTPUT=INPUT"
            raise WrongUse(Problem(f"there is no {what} {name!r}", str(asked), f"there are {', '.join(known)}", fix))
    if not found:
        found = {name: name for name in by_name if name in taken} or _alike(given, taken)
    if not found:
        why = f"it gives {_all(given)}, and the network takes {_all(taken.values())}"
        fix = _fix(given, taken) or _which(given, taken, asked)
        raise WrongUse(Problem("nothing that is in front fits the network", str(asked), why, fix))
    for output, into in found.items():
        if not _fits(by_name[output], taken[into]):
            why = f"it gives {_text(by_name[output])}, the network takes {_text(taken[into])}"
            fix = _fix([by_name[output]], {into: taken[into]}) or "make the front end with --for, for this network"
            raise WrongUse(Problem(f"{output!r} is not {into!r}", str(asked), why, fix))
    return found


def _alike(given: Sequence[ValueInfoProto], taken: Mapping[str, ValueInfoProto]) -> dict[str, str]:
    """The one pair that fits, where there is but one."""
    fitting = [(one.name, name) for one in given for name, other in taken.items() if _fits(one, other)]
    return dict(fitting) if len(fitting) == 1 else {}


def _fits(one: ValueInfoProto, other: ValueInfoProto) -> bool:
    """The same elements in the same order? A size that is open can be any."""
    shapes = _shape(one), _shape(other)
    same = one.type.tensor_type.elem_type == other.type.tensor_type.elem_type
    if 0 in (*shapes[0], *shapes[1]):
        alike = (a == b or 0 in (a, b) for a, b in zip(*shapes, strict=False))
        return same and len(shapes[0]) == len(shapes[1]) and all(alike)
    return (same and _without_ones(shapes[0]) in (_without_ones(shapes[1]), _flat(shapes[1]))) or (
        same and _flat(shapes[0]) == _without_ones(shapes[1])
    )


def _fix(given: Sequence[ValueInfoProto], taken: Mapping[str, ValueInfoProto]) -> str:
    types = {entry.type.tensor_type.elem_type for entry in (*given, *taken.values())}
    quantizes = len(types) > 1 and types & {TensorProto.INT8, TensorProto.UINT8}
    return "mccompile frontend --for NETWORK quantizes features as the network reads them" if quantizes else ""


def _which(given: Sequence[ValueInfoProto], taken: Mapping[str, ValueInfoProto], asked: Prepended) -> str:
    """Names for what could go together, where that is open."""
    fitting = [(one.name, name) for one in given for name, other in taken.items() if _fits(one, other)]
    if not fitting:
        return "leave out --prepend, or name a model whose output has the shape and type of an input of the network"
    return f"say which: --prepend {asked.file},{'='.join(fitting[0])}"


def _shape(entry: ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in entry.type.tensor_type.shape.dim)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _flat(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (prod(shape),) if all(shape) else ()


def _text(entry: ValueInfoProto) -> str:
    sizes = (dim.dim_param or str(dim.dim_value) for dim in entry.type.tensor_type.shape.dim)
    dtype = TensorProto.DataType.Name(entry.type.tensor_type.elem_type).lower()
    return f"{entry.name} {dtype}[{', '.join(sizes)}]"


def _all(entries: Iterable[ValueInfoProto]) -> str:
    return ", ".join(_text(entry) for entry in entries)


def _inputs(model: ModelProto) -> list[ValueInfoProto]:
    constants = {tensor.name for tensor in model.graph.initializer}
    return [entry for entry in model.graph.input if entry.name not in constants]


def _refuse_same(names: set[str], network: ModelProto, asked: Prepended) -> None:
    used = {name for node in network.graph.node for name in (*node.input, *node.output)}
    same = sorted(names & used)
    if same:
        fix = f"rename it in {asked.file}"
        raise WrongUse(Problem(f"both models have a tensor {same[0]!r}", str(asked), "each is another one", fix))


def _of_one_opset(front: ModelProto, network: ModelProto, asked: Prepended) -> tuple[ModelProto, ModelProto]:
    versions = [next((e.version for e in m.opset_import if e.domain in ("", "ai.onnx")), 1) for m in (front, network)]
    newest = max(versions)
    found = []
    for model, version in zip((front, network), versions, strict=True):
        try:
            found.append(model if version == newest else version_converter.convert_version(model, newest))
        except Exception as error:  # the converter raises what it likes
            why = f"one has opset {versions[0]}, the other {versions[1]}: {error}"
            fix = f"export both with opset {newest}"
            raise UnsupportedModel(Problem("models of two opsets do not go together", str(asked), why, fix)) from None
    return found[0], found[1]
