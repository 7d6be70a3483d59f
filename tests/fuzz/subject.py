"""A finished graph: a model, what its inputs may be given, and at which sizes it is run. The same seed and number give
the same subject, whatever was drawn before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import GraphProto, ModelProto, helper, numpy_helper

from tests.passes import qdq_graphs

from . import official
from .builder import Builder, Dim, Input, Value, initializers
from .evaluate import IR_VERSION, captured, opsets, title
from .operators.registry import drawn, entries
from .streams.grown import network

TALL = 0.05  # of the graphs, which are over pictures of many rows
STREAMED = 0.03  # of the graphs, which are networks over time
OPSETS = (18, 19, 20, 21, 21, 22, 23, 24, 26, 28)
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Subject:
    model: ModelProto
    inputs: tuple[Input, ...]
    free: Mapping[str, Sequence[int]] = field(default_factory=dict)  # lowest, odd, highest
    state: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()  # outputs without rounding on the way
    source: str = "graph"
    tall: bool = False  # over pictures of many rows
    time: int | None = None  # the axis of time of the input of a network that is made to be streamed

    @property
    def operators(self) -> frozenset[str]:
        return frozenset(_titles(self.model.graph))

    def runs(self, seed: Sequence[int]) -> list[Arrays]:
        """What is given to one run after the other; states are zeros, of the first run."""
        chance = np.random.default_rng([*seed, 1])
        order = [0, 1, 2, 0] if self.free else [0] * (5 if self.state else 2)
        order = [0, 1, 2] if self.free and self.state else order  # the state grows
        found = []
        for number in order:
            sizes = {name: among[number] for name, among in self.free.items()}
            found.append({made.name: made.draw(chance, sizes) for made in self.inputs})
            for name in self.state.values():
                found[-1][name] = np.zeros_like(found[-1][name])
        return found


def _titles(graph: GraphProto) -> set[str]:
    found = set()
    for node in graph.node:
        found.add(title(node))
        for attribute in node.attribute:
            found |= _titles(attribute.g)
    return found


def draw(
    seed: int, number: int, having: frozenset[str] = frozenset(), tall: float = TALL, streamed: float = STREAMED
) -> Subject:
    """`having`: a graph with one of these operators. `tall`: the share of graphs over pictures of many rows.
    `streamed`: the share of networks over time."""
    chance = np.random.default_rng([seed, number])
    is_tall = bool(np.random.default_rng([seed, number, 8]).random() < tall)
    cases = having - entries().keys()
    while having:
        if cases and chance.random() * len(having) < len(cases):
            found = _case(chance, sorted(cases))
        else:
            found = _grown(chance, having - cases, tall=is_tall)
        if found is not None and found.operators & having:
            return found
    over_time = np.random.default_rng([seed, number, 9])
    if over_time.random() < streamed:
        return streamed_network(over_time)
    share = chance.random()
    if share < 0.06:
        return quantized_network(chance)
    if share < 0.075:
        found = _case(chance)
        if found is not None:
            return found
    while True:
        growing = bool(np.random.default_rng([seed, number, 7]).random() < 0.06)
        found = _grown(chance, growing=growing, tall=is_tall)
        if found is not None:
            return found


def quantized_network(chance: np.random.Generator) -> Subject:
    """A quantized network with scales of any size; rational arithmetic says what it gives."""
    bits = 16 if chance.random() < 0.15 else 8
    among = qdq_graphs.SHORT_BLOCKS if bits == 16 else range(len(qdq_graphs.BLOCKS))
    blocks = [int(n) for n in chance.choice(list(among), int(chance.integers(1, 5)))]
    widest = 5 if bits == 16 else int(chance.choice([4, 9, 24]))
    dead = 0.5 if chance.random() < 0.4 else 0.0
    if dead:  # from one convolution to another
        blocks = [0, *blocks, 0]
    model = qdq_graphs.network(int(chance.integers(0, 1 << 30)), blocks, widest, bits, dead)
    inputs = []
    for value in model.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        info = np.iinfo(dtype)
        inputs.append(Input(value.name, dtype, shape, "integer", int(info.min), int(info.max)))
    return Subject(model, tuple(inputs), exact=frozenset(o.name for o in model.graph.output), source="qdq")


def streamed_network(chance: np.random.Generator) -> Subject:
    """A network over time (docs/fuzzing.md, Streams), with one input."""
    model, net = network(int(chance.integers(0, 1 << 30)))
    dims = tuple(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)
    return Subject(model, (Input("x", np.dtype(np.float32), dims, "normal"),), source="stream", time=net.axis)


def _case(chance: np.random.Generator, having: Sequence[str] = ()) -> Subject | None:
    among = official.cases()
    title = str(chance.choice(having or sorted(among)))
    if not among[title]:
        return None
    _, model, arrays = among[title][int(chance.integers(0, len(among[title])))]
    inputs = [
        Input(value.name, array.dtype, array.shape, "given", arrays=(array,))
        for value, array in zip(model.graph.input, arrays, strict=False)
    ]
    return Subject(model, tuple(inputs), source="official")


def _grown(
    chance: np.random.Generator, having: frozenset[str] = frozenset(), growing: bool = False, tall: bool = False
) -> Subject | None:
    free: dict[str, tuple[int, ...]] = {}
    if growing:
        new = int(chance.choice([1, 1, 1, 2, 3]))
        free["p"] = (0, new, 2 * new)
    elif not tall and chance.random() < 0.3:
        for name in ("n", "t")[: int(chance.integers(1, 3))]:
            low, odd = int(chance.choice([1, 1, 1, 2])), int(chance.choice([3, 5]))
            free[name] = (low, odd, odd + int(chance.integers(1, 4)))
    opset = int(chance.choice(OPSETS))
    if having:  # one that has some of them
        opset = max(opset, min(entries()[name].opset for name in having))
    g = Builder(chance, opset, free, tall)
    if growing:
        _put_growing(g, new)
    wanted = int(chance.choice([1, 2, 3, 4, 5, 6, 8, 10]))
    for _ in range(wanted * 3):
        if len(g.nodes) >= wanted:
            break
        fit = sorted(name for name in having if entries()[name].opset <= opset)
        entry = entries()[g.pick(fit)] if having and g.maybe() else drawn(g)
        entry.put(g)
    return finished(g) if g.nodes else None


def _put_growing(g: Builder, new: int) -> None:
    """States that each run makes longer, `past` joined to what is new, and an input that is as long."""
    for number in range(g.pick([1, 2, 3])):
        dims: list[Dim] = [g.pick([1, 1, 2, 3, 5]) for _ in range(g.integer(1, 4))]
        axis, dtype = g.integer(0, len(dims) - 1), g.pick(["float32", "float32", "float16", "int8", "int64"])
        parts = []
        for size in ("p", new):
            dims[axis] = size
            parts.append(g.input(dtype, dims))
        joined = g.node("Concat", parts, axis=axis - g.pick([0, len(dims)]), exact=True)
        if joined is not None and number < 2:
            g.state[joined.name] = parts[0].name
        if g.maybe(0.9):
            g.values.remove(parts[0])


def finished(g: Builder) -> Subject | None:
    used = {name for node in g.nodes for name in (*node.input, *captured(node))}
    inputs = {made.name for made in g.inputs}
    made = [v for v in g.values if v.name not in inputs and v.name not in g.constants]
    outputs = [v for v in made if v.name not in used]
    inner = [v for v in made if v.name in used]
    if not outputs:
        return None
    outputs = outputs[-5:]
    if inner and g.maybe(0.35):
        outputs += [inner[int(n)] for n in g.chance.permutation(len(inner))[: g.integer(1, 2)]]
    if g.inputs and g.maybe(0.03):
        outputs += [v for v in g.values if v.name == g.inputs[0].name]
    outputs = [outputs[int(n)] for n in g.chance.permutation(len(outputs))]
    state = _state(g, made, outputs, used)
    nodes_used = {name for node in g.nodes for name in (*node.input, *captured(node))}
    constants = {name: array for name, array in g.constants.items() if name in nodes_used}
    named = {v.name for v in outputs}
    kept = tuple(i for i in g.inputs if i.name in nodes_used or i.name in named)
    graph = helper.make_graph(
        g.nodes, "fuzzed", [made.info() for made in kept], [_info(g, v) for v in outputs], initializers(constants)
    )
    domains = {node.domain for node in g.nodes} | {""}
    imports = [entry for entry in opsets(g.opset) if entry.domain in domains]
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    exact = frozenset(v.name for v in outputs if v.exact)
    free = {name: sizes for name, sizes in g.free.items() if any(name in made.dims for made in kept)}
    return Subject(model, kept, free, state, g.bounds, exact, tall=g.tall)


def _state(g: Builder, made: list[Value], outputs: list[Value], used: set[str]) -> dict[str, str]:
    for name in g.state:
        grown = next(v for v in g.values if v.name == name)
        if grown not in outputs:
            outputs.append(grown)
    if g.free or not g.maybe(0.25):
        return g.state
    by_name = {v.name: v for v in g.values}
    for entry in g.inputs:
        before = by_name[entry.name]
        if entry.kind not in ("exact", "normal") or entry.name in {v.name for v in outputs}:
            continue
        fits = [v for v in made if v.dtype == before.dtype and v.shape == before.shape and not v.last]
        if fits and entry.name in used:
            after = g.pick(fits)
            if after not in outputs:
                outputs.append(after)
            return {after.name: before.name}
    return {}


def trained_anew(subject: Subject, seed: int, number: int) -> Subject | None:
    """The same graph with other weights: the elements of matrices and filters in another order, but for zeros, which
    stay where they are. None: it has none."""
    chance = np.random.default_rng([seed, number, 6])
    model = ModelProto()
    model.CopyFrom(subject.model)
    changed = 0
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim >= 2 and array.size > 1 and array.dtype.name in ("float32", "float16", "int8", "uint8"):
            other = array.copy()
            other[array != 0] = chance.permutation(array[array != 0])
            tensor.CopyFrom(numpy_helper.from_array(other, tensor.name))
            changed += 1
    return replace(subject, model=model) if changed else None


def _info(g: Builder, value: Value) -> object:
    number = helper.np_dtype_to_tensor_dtype(value.arrays[0].dtype)
    dims = [None if value.last else g.dim_of(value, axis) for axis in range(value.rank)]
    return helper.make_tensor_value_info(value.name, number, dims)


def weights(model: ModelProto) -> Arrays:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
