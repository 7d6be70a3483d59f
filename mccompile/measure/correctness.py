"""Does the compiled model compute what its file says? Builds it for this machine, runs it, and compares with the
reference.

Where a result differs more than the reference does from itself (check/spread.py), the first tensor of the graph that
differs is looked for: all inner tensors are made outputs, and where that makes the difference go away (they cannot be
fused then), one at a time by bisection.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.constant import Constant
from ..base.dims import upper
from ..base.dtypes import DTYPES
from ..base.errors import CheckFailed, MccError, Problem, WrongUse, raise_all
from ..base.structures import Interface
from ..check import rounding
from ..check.compare import ATOL, OF_LARGEST, RTOL, Comparison, compare_values
from ..check.inputs import DataSet, random_sets, stored_sets
from ..check.oracle import Oracle
from ..check.spread import Spread, spread
from ..driver import Options, channels_last, compile, compile_graph
from ..emit.package import Package
from ..frontend.load import load
from ..frontend.original import Original
from ..graph.ir import Graph
from ..passes.graph.io_forms import Handover, give_forms
from ..targets.api import Target
from ..toolchain.build import DEFAULT_FLAGS
from ..toolchain.emulate import Emulated
from ..toolchain.lists import as_lists
from ..toolchain.run import POISON, Model

RUNS_TO_TELL = 8  # sets of inputs that tell a wrong weight from rounding that went the other way


@dataclass(frozen=True)
class Tolerance:
    rtol: float = RTOL
    atol: float = ATOL
    of_largest: float = OF_LARGEST

    def compare(self, name: str, got: Any, want: Any) -> Comparison:
        return compare_values(name, got, want, self.rtol, self.atol, self.of_largest)

    def suiting(self, graph: Graph, target: Target) -> Tolerance:
        """Narrow floats are rounded after every operation here, and wherever it suits it by the reference."""
        most = rounding.of_numbers(graph, bool(target.option("half_lanes", 0)))
        return replace(self, of_largest=max(self.of_largest, most))


@dataclass(frozen=True)
class Run:
    """One set of inputs."""

    name: str
    reference: str  # where the wanted outputs came from
    outputs: tuple[Comparison, ...]

    @property
    def ok(self) -> bool:
        return all(output.ok for output in self.outputs)


@dataclass(frozen=True)
class Kept:
    """What a set of inputs gave, here and by the reference."""

    inputs: Mapping[str, Any]
    got: Mapping[str, Any]
    wanted: Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """The first tensor that differs, and the nodes that make it."""

    tensor: str
    nodes: tuple[str, ...]
    comparison: Comparison


@dataclass(frozen=True)
class Effect:
    """What storing weights narrow changes in an output."""

    output: str
    share: float  # of the largest element
    ok: bool


@dataclass(frozen=True)
class Verdict:
    """Where weights are stored narrow, the runs are those of the model with weights as they are."""

    package: Package
    runs: tuple[Run, ...]
    first: Difference | None = None
    effects: tuple[Effect, ...] = ()
    spreads: tuple[Spread, ...] = ()  # of outputs that differ

    @property
    def ok(self) -> bool:
        """Is every output within tolerance, or within what the reference differs from itself?"""
        right = all(output.ok or self.covers(output.name) for run in self.runs for output in run.outputs)
        return right and all(effect.ok for effect in self.effects)

    def covers(self, output: str) -> bool:
        return any(spread.covers for spread in self.spreads if spread.output == output)

    def worst(self) -> tuple[Comparison, ...]:
        """Per output the largest figures of all runs."""
        return tuple(
            Comparison(
                same[0].name,
                max(c.max_abs for c in same),
                max(c.max_rel for c in same),
                sum(c.mismatches for c in same),
                next((c.why for c in same if c.why), ""),
                max(c.excess for c in same),
            )
            for same in zip(*(run.outputs for run in self.runs), strict=True)
        )


def check(
    path: Path,
    options: Options,
    data: Path | None = None,
    seed: int = 0,
    runs: int = 3,
    tolerance: Tolerance = Tolerance(),
    cc: str | None = None,
) -> Verdict:
    """Compares a model with stored outputs where `data` has them, else with the reference."""
    if options.quantize is not None:
        fix = "check the file that `mccompile quantize` writes"
        raise WrongUse(Problem("integers are not what the float model gives", "--quantize", "", fix))
    if options.weights_dtype:
        wide = check(path, replace(options, weights_dtype=""), data, seed, runs, tolerance, cc)
        return replace(wide, effects=effects_of_narrow_weights(path, options, data, seed, runs, cc))
    graph = load(path, options.dims, options.shapes, options.bounds)
    tolerance = tolerance.suiting(graph, options.resolved_target())
    sets = input_sets(graph, data, seed, runs)
    if options.state:
        sets = list(steps(graph, sets, options.state, Oracle(path), not options.resolved_target().run))
    lists = graph.interface or Interface((), ())  # what is not only tensors
    made = [name for name, _ in lists.outputs] or [value.name for value in graph.outputs]
    names = [name for name in made if name not in options.state]
    orders = channels_last(graph, options)
    forms = give_forms(load(path, options.dims, options.shapes, options.bounds), options.inputs, options.outputs)
    package = compile_graph(graph, options, options.name or path.stem)
    model = build(package, options.resolved_target(), cc)
    oracle: Oracle | None = None
    done: list[Run] = []

    def handed(results: dict[str, Any]) -> dict[str, Any]:
        return results | {name: forms.handed(name, results[name]) for name in forms.outputs if name in results}

    def results_of(given: Mapping[str, np.ndarray]) -> dict[str, Any]:
        inputs = _turned({n: a for n, a in given.items() if n not in options.state.values()}, orders)
        if options.state and isinstance(model, Model):
            results = model.run(inputs, poison=None if done else POISON)
        else:
            results = run_twice(model, inputs)
        return as_lists(lists.outputs, _turned(results, orders, back=True))

    kept: list[Kept] = []
    for data_set in sets:
        data_set, given = _handed_over(data_set, forms)
        if data_set.outputs is not None:
            wanted, reference = dict(zip(made, data_set.outputs, strict=False)), "stored outputs"
        else:
            oracle = oracle or Oracle(path)
            wanted, reference = oracle.run(as_lists(lists.inputs, data_set.inputs)), oracle.name
        kept.append(Kept(as_lists(lists.inputs, data_set.inputs), results_of(given), handed(wanted)))
        compared = (
            tolerance.compare(name, kept[-1].got[name], kept[-1].wanted[name]) for name in names if name in wanted
        )
        done.append(Run(data_set.name, reference, tuple(compared)))
    wrong = next((data_set for run, data_set in zip(done, sets, strict=True) if not run.ok), None)
    verdict = Verdict(package, tuple(done))
    if wrong is None:
        return verdict
    oracle = oracle or Oracle(path)
    if data is None and not options.state and isinstance(model, Model):
        for data_set in list(random_sets(load(path, options.dims, options.shapes, options.bounds), seed, RUNS_TO_TELL))[
            runs:
        ]:
            data_set, given = _handed_over(data_set, forms)
            ins = as_lists(lists.inputs, data_set.inputs)
            kept.append(Kept(ins, results_of(given), handed(oracle.run(ins))))
    verdict = replace(verdict, spreads=spreads(verdict, kept, oracle.others(), handed, tolerance))
    if not verdict.ok:
        with suppress(MccError):  # the difference is reported also where its origin cannot be found
            verdict = replace(verdict, first=first_difference(path, options, wrong, tolerance, cc))
    return verdict


def spreads(
    verdict: Verdict,
    kept: Sequence[Kept],
    others: Iterable[Callable[[Mapping[str, Any]], dict[str, Any] | None]],
    handed: Callable[[dict[str, Any]], dict[str, Any]],
    tolerance: Tolerance,
) -> tuple[Spread, ...]:
    """For each output that differs: how far the reference, first of `others`, is from itself with the same inputs."""
    wrong = [output.name for output in verdict.worst() if not output.ok]
    apart: dict[str, list[list[Comparison]]] = {name: [] for name in wrong}
    plain: list[dict[str, Any]] = []
    for other in others:
        results = [handed(made) for each in kept if (made := other(each.inputs))]
        if len(results) < len(kept):  # it cannot
            continue
        for name in wrong if plain else ():
            pairs = [(_typed_as(a[name], b[name]), a[name]) for a, b in zip(plain, results, strict=True)]
            apart[name].append([tolerance.compare(name, *pair) for pair in pairs])
        plain = plain or results
    found = (
        spread(name, [tolerance.compare(name, each.got[name], each.wanted[name]) for each in kept], apart[name])
        for name in wrong
    )
    return tuple(each for each in found if each is not None)


def _typed_as(wanted: Any, made: Any) -> Any:
    """What was computed in doubles as the floats that are asked for."""
    return made.astype(wanted.dtype) if isinstance(made, np.ndarray) and made.dtype == np.float64 else made


def effects_of_narrow_weights(
    path: Path, options: Options, data: Path | None, seed: int, runs: int, cc: str | None
) -> tuple[Effect, ...]:
    """Per output how far it is from that of the same model with weights as they are."""
    graph = load(path, options.dims, options.shapes, options.bounds)
    sets, orders = input_sets(graph, data, seed, runs), channels_last(graph, options)
    forms = give_forms(load(path, options.dims, options.shapes, options.bounds), options.inputs, options.outputs)
    results: list[list[dict[str, np.ndarray]]] = []
    for tried in (replace(options, weights_dtype=""), options):
        graph = load(path, options.dims, options.shapes, options.bounds)
        model = build(compile_graph(graph, tried, options.name or path.stem), options.resolved_target(), cc)
        given = (_turned(_handed_over(data_set, forms)[1], orders) for data_set in sets)
        results.append([run_twice(model, inputs) for inputs in given])
    graph = load(path, options.dims, options.shapes, options.bounds)
    most = rounding.of_weights(graph, DTYPES[options.weights_dtype])
    found = []
    for name in results[0][0]:
        pairs = [(wide[name], narrow[name]) for wide, narrow in zip(*results, strict=True) if wide[name].size]
        if not pairs or pairs[0][0].dtype.kind != "f":
            continue
        share = max(float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-30)) for a, b in pairs)
        found.append(Effect(name, share, share <= most))
    return tuple(found)


def steps(
    graph: Graph, sets: Sequence[DataSet], states: Mapping[str, str], oracle: Oracle, lasting: bool
) -> Iterator[DataSet]:
    """Inputs one after the other, with the state that the reference has got to; without `lasting` none lasts."""
    types = {value.name: value.type for value in graph.inputs if value.name in states.values()}
    start = {n: np.zeros([upper(dim) for dim in t.shape], t.dtype.numpy) for n, t in types.items()}
    now = start
    for data_set in sets:
        inputs = data_set.inputs | now
        yield DataSet(data_set.name, inputs)
        made = oracle.run(inputs)
        now = {before: made[after] for after, before in states.items()} if lasting else start


def _handed_over(data_set: DataSet, forms: Handover) -> tuple[DataSet, Mapping[str, np.ndarray]]:
    """What a program hands over, and the inputs that the model then has. Those of the data set may lie between the
    numbers that the type of the former has; what is stored of outputs is not that of the model's inputs then."""
    given = {name: forms.given(name, array) for name, array in data_set.inputs.items() if name in forms.inputs}
    if not given:
        return data_set, data_set.inputs
    seen = {name: forms.seen(name, array) for name, array in given.items()}
    return DataSet(data_set.name, data_set.inputs | seen), data_set.inputs | given


def _turned(
    arrays: Mapping[str, np.ndarray], orders: Mapping[str, tuple[int, ...]], back: bool = False
) -> dict[str, np.ndarray]:
    """Arrays in the order of axes that a compiled model has, or back in that of ONNX."""
    found = dict(arrays)
    for name in arrays.keys() & orders.keys():
        order = np.argsort(orders[name]).tolist() if back else orders[name]
        found[name] = np.ascontiguousarray(arrays[name].transpose(order))
    return found


def input_sets(graph: Graph, data: Path | None, seed: int, runs: int) -> list[DataSet]:
    """What to run a model with. Before the graph is compiled, which changes it."""
    if data is not None:
        return stored_sets(data, [value.name for value in graph.inputs], graph)
    return list(random_sets(graph, seed, runs))


def build(package: Package, target: Target, cc: str | None = None) -> Model | Emulated:
    """The package as it runs on its target: emulated if the target names an emulator, else on this machine."""
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        folder = Path(scratch, "out")
        package.write(folder)
        if target.run:
            return Emulated.build(folder, target, cc, ("-Os",) if target.prefer == "flash" else ())
        portable = all(function.kernel.isa == "c" for function in package.plan.functions)
        return Model.build(folder, cc, DEFAULT_FLAGS if portable else target.cflags)


def run_twice(model: Model | Emulated, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of a run on poisoned memory, which a second run on the memory that the first one left must give again."""
    if isinstance(model, Emulated):
        first, second = model.run_twice(inputs)
    else:
        first, second = model.run(inputs, poison=POISON), model.run(inputs)
    changed = [name for name in first if Constant.of(first[name]).digest != Constant.of(second[name]).digest]
    fix = "please report it: a run depends on what lay in the memory before"
    raise_all(
        CheckFailed, (Problem(f"a second run gives another result for {name!r}", "", "", fix) for name in changed)
    )
    return first


def first_difference(
    path: Path, options: Options, data_set: DataSet, tolerance: Tolerance = Tolerance(), cc: str | None = None
) -> Difference | None:
    """The first inner tensor, in the order of the graph, that is not what the reference says."""
    graph = load(path, options.dims, options.shapes, options.bounds)
    values = {v.name: v for v in graph.values() if v.producer is not None}
    names = [name for name in Original(path).inner if name in values]
    lists = graph.interface.inputs if graph.interface else ()
    wanted = Oracle(path, names).run(as_lists(lists, data_set.inputs))
    names = [name for name in names if isinstance(wanted[name], np.ndarray)]

    def compare_observed(observed: Sequence[str]) -> list[Comparison]:
        plain = replace(options, io_layout="onnx", state={}, inputs={}, outputs={})
        package = compile(path, replace(plain, observe=tuple(observed)))
        got = build(package, options.resolved_target(), cc).run(data_set.inputs)
        return [tolerance.compare(name, got[name], wanted[name]) for name in observed]

    found = next((c for c in compare_observed(names) if not c.ok), None)
    low, high = (0, len(names)) if found is None else (0, 0)
    while low < high:
        middle = (low + high) // 2
        comparison = compare_observed([names[middle]])[0]
        if comparison.ok:
            low = middle + 1
        else:
            found, high = comparison, middle
    if found is None:
        return None
    producer = values[found.name].producer
    return Difference(found.name, producer.provenance if producer else (), found)
