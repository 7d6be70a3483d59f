"""Does the compiled model compute what its file says? Builds it for its target, runs it, and compares with the
reference.

Floats that exceed the tolerance are compared with the model in doubles. Where a result still differs more than the
reference does from itself (check/spread.py), the first tensor of the graph that differs is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import CheckFailed, MccError, Problem, WrongUse
from ..base.stages import stage
from ..base.streaming import Stream, Streamed
from ..base.structures import Interface
from ..check import rounding
from ..check.compare import Comparison
from ..check.inputs import DataSet, random_sets
from ..check.labels import labels, unexplained
from ..check.litert import speaks_for
from ..check.oracle import EVALUATOR, FURTHER, JUDGE, Oracle, has_runtime
from ..check.remarks import remark
from ..check.spread import Spread, spread
from ..check.witnesses import MOST_OF_JUDGE, RoundingEffect, closest, shaken, typed_as, witnesses
from ..driver import Options, compile_graph, settled
from ..frontend.load import STANDARD_INPUT, load
from ..frontend.original import Original
from ..graph.ir import Graph
from ..judge.rules import NoWitness
from ..passes.api import BlockActivations, CacheDtype, WeightsDtype
from ..passes.memory.state import declare_states
from ..toolchain.lists import as_lists
from ..toolchain.run import Model
from ..toolchain.serial_line import Port
from ..toolchain.served import Served
from .building import RUNS, build, input_sets, on_board, sets_asked_for
from .fewer_bits import effects_of_fewer_bits, rounds_activations
from .first_difference import first_difference
from .growing import STEPS, Growing
from .handing import handed_over, handing_over, turned
from .runs import Runs, run_twice
from .streaming import Reference, as_runs, pushes_of
from .verdict import DEFAULT, REPORT, ResultPair, Run, Tolerance, Verdict
from .windows import sliding

__all__ = ["Tolerance", "Verdict", "build", "check", "input_sets", "run_twice"]

RUNS_TO_TELL = 8  # sets of inputs that tell a wrong weight from rounding that went the other way


@stage("check")
def check(
    path: Path,
    options: Options,
    data: Path | None = None,
    seed: int = 0,
    runs: int = RUNS,
    tolerance: Tolerance = DEFAULT,
    cc: str | None = None,
    port: Port | None = None,
) -> Verdict:
    """Compares a model with stored outputs where `data` has them, else with the reference."""
    options = replace(options, seeded=True)
    if runs < 1:
        raise WrongUse(Problem(f"{runs} runs are too few", "--runs", "one is the least", "did you mean --runs 1?"))
    if path == STANDARD_INPUT:
        fix = "save the model as a file, and check that"
        raise WrongUse(Problem("the reference reads the model from a file", "-", "standard input is none", fix))
    if options.quantize is not None:
        fix = "leave out --quantize, and check the file that `mccompile quantize` writes"
        why = "int8 results differ from float ones by design"
        raise WrongUse(Problem("--quantize does not go with check", "--quantize", why, fix))
    found = _Check(path, settled(path, options), tolerance, cc, port)
    rounds = rounds_activations(found.package.plan)
    if not (options.weights_dtype or options.cache_dtype or rounds):
        with closing(found):
            return found.verdict(data, seed, runs)
    if port is not None:
        fix = "leave out --serial: emulation runs the model with all bits as well"
        why = "weights, states or activations of fewer bits are checked with two builds, and a board runs one"
        raise WrongUse(Problem("--serial does not go with fewer bits", "--serial", why, fix))
    wide = replace(options, weights_dtype=WeightsDtype.OWN, block_activations=BlockActivations.FLOAT)
    wide = replace(wide, cache_dtype=CacheDtype.OWN)
    verdict = check(path, wide, data, seed, runs, tolerance, cc)
    whole = replace(options, stream=Stream())  # what fewer bits do to results does not depend on that
    return replace(verdict, effects=effects_of_fewer_bits(path, whole, data, seed, runs, cc, rounds))


class _Check:
    """A model that is built and run."""

    def __init__(
        self, path: Path, options: Options, tolerance: Tolerance, cc: str | None, port: Port | None = None
    ) -> None:
        self.path, self.options, self.cc = path, options, cc
        graph = self._load()
        self.options = options = replace(options, state={**graph.states_of_file, **options.state})
        self.tolerance = tolerance.suiting(graph, options.resolved_target())
        self.labels = labels(graph)
        self.lists = graph.interface or Interface((), ())  # what is not only tensors
        self.made = [name for name, _ in self.lists.outputs] or [value.name for value in graph.outputs]
        original = Original(path, options.reading)
        if speaks_for(original):
            self.tolerance = self.tolerance.of_litert(original.is_quantized)
        in_file, self.lengths = set(original.inner), original.lengths
        observed = [name for name in dict.fromkeys(options.observe) if name not in self.made]
        self.observed = [name for name in observed if name in in_file]
        self.remarks = {name: "not compared: the file has no such tensor" for name in observed if name not in in_file}
        self.names = [*self.made, *self.observed]
        self.forms, self.orders = handing_over(self._load(), options)
        self.growing = Growing(self._load(), options.state)
        self.package = compile_graph(graph, options, options.name or path.stem)
        self.measured = graph.lengths
        self.model = on_board(self.package, port) if port else build(self.package, options.resolved_target(), cc)
        self.runs = Runs(self.model)
        self.streamed = self.package.plan.streamed

    def close(self) -> None:
        if isinstance(self.model, Served):
            self.model.close()

    def _load(self) -> Graph:
        return load(self.path, self.options.dims, self.options.shapes, self.options.bounds, self.options.reading)

    @cached_property
    def oracle(self) -> Oracle:
        return self.reference.oracle if self.streamed else Oracle(self.path, self.observed, self.options.reading)

    @cached_property
    def reference(self) -> Reference:
        """Of a network that takes the newest frames."""
        assert self.streamed is not None
        asked, reading = self.options.stream, self.options.reading
        graph = self._load()
        declare_states(graph, self.options.state)
        return Reference(self.path, graph, asked, self.streamed, self.observed, reading)

    def verdict(self, data: Path | None, seed: int, runs: int) -> Verdict:
        if self.streamed is not None:
            return self._pushed(self.streamed, data, seed, runs)
        state = self.options.state
        sets = random_sets(self._load(), seed, runs, STEPS if state else 1, self.lengths)
        if self.growing.states:
            sets = self.growing.sets(self._load(), seed, runs, STEPS)
        done: list[Run] = []
        kept: list[ResultPair] = []
        tried: list[DataSet] = []
        refused: list[CheckFailed] = []
        for data_set in sets if data is None else sets_asked_for(self._load(), data, seed, runs):
            if state:
                data_set = self._continued(data_set, kept)
            data_set, given = handed_over(data_set, self.forms)
            try:
                wanted, reference = self._wanted(data_set)
            except CheckFailed as failed:
                if data is not None:
                    raise
                refused.append(failed)
                done.append(Run(data_set.name, "", (), skipped=failed.problems[0].why))
                continue
            tried.append(data_set)
            kept.append(ResultPair(self._as_lists(data_set), self._results(given), self._handed(wanted)))
            done.append(self._compared(data_set, reference, kept[-1]))
        if not tried:
            raise refused[0]
        remarks = {name: remark([each.wanted.get(name) for each in kept]) for name in self.names}
        remarks = {name: text for name, text in remarks.items() if text} | self.remarks
        only_tensors = not (self.lists.inputs or self.lists.outputs)
        verdict = Verdict(
            self.package,
            tuple(done),
            remarks=remarks,
            made=tuple(self.made),
            ticks=tuple(self.model.ticks) if isinstance(self.model, Served) else (),
            kept=tuple(kept) if only_tensors else (),
            witnesses=tuple(
                witnesses(self.oracle, kept[0].inputs, kept[0].got, self.package.macs, self._against, self._handed)
            ),
        )
        made = [run for run in done if not run.skipped]
        wrong = next((data_set for run, data_set in zip(made, tried, strict=True) if not run.ok), None)
        return verdict if wrong is None else self._judged(verdict, kept, wrong, data is None, (seed, runs))

    def _pushed(self, streamed: Streamed, data: Path | None, seed: int, runs: int) -> Verdict:
        """Push after push, beside the window that ends with its newest frame."""
        done: list[tuple[int, Run]] = []
        kept: list[ResultPair] = []
        pushes = pushes_of(self.model, streamed, runs)
        for push in sliding(self._load(), streamed, seed, pushes, self.reference.frames, data):
            got = self._results(handed_over(DataSet("", push.frames | self.reference.own), self.forms)[1])
            if push.number < streamed.warm_up and not streamed.carried:
                continue
            window, _ = handed_over(DataSet(f"push {push.number}", push.window | self.reference.state), self.forms)
            wanted = self.reference.run(window.inputs, push.number)
            if push.number < streamed.warm_up:
                continue
            kept.append(ResultPair(window.inputs, got, self._handed(wanted)))
            done.append((push.number, self._compared(window, self.oracle.name, kept[-1])))
        if not done:
            why = f"the first result comes with push {streamed.warm_up}"
            raise WrongUse(Problem("there are too few frames to check with", str(data), why, "give more of them"))
        verdict = Verdict(self.package, tuple(as_runs(done, streamed.warm_up)), made=tuple(self.made))
        wrong = next((each for each, (_, run) in zip(kept, done, strict=True) if not run.ok), None)
        if wrong is None:
            return verdict
        return self._judged(verdict, kept, DataSet("", dict(wrong.inputs)), False, (seed, runs))

    def _judged(
        self, verdict: Verdict, kept: list[ResultPair], wrong: DataSet, is_random: bool, more: tuple[int, int]
    ) -> Verdict:
        """With what tells rounding from defects."""
        if is_random and not self.options.state and isinstance(self.model, Model):
            seed, runs = more
            for data_set in list(random_sets(self._load(), seed, RUNS_TO_TELL, 1, self.lengths))[runs:]:
                data_set, given = handed_over(data_set, self.forms)
                with suppress(CheckFailed):
                    wanted = self.oracle.run(self._as_lists(data_set))
                    kept.append(ResultPair(self._as_lists(data_set), self._results(given), self._handed(wanted)))
        further = self.oracle.nudged(FURTHER)
        found = spreads(verdict, kept, self.oracle.others(), self._handed, self.tolerance, self.labels, further)
        verdict = replace(verdict, spreads=found)
        if not verdict.ok:
            verdict = replace(verdict, shaken=tuple(self._shaken(verdict, kept)))
        if verdict.ok:
            return verdict
        verdict = replace(verdict, fix=self._fix(verdict, kept) or self._elsewhere or verdict.fix)
        with suppress(MccError):  # the difference is reported also where its origin cannot be found
            on_board = self.model if isinstance(self.model, Served) else None
            first = first_difference(self.path, self.options, wrong, self.tolerance, self.cc, on_board)
            verdict = replace(verdict, first=first)
        return verdict

    @property
    def _elsewhere(self) -> str:
        board = isinstance(self.model, Served)
        return "`mccompile compare OUT --serial PORT` tells whether the board alone is wrong" if board else ""

    def _against(self, name: str, got: Any, ways: Sequence[Any]) -> Comparison:
        return self.tolerance.compare(name, got, closest(got, ways))

    def _shaken(self, verdict: Verdict, kept: Sequence[ResultPair]) -> Iterator[RoundingEffect]:
        """Of outputs that nothing explains yet, what rounding makes of them by our judge."""
        if self.package.macs > MOST_OF_JUDGE or any("stored" in run.reference for run in verdict.runs):
            return
        for each in verdict.worst():
            if each.ok or each.why or verdict.covers(each.name):
                continue
            sets = [(one.inputs, one.got[each.name]) for one in kept]
            found = shaken(self.oracle, each.name, sets, self._handed, self.tolerance.compare)
            if found is None:
                continue
            if self.oracle.name == "LiteRT":  # the judge has the file as we read it: LiteRT has to be near as well
                near = replace(self.tolerance, of_largest=rounding.of_hybrid(self._load()))
                if not all(near.compare(each.name, one.got[each.name], one.wanted[each.name]).ok for one in kept):
                    continue
                found = replace(found, hybrid=near.of_largest)
            yield found

    def _fix(self, verdict: Verdict, kept: Sequence[ResultPair]) -> str:
        """What to do where it may not be the compiler that is wrong."""
        if self.options.kernels:
            return "leave out --kernels: if it is right then, one of these is wrong"
        if self.options.functions:
            names = ", ".join(own.name for own in self.options.functions)
            return f"leave out --external: if it is right then, {names} computes something else"
        tight = self.tolerance
        usual = replace(tight, rtol=max(tight.rtol, DEFAULT.rtol), atol=max(tight.atol, DEFAULT.atol))
        if usual != tight and all(
            usual.compare(name, each.got[name], each.wanted[name]).ok
            for each in kept
            for name in self.names
            if name in each.wanted
        ):
            return "leave out --rtol and --atol: it is right within their defaults"
        if not has_runtime():
            return f"install onnxruntime and check again: ONNX's evaluator may be wrong; else {REPORT}"
        if not any("stored" in run.reference for run in verdict.runs):
            return ""
        wrong = [output.name for output in verdict.worst() if not output.ok and not verdict.covers(output.name)]
        with suppress(CheckFailed):
            for each in kept:
                told = self._handed(self.oracle.run(each.inputs))
                if any(not self.tolerance.compare(n, told[n], each.got[n]).ok for n in wrong if n in told):
                    return ""
            return f"store the outputs again: {self.oracle.name} gives what the compiled model gives"
        return ""

    def _continued(self, data_set: DataSet, kept: Sequence[ResultPair]) -> DataSet:
        """Inputs with the state that the reference has got to; other sizes than before reset it."""
        if kept and not self.runs.reset_by(self._handed_in(handed_over(data_set, self.forms)[1])):
            now = {before: kept[-1].wanted[name] for name, before in self.options.state.items()}
        else:
            now = {name: np.zeros_like(data_set.inputs[name]) for name in self.options.state.values()}
            now |= self.growing.empty(data_set.inputs)
        return DataSet(data_set.name, data_set.inputs | now)

    def _wanted(self, data_set: DataSet) -> tuple[dict[str, Any], str]:
        stored = {}
        if data_set.outputs is not None and not self.options.state:
            stored = dict(zip(self.made, data_set.outputs, strict=False))
            if not self.observed:
                return stored, "stored outputs"
        return self.oracle.run(self._as_lists(data_set)) | stored, self.oracle.name

    def _as_lists(self, data_set: DataSet) -> dict[str, Any]:
        return as_lists(self.lists.inputs, data_set.inputs)

    def _handed(self, results: dict[str, Any]) -> dict[str, Any]:
        forms = self.forms
        if self.streamed is not None:
            results = self.reference.given(results)
        return results | {name: forms.handed(name, results[name]) for name in forms.outputs if name in results}

    def _handed_in(self, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the compiled model is given."""
        states = self.options.state.values()
        inputs = turned({name: array for name, array in given.items() if name not in states}, self.orders)
        return self.growing.with_room(inputs, self.model.report)

    def _results(self, given: Mapping[str, np.ndarray]) -> dict[str, Any]:
        results = self.runs(self._handed_in(given))
        if self.options.state:
            states = self.options.state.values()
            shapes = self.growing.rooms({name: given[name].shape for name in states}, self.model.report)
            left = self.growing.used(self.runs.states(shapes), self.measured)
            results |= {name: left[before] for name, before in self.options.state.items()}
        return as_lists(self.lists.outputs, turned(results, self.orders, back=True))

    def _compared(self, data_set: DataSet, reference: str, kept: ResultPair) -> Run:
        names = [name for name in self.names if name in kept.wanted]
        found = {name: self.tolerance.compare(name, kept.got[name], kept.wanted[name]) for name in names}
        decided: frozenset[str] = frozenset()
        decider = ""
        backed = self._backed(kept, found) if data_set.outputs is None else {}
        left_open = self._left_open(kept, found) if data_set.outputs is None else frozenset[str]()
        if data_set.outputs is None and any(not each.ok and not each.why for each in found.values()):
            doubles = self._handed(self.oracle.doubles(kept.inputs) or {})
            decider = self.oracle.decider
            for name, each in list(found.items()):
                if each.ok or each.why or name not in doubles:
                    continue
                nearer = self.tolerance.arbitrate(name, kept.got[name], kept.wanted[name], doubles[name])
                if nearer.ok:
                    found[name], decided = nearer, decided | {name}
        return Run(data_set.name, reference, tuple(found.values()), decided, decider, backed, left_open)

    def _left_open(self, kept: ResultPair, found: dict[str, Comparison]) -> frozenset[str]:
        """Outputs that are what the standard allows, where it leaves more than one result open; their comparisons are
        put into `found`."""
        odd = [name for name, each in found.items() if not each.ok and not each.why]
        ways: list[dict[str, Any]] = []
        if odd and self.package.macs <= MOST_OF_JUDGE:
            with suppress(NoWitness):
                ways = [self._handed(way) for way in self.oracle.allowed(kept.inputs)]
        right = frozenset[str]()
        for name in odd if len(ways) > 1 else ():
            got = kept.got[name]
            nearest = self.tolerance.compare(name, got, closest(got, [typed_as(got, way[name]) for way in ways]))
            if nearest.ok:
                found[name], right = nearest, right | {name}
        return right

    def _backed(self, kept: ResultPair, found: dict[str, Comparison]) -> dict[str, str]:
        """Outputs of another shape, type or text than the reference gives, which are what ONNX's own evaluator or our
        judge gives, with who does; their comparisons are put into `found`."""
        backed = dict[str, str]()
        for name, said in self._of_witnesses(kept) if any(_is_apart(each, kept) for each in found.values()) else ():
            for output in [output for output, each in found.items() if _is_apart(each, kept) and output in said]:
                got = kept.got[output]
                compared = self.tolerance.compare(output, got, typed_as(got, said[output]))
                if compared.ok:
                    found[output], backed[output] = compared, name
        return backed

    def _of_witnesses(self, kept: ResultPair) -> Iterator[tuple[str, dict[str, Any]]]:
        with suppress(CheckFailed):
            yield EVALUATOR, self._handed(self.oracle.original.evaluate(kept.inputs, self.observed))
        if self.package.macs <= MOST_OF_JUDGE:
            with suppress(NoWitness):
                yield JUDGE, self._handed(self.oracle.judged(kept.inputs))


def _is_apart(found: Comparison, kept: ResultPair) -> bool:
    """Is there no distance to the reference, which doubles could judge?"""
    got = kept.got[found.name]
    return bool(found.why) or (not found.ok and isinstance(got, np.ndarray) and got.dtype.kind == "O")


def spreads(
    verdict: Verdict,
    kept: Sequence[ResultPair],
    others: Iterable[Callable[[Mapping[str, Any]], dict[str, Any] | None]],
    handed: Callable[[dict[str, Any]], dict[str, Any]],
    tolerance: Tolerance,
    labels: frozenset[str] = frozenset(),
    further: Iterable[Callable[[Mapping[str, Any]], dict[str, Any] | None]] = (),
) -> tuple[Spread, ...]:
    """For each output that differs: how far the reference, first of `others`, is from itself with the same inputs.
    `further` ones are asked for labels that none of these gives."""
    wrong = [output.name for output in verdict.worst() if not output.ok]
    apart: dict[str, list[list[Comparison]]] = {name: [] for name in wrong}
    ways: dict[str, list[list[Any]]] = {name: [[each.wanted[name]] for each in kept] for name in wrong}
    plain: list[dict[str, Any]] = []
    for other in others:
        results = [handed(made) for each in kept if (made := other(each.inputs))]
        if len(results) < len(kept):  # it cannot
            continue
        for name in wrong:
            for found, made in zip(ways[name], results, strict=True):
                found.append(made[name])
        for name in wrong if plain else ():
            pairs = [(_typed_as(a[name], b[name]), a[name]) for a, b in zip(plain, results, strict=True)]
            apart[name].append([tolerance.compare(name, *pair) for pair in pairs])
        plain = plain or results
    unknown = {name: _unexplained(name, kept, ways[name]) for name in wrong if name in labels}
    for other in further if any(unknown.values()) and plain else ():
        for number, each in enumerate(kept):
            made = other(each.inputs)
            for name in unknown if made is not None else ():
                ways[name][number].append(handed(made or {})[name])
        unknown = {name: _unexplained(name, kept, ways[name]) for name in unknown}
        if not any(unknown.values()):
            break
    made_spreads = (
        spread(
            name,
            [tolerance.compare(name, each.got[name], each.wanted[name]) for each in kept],
            apart[name],
            unknown.get(name, 0),
        )
        for name in wrong
    )
    return tuple(each for each in made_spreads if each is not None)


def _unexplained(name: str, kept: Sequence[ResultPair], ways: Sequence[Sequence[Any]]) -> int:
    return sum(unexplained(each.got[name], found) for each, found in zip(kept, ways, strict=True))


def _typed_as(wanted: Any, made: Any) -> Any:
    """What was computed in doubles as the floats that are asked for."""
    return made.astype(wanted.dtype) if isinstance(made, np.ndarray) and made.dtype == np.float64 else made
