"""Which weights learn within a budget of RAM: `--learn auto` (sparse update).

Each weight is worth the Fisher information that samples show of it: the mean of its squared gradients, which to first
order is how fast the loss falls where it learns. It takes memory: itself, its gradient, what the optimizer keeps, and,
if that is not recomputed, what all layers behind the first one that learns read. For each first layer those that are
worth most per byte are taken; the best of these sets is planned, and its arena decides whether sets may be larger.

Invariant: what is chosen fits the budget, and is said in words that `--learn` takes without samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isqrt
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..base.errors import BadFile, Problem, UnsupportedModel, WrongUse
from ..base.provenance import show
from ..base.records import dataclass
from ..base.stages import stage
from ..base.tensor import TensorType
from ..driver import Options
from ..driver.training import read_learner, smallest_within, train
from ..fitting import Point
from ..graph.ir import Fact, Graph, Node, Value
from ..passes.learn.batch_norm import BatchNorm
from ..passes.learn.integer_weights import LearnDtype
from ..passes.learn.losses import loss_output
from ..passes.learn.optimizers import Sgd
from ..passes.learn.phase_graphs import AUTO, Learning, Saved, learning_graph
from ..passes.learn.weights import layer_of, learning, scopes
from ..quantize.samples import read_samples
from ..toolchain.learning import slopes
from ..toolchain.model_report import Report
from ..toolchain.run import Model
from .building import build

TRIES = 7  # plans that are made to find what fits, twice
_READING = ("name", "signature", "trust", "prepend", "dims", "shapes")  # options of how a file is read


@dataclass(frozen=True)
class Candidate:
    """A weight that may learn."""

    name: str
    layer: str
    place: int  # of the layer
    type: TensorType
    worth: float  # its Fisher information
    bytes: int  # with its gradient and what the optimizer keeps


Chosen = tuple[Candidate, ...]
Fit = TypeVar("Fit")  # a plan within the budget
Plan = Callable[[Sequence[Candidate]], Fit | None]


@dataclass(frozen=True)
class Choice:
    """What learns, and why."""

    asked: Learning
    chosen: Sequence[Candidate]
    rest: Sequence[Candidate]
    batches: int
    ram: int
    budget: int

    def lines(self) -> Iterator[str]:
        whole = _worth((*self.chosen, *self.rest))
        part = _worth(self.chosen) / whole
        count = len(self.chosen) + len(self.rest)
        told = f"{len(self.chosen)} of {count} weights learn: {part:.1%} of the Fisher information of {self.batches}"
        yield f"auto     {told} batches, in {self.ram} of {self.budget} bytes"
        for each in self.chosen:
            yield f"  learns {each.worth / whole:6.1%}  {each.name} {each.type}, of {each.layer}"
        for each in self.rest:
            yield f"  frozen {each.worth / whole:6.1%}  {each.name} {each.type}, of {each.layer}"


@stage("choose what learns")
def choose(model: Path, asked: Learning, options: Options, data: Path | None, cc: str | None = None) -> Choice:
    """The weights that learn most from samples (inputs, and `target`) within the budget of RAM."""
    if data is None:
        why = "what learns is chosen by samples"
        raise WrongUse(Problem("--learn auto needs samples", "--learn auto", why, "add --data samples.npz"))
    if "ram" not in options.budget:
        why = "it chooses what learns within a budget, and there is none"
        raise WrongUse(Problem("--learn auto has no budget", "--learn auto", why, "add --budget ram=64K"))
    scope = _scope(model, asked, options)
    found, read, count = _candidates(model, replace(asked, learn=scope), options, data, cc)

    def plan(chosen: Sequence[Candidate]) -> Point | None:
        return smallest_within(model, _learning(asked, chosen), options)

    chosen, point = most_that_fit(found, read, plan)
    if point is None:
        least = min(found, key=lambda each: each.bytes)
        train(model, _learning(asked, [least]), options)  # which says what would fit
        raise WrongUse(Problem(f"{least.name} alone does not fit", "--learn auto", "", "allow more with --budget"))
    chosen, rest = _by_worth(chosen), _by_worth(each for each in found if each not in chosen)
    return Choice(_learning(asked, chosen), chosen, rest, count, point.ram, options.budget["ram"])


def refuse_samples(asked: Learning, data: Path | None) -> None:
    """Where what learns is said, nothing is chosen by samples."""
    if data is not None and asked.learn != AUTO:
        why = f"--learn {asked.learn} says what learns"
        raise WrongUse(Problem("--data is of no use here", "--data", why, "leave out --data, or say --learn auto"))


def _by_worth(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda each: -each.worth)


def _learning(asked: Learning, chosen: Sequence[Candidate]) -> Learning:
    return replace(asked, learn=",".join(each.name for each in chosen))


def _scope(model: Path, asked: Learning, options: Options) -> str:
    """Of all layers those behind what has no gradient."""
    trains = asked.batch_norm == BatchNorm.TRAIN
    graph = read_learner(model, options)
    known = scopes(graph, loss_output(graph, asked.loss), trains)
    for scope in known:
        try:
            learning_graph(read_learner(model, options), replace(asked, learn=scope))
            return scope
        except UnsupportedModel:
            if scope == known[-1]:
                raise
    return known[-1]


def _candidates(
    model: Path, asked: Learning, options: Options, data: Path, cc: str | None
) -> tuple[list[Candidate], list[int], int]:
    """Those in scope that samples show to be worth something; how many bytes each layer reads; how many batches."""
    plain = replace(asked, optimizer=Sgd(), at_once=False, clip=None, accumulate=1)
    plain = replace(plain, save=Saved.WEIGHTS, learn_dtype=LearnDtype.F32)
    host = Options(target="native", **{name: getattr(options, name) for name in _READING})
    built = build(train(model, plain, host), host.resolved_target(), cc)
    assert isinstance(built, Model)
    worth, count = _fisher(built, data)
    graph = read_learner(model, options)
    of = loss_output(graph, asked.loss)
    weights = learning(graph, asked.learn, of, asked.batch_norm == BatchNorm.TRAIN)
    copies = 1 + (not asked.at_once) + len(asked.optimizer.statistics)
    nodes = {layer_of(weight) for weight in weights}
    places = {node: place for place, node in enumerate(node for node in graph.nodes if node in nodes)}
    found = []
    for weight in weights:
        if worth.get(weight.name, 0.0) > 0 and "," not in weight.name:  # which parts names
            node = layer_of(weight)
            said, nbytes = show(node.provenance) or node.output.name, copies * weight.type.max_bytes
            found.append(Candidate(weight.name, said, places[node], weight.type, worth[weight.name], nbytes))
    if not found:
        why = "no sample has a gradient that is not 0 or infinite"
        raise BadFile(
            Problem("no sample has a gradient to learn by", str(data), why, "give inputs and targets of what it learns")
        )
    return found, [_read_by(node) for node in places], count


def _fisher(model: Model, data: Path) -> tuple[Mapping[str, float], int]:
    """The means of squared gradients, of all elements of a weight together; and of how many batches."""
    feeds = read_samples(data, taking(model.report)).feeds
    total: dict[str, float] = {}
    for each in slopes(model, feeds):
        for name, slope in each.items():
            total[name] = total.get(name, 0.0) + float(np.sum(np.square(slope, dtype=np.float64)))
    return {name: value / len(feeds) for name, value in total.items() if np.isfinite(value)}, len(feeds)


def taking(report: Report) -> Graph:
    """What reading samples has to know: the inputs of a program."""
    values = [Value(t.name, Fact(TensorType(t.dtype, t.static_shape))) for t in report.inputs]
    return Graph(report.prefix, values, values)


def _read_by(layer: Node) -> int:
    """Bytes of what it computes with besides constants."""
    return sum(value.type.max_bytes for value in layer.present_inputs if value.constant is None)


def most_that_fit(
    found: Sequence[Candidate], read: Sequence[int], plan: Plan[Fit]
) -> tuple[list[Candidate], Fit | None]:
    """The set that is worth most of those whose plans fit. `read`: bytes that layers read, in their order. Whether a
    planner keeps these or computes them again is up to it, so sets are made as if it did either."""
    plans = dict[Chosen, Fit | None]()
    for kept in (read, [0] * len(read)):
        _try_sets(found, kept, plan, plans, len(plans) + TRIES)
    best = max((chosen for chosen, point in plans.items() if point is not None), key=_worth, default=())
    return list(best), plans.get(best)


def _try_sets(
    found: Sequence[Candidate], read: Sequence[int], plan: Plan[Fit], plans: dict[Chosen, Fit | None], enough: int
) -> None:
    """Adds plans of sets, of which each is larger than the last one that fits and smaller than the last that does not,
    until there are `enough`. What fits may be a small part of all: halves are those of the logarithm."""
    least, most = 0, 1 + sum(each.bytes for each in found) + sum(read)
    limit = most - 1
    while most - least > 1 and len(plans) < enough:
        chosen = tuple(_worth_most(found, read, limit))
        if chosen and chosen not in plans:
            plans[chosen] = plan(chosen)
        if not chosen or plans[chosen] is not None:
            least = limit
        else:
            most = limit
        limit = min(max(isqrt(max(1, least) * most), least + 1), most - 1)


def _worth(chosen: Iterable[Candidate]) -> float:
    return sum(each.worth for each in chosen)


def _worth_most(found: Sequence[Candidate], read: Sequence[int], limit: int) -> list[Candidate]:
    """What is worth most where so many bytes may be kept: for each first layer the best per byte. That layer keeps what
    it reads only for a matrix; those behind it do in any case, as the gradient goes through them."""
    sets = list[list[Candidate]]()
    for first in range(len(read)):
        left, chosen, kept = limit - sum(read[first + 1 :]), list[Candidate](), False
        for each in sorted(found, key=lambda each: each.bytes / each.worth):
            needs = not kept and each.place == first and each.type.rank > 1
            nbytes = each.bytes + (read[first] if needs else 0)
            if each.place >= first and nbytes <= left:
                left, kept = left - nbytes, kept or needs
                chosen.append(each)
        sets.append(chosen)
    return max(sets, key=_worth, default=[])
