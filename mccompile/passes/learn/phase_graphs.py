"""The graphs of a network that learns: one for inference, one for learning from one batch, and one for a step of the
optimizer.

Weights that learn are inputs that are kept, and begin with the constants of the file. Gradients are kept where they are
added up until a step takes them; else each weight moves as soon as its gradient is there. Below this nothing knows that
anything learns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ...base.constant import Constant
from ...base.dataclass_json import from_json, to_json
from ...base.dtypes import f32, u32
from ...base.errors import Problem, WrongUse
from ...base.records import dataclass
from ...base.tensor import TensorType
from ...expr.ir import Expr, apply, literal, operand
from ...graph.ir import Fact, Graph, Node, Value, all_nodes, graphs, reads
from ...ops.api import resolve
from ...ops.rules.backward import Writer
from ...plan.learning import LOSS
from .batch_norm import BatchNorm, freeze, measure, of_batches, statistics, unlearned
from .gradients import gradients
from .integer_weights import STEPS, LearnDtype, as_float, as_kept, scheme, stored
from .losses import add_loss, loss_output, unlike_probabilities
from .optimizers import Optimizer, Sgd, add, div, mul, optimizer, place, root
from .unrounded import leave_integers
from .weights import copied, learning, left_out, merged

RATE, LEARNED = "rate", "learned"
SCALAR = TensorType(f32, ())
AUTO = "auto"  # what learns is chosen by samples, before anything here is asked
NORM_ADDED = 1e-6  # what PyTorch adds to a norm before it divides by it


class Saved(StrEnum):
    """What a program saves of what it has learned."""

    WEIGHTS = "weights"
    OPTIMIZER = "optimizer"  # with what it keeps: learning goes on as if the power had never been off


@dataclass(frozen=True)
class Learning:
    """What is asked of a network that learns."""

    loss: str  # KIND:OUTPUT, or the name of an output
    learn: str = "last:1"  # as `weights.learning` reads it
    optimizer: Optimizer = field(default_factory=Sgd)
    at_once: bool = False  # weights move as soon as their gradients are there, in the same call
    clip: float | None = None  # the largest norm of all gradients together
    accumulate: int = 1  # calls that learn between two steps
    batch_norm: BatchNorm = BatchNorm.FROZEN
    save: Saved = Saved.WEIGHTS
    learn_dtype: LearnDtype = LearnDtype.F32

    def to_json(self) -> dict[str, Any]:
        return {**to_json(self, {"optimizer"}), "optimizer": self.optimizer.text}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Learning:
        rest = {name: value for name, value in found.items() if name != "optimizer"}
        return replace(from_json(cls, rest), optimizer=optimizer(str(found["optimizer"])))

    def stored(self, weights: Sequence[Value]) -> tuple[str, ...]:
        """The states that are saved besides weights and running averages."""
        if self.save == Saved.WEIGHTS:
            return ()
        chosen = self.optimizer
        counts = [*chosen.counts, *([STEPS] if _rounds(weights) else [])]
        return (*counts, *(statistic_name(weight, name) for weight in weights for name in chosen.statistics))


@dataclass(frozen=True)
class LearnedInputs:
    """What a network learns: inputs that are kept, or floats that are made of these (`stored`)."""

    weights: list[Value]
    normalized: list[Node]  # by the statistics of a batch
    averages: list[Value]  # of these, which batches move
    doubts: list[str]  # what may be meant otherwise, in words


def keep_weights(graph: Graph, asked: Learning, infers: bool = False) -> LearnedInputs:
    """Makes what learns inputs that are kept, and gives them. `infers`: it has no gradients, so that it computes in
    integers where its weights are kept in these."""
    freeze(graph)
    trains = asked.batch_norm == BatchNorm.TRAIN
    of = loss_output(graph, asked.loss)
    in_integers = asked.learn_dtype == LearnDtype.INT8
    learned = learning(graph, asked.learn, of, trains, in_integers)
    normalized = of_batches(graph.nodes, learned) if trains else []
    averages = statistics(normalized, learned)
    doubts = [*merged(learned), *copied(graph, learned), *left_out(graph, asked.learn, of, learned)]
    doubts += unlike_probabilities(graph, asked.loss)
    doubts += unlearned(list(graph.nodes), learned) if trains else []
    if in_integers and not _rounds(learned):
        doubts.append("--learn-dtype int8 changes nothing: no int8 weights learn; `mccompile quantize` makes some")
    if not (infers and in_integers):
        leave_integers(graph, learned)
    return LearnedInputs(_as_inputs(graph, learned), normalized, _as_inputs(graph, averages), doubts)


def _as_inputs(graph: Graph, weights: Sequence[Value]) -> list[Value]:
    found, made = [], set[Value]()
    taken = {value.name for value in (*graph.inputs, *graph.outputs)}
    for each in weights:
        constant = stored(each)
        weight = Value(constant.name, Fact(constant.type))
        if weight.name in taken:
            why = "an input or output of the model has that name"
            raise WrongUse(Problem(f"{weight.name!r} cannot learn", "--learn", why, "rename one in the file"))
        for node, position in list(constant.uses):
            graph.set_input(node, position, weight)
        graph.outputs = [weight if value is constant else value for value in graph.outputs]
        graph.inputs.append(weight)
        constant.name = f"{weight.name}_at_first"
        graph.initial[weight.name] = constant
        made.add(weight)
        found.append(weight if each is constant else each)
    _forget_elements(graph, made)
    return found


def begin_with(graph: Graph, weights: Mapping[str, np.ndarray]) -> None:
    """Lets these inputs that are kept begin with other elements than those of the file."""
    for name in weights.keys() & graph.initial.keys():
        before = graph.initial[name]
        if before is not None:
            graph.initial[name] = Value.of_constant(before.name, Constant.of(weights[name]))


def _forget_elements(graph: Graph, changing: set[Value]) -> None:
    """Elements that were known while these were constants: without this they would be folded, as those of the file."""
    for node in all_nodes(graph):
        if changing.isdisjoint(reads(node)):
            continue
        for value, fact in zip(node.outputs, node.op.infer(node.site()), strict=False):
            if value is not None and value.fact.value is not None and fact.value is None:
                value.fact = replace(value.fact, value=None, constant=None)
            if value is not None and value.fact.value is None:
                changing.add(value)


def learning_graph(graph: Graph, asked: Learning) -> Graph:
    """Makes a network one that computes loss and gradients, and keeps them, or what they make of the weights."""
    kept = keep_weights(graph, asked)
    weights, writer = kept.weights, _writer(graph)
    moved = measure(graph, writer, kept.normalized)
    loss = add_loss(graph, writer, asked.loss)
    _free_names(graph, writer, asked, weights)
    graph.outputs = []
    slopes = gradients(graph, loss, weights)
    _keep(graph, LOSS, SCALAR, loss)
    graph.outputs[-1] = loss
    for before in kept.averages:
        _state(graph, before.name, moved[before])
    writer = _writer(graph)  # which knows the names of gradients
    if asked.at_once:
        _move(graph, writer, asked, weights, slopes, {})
    else:
        _add_up(graph, writer, weights, slopes)
    graph.sort()
    return graph


def _free_names(graph: Graph, writer: Writer, asked: Learning, weights: Sequence[Value]) -> None:
    """What learning keeps has names of its own; values of the network that have them get others."""
    chosen = asked.optimizer
    kept = {LOSS, LEARNED, RATE, *chosen.counts, *(gradient_name(stored(weight).name) for weight in weights)}
    kept |= {STEPS} if _rounds(weights) else set()
    kept |= {statistic_name(weight, name) for weight in weights for name in chosen.statistics}
    for value in [value for part in graphs(graph) for value in part.values() if value.name in kept]:
        if value in graph.inputs:
            why = f"learning keeps something of its own as {value.name!r}"
            what = f"an input or weight is called {value.name!r}"
            raise WrongUse(Problem(what, graph.name, why, "rename it in the file"))
        value.name = writer.name(value.name)


def step_graph(learned: Graph, asked: Learning) -> Graph:
    """The step behind a network that `learning_graph` made."""
    types = {value.name: value.type for value in learned.inputs}
    graph = Graph(f"{learned.name}_step")
    names = [name for name in learned.initial if gradient_name(name) in types]
    inputs = {value.name: value for value in learned.inputs}
    constants = dict[Value, Value]()
    weights = [_again(graph, inputs[name], constants) for name in names]
    slopes = [_input(graph, gradient_name(stored(value).name), value.type) for value in weights]
    count = _input(graph, LEARNED, SCALAR)
    writer = _writer(graph)
    scale = writer.pointwise(div(1.0, place(0)), count)
    if asked.clip is not None:
        scale = _clipped(writer, slopes, scale, asked.clip)
    _move(graph, writer, asked, weights, slopes, {"scale": scale})
    _state(graph, LEARNED, writer.pointwise(mul(0.0, place(0)), count))
    graph.initial = {**{name: learned.initial[name] for name in names}, **{value.name: None for value in slopes}}
    graph.sort()
    return graph


def _again(graph: Graph, kept: Value, constants: dict[Value, Value]) -> Value:
    """A weight in another graph: an input, and behind it what makes floats of integers, with constants of that graph
    instead of these."""
    value = _input(graph, kept.name, kept.type)
    if kept.type.dtype is f32:
        return value
    maker = next(node for node, _ in kept.uses)
    known = {each: each.constant for each in maker.inputs[1:] if each is not None and each.constant is not None}
    for each, constant in known.items():
        constants.setdefault(each, Value.of_constant(each.name, constant))
    made = Value(maker.output.name, Fact(maker.output.type))
    graph.add(Node(maker.op, [value, *(constants[each] for each in known)], [made], maker.provenance))
    return made


def gradient_name(weight: str) -> str:
    return f"{weight}.gradient"


def statistic_name(weight: Value, name: str) -> str:
    return f"{stored(weight).name}.{name}"


def _rounds(weights: Sequence[Value]) -> bool:
    """Is any of them kept in integers?"""
    return any(stored(weight) is not weight for weight in weights)


def _add_up(graph: Graph, writer: Writer, weights: Sequence[Value], slopes: Sequence[Value]) -> None:
    """The first gradient behind a step takes the place of those before it."""
    count = _input(graph, LEARNED, SCALAR)
    is_later = apply("less", literal(0.0, f32), place(2))
    expr = add(apply("select", is_later, place(1), literal(0.0, f32)), place(0))
    for weight, slope in zip(weights, slopes, strict=True):
        before = _input(graph, gradient_name(stored(weight).name), weight.type)
        _state(graph, before.name, writer.pointwise(expr, slope, before, count))
    _state(graph, LEARNED, writer.pointwise(add(place(0), 1.0), count))


def _clipped(writer: Writer, slopes: Sequence[Value], scale: Value, most: float) -> Value:
    """What gradients are multiplied by so that their norm is at most `most`."""
    squares = [writer.op("ReduceSumSquare", value, keepdims=0) for value in slopes]
    total = writer.op("Sum", *squares) if len(squares) > 1 else squares[0]
    norm = add(mul(root(place(0)), place(1)), NORM_ADDED)
    return writer.pointwise(mul(place(1), apply("min", literal(1.0, f32), div(most, norm))), total, scale)


def _move(
    graph: Graph,
    writer: Writer,
    asked: Learning,
    weights: Sequence[Value],
    slopes: Sequence[Value],
    scale: Mapping[str, Value],
) -> None:
    """The optimizer's step: statistics first, then what they make of the weights."""
    chosen, rate, counts = asked.optimizer, _input(graph, RATE, SCALAR), dict[str, Value]()
    for name in chosen.counts:
        before = _input(graph, name, SCALAR)
        counts[name] = _state(graph, name, writer.pointwise(chosen.counted(name, place(0)), before))
    if _rounds(weights):
        counts[STEPS] = steps = _input(graph, STEPS, TensorType(u32, ()))
        _state(graph, STEPS, writer.pointwise(apply("add", operand(0, u32), literal(1, u32)), steps))
    for weight, slope in zip(weights, slopes, strict=True):
        names = {name: statistic_name(weight, name) for name in chosen.statistics}
        kept = {name: _input(graph, own, weight.type) for name, own in names.items()}
        ins = {"weight": stored(weight), "gradient": slope, **scale, **scheme(writer, weight)}
        places = _places({**ins, **kept})
        formulas = chosen.kept_after(as_float(places), _gradient(ins), places)
        new = {name: writer.pointwise(expr, *ins.values(), *kept.values()) for name, expr in formulas.items()}
        for name, value in new.items():
            _state(graph, names[name], value)
        after = {**ins, **new, **counts, "rate": rate}
        places = _places(after)
        moved = chosen.weight_after(places["rate"], as_float(places), _gradient(ins), places)
        shape = weight.type.static_shape
        _state(graph, stored(weight).name, writer.pointwise(as_kept(moved, places, shape), *after.values()))


def _gradient(ins: Mapping[str, Value]) -> Expr:
    return mul(place(1), place(2)) if "scale" in ins else place(1)


def _places(values: Mapping[str, Value]) -> dict[str, Expr]:
    return {name: operand(number, value.type.dtype) for number, (name, value) in enumerate(values.items())}


def _writer(graph: Graph) -> Writer:
    return Writer(graph, resolve)


def _input(graph: Graph, name: str, type: TensorType) -> Value:
    value = Value(name, Fact(type))
    graph.inputs.append(value)
    return value


def _keep(graph: Graph, name: str, type: TensorType, made: Value) -> None:
    _input(graph, name, type)
    _state(graph, name, made)


def _state(graph: Graph, name: str, made: Value) -> Value:
    graph.outputs.append(made)
    graph.states[name] = made.name
    return made
