"""One program: a subject compiled with options, run in a batch, and what that shows.

Verdicts: ok; near (off by no more than the reference itself, moved by a millionth); refused (with a reason); wrong;
crash (not one of our errors); no-build; sanitizer; hang."""

from __future__ import annotations

import re
import shutil
import signal
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.base.errors import CheckFailed, MccError, Problem
from mccompile.driver import Options, channels_last, compile_graph
from mccompile.emit.package import Package, write_folder
from mccompile.emit.several import several
from mccompile.emit.traffic import transfers
from mccompile.evidence.folder import checked, checked_ranges, checked_trace
from mccompile.frontend.listed import nodes_of
from mccompile.frontend.load import load_proto
from mccompile.measure import windows
from mccompile.plan.copies import copies
from mccompile.plan.ir import Plan
from mccompile.toolchain.model_report import read_report

from . import costs, forms, machines, oracle, strays, ways
from .programs import HANG, NO_BUILD, SANITIZER, Batch, Failure, Item
from .strays import Strays
from .subject import Arrays, Subject

OK, NEAR, REFUSED, WRONG, CRASH, SKIPPED = "ok", "near", "refused", "wrong", "crash", "skipped"
VERDICTS = (OK, NEAR, REFUSED, SKIPPED, WRONG, CRASH, NO_BUILD, SANITIZER, HANG)
BAD = (WRONG, CRASH, NO_BUILD, SANITIZER, HANG)
COMPILE_SECONDS = 60
TOGETHER = 0.2  # of the batches, whose models become one output of `mccompile a.onnx b.onnx`


@dataclass(frozen=True)
class Verdict:
    kind: str
    detail: str = ""
    notes: tuple[str, ...] = ()


@dataclass
class Trial:
    seed: int
    number: int  # of the subject
    variant: int  # of the options
    subject: Subject
    options: Options
    build: machines.Build
    runs: Sequence[Arrays]
    wanted: oracle.Wanted
    renewed: Subject | None = None  # with other weights, whose blob the code is given
    item: Item | None = None
    verdict: Verdict | None = None
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    winograd: bool = False
    package: Package | None = None
    together: bool = False  # in one folder with the others of its batch
    way: str = ""  # it is written and built in
    asked: str = ""  # for --target, in that way
    fed: forms.Fed | None = None  # what it is given instead of `runs`, which is what the model sees
    strays: Strays | None = None  # what it is given besides ordinary values
    inexact: bool = False  # the model sees other numbers than those that nothing has to round

    def compile(self, folder: Path, prefix: str) -> None:
        """Writes the C of the program, or says why there is none."""
        try:
            with limited(COMPILE_SECONDS):
                self._measure(folder, prefix)
                made = self._written(folder, prefix)
        except MccError as error:
            self.verdict = Verdict(REFUSED, str(error))
            return
        except TimeoutError:
            self.verdict = Verdict(HANG, f"compiling took more than {COMPILE_SECONDS} s\n{_trace()}")
            return
        except Exception:  # what a user would see as a traceback
            self.verdict = Verdict(CRASH, _trace())
            return
        shutil.rmtree(folder, ignore_errors=True)
        write_folder(folder, made.files)
        self.winograd, package = made.winograd, made.package
        report = read_report(folder)
        given = {tensor.name: tensor for tensor in report.inputs}
        fed = self.runs if self.fed is None else self.fed.given
        streamed = package.plan.streamed
        fed = fed if streamed is None else [push for feeds in fed for push in windows.pushes(streamed, feeds)]
        runs = [{n: self._turned(n, a) for n, a in feeds.items() if n in given} for feeds in fed]
        if self.subject.free and self.subject.state:
            runs = [{n: _with_room(a, given[n].shape) for n, a in feeds.items()} for feeds in runs]
        sessions = [runs, runs if self.options.state or package.plan.streamed else runs[:1]]
        self.item = Item(folder, report, sessions, made.blob, way=self.way)
        self.package = package

    def _measure(self, folder: Path, prefix: str) -> None:
        """Writes random measurements of the kernels that the program may get, where it is to be tuned."""
        drawn = self.options.tuned
        if drawn is not None and drawn.suffix == costs.DRAWN:
            self.options = replace(self.options, tuned=None)
            package = self._package(self.subject, prefix)
            self.options = replace(self.options, tuned=costs.written(folder, int(drawn.stem), package, self.options))

    def _written(self, folder: Path, prefix: str) -> ways.Written:
        package = self._package(self.subject, prefix)
        if self.way:
            file = folder.with_suffix(".onnx")
            return ways.written(self.way, self.subject, self.options, self.asked, prefix, file)
        winograd = any("f32_nhwc_winograd" in function.kernel.id for function in package.plan.functions)
        return ways.Written(package, winograd, package.files, self._blob(package, prefix))

    def _blob(self, package: Package, prefix: str) -> bytes:
        """What `mccompile blob` writes for the code, where other weights are asked for."""
        if self.renewed is not None:
            made = self._package(self.renewed, prefix, frozenset(package.plan.assumptions))
            if made.identity != package.identity:
                raise CheckFailed(Problem("the code does not take other weights", prefix))
            package = made
        return package.files[f"{prefix}.mcb"]

    def _package(self, subject: Subject, prefix: str, facts: frozenset[str] | None = None) -> Package:
        options = self.options
        graph = load_proto(subject.model, None, options.dims, options.shapes, bounds=options.bounds)
        graph.facts_known = facts
        orders = channels_last(graph, options) if self.fed is None else self.fed.orders
        self.orders = {name: tuple(order) for name, order in orders.items()}
        package = compile_graph(graph, options, prefix)
        if options.weights_window:  # of which there is no evidence
            return package
        # A plan, a trace or ranges of integers that our own checkers refuse are a finding.
        memory = checked(package)
        if not options.single_file:
            checked_trace(package, nodes_of(subject.model), memory)
            checked_ranges(package, memory)
        return package

    def _turned(self, name: str, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.transpose(self.orders[name])) if name in self.orders else array

    @property
    def _rounds(self) -> bool:
        """May activations be rounded to int8?"""
        few = {"com.microsoft::MatMulNBits", "DequantizeLinear"} & self.subject.operators
        return self.options.block_activations != "float" and bool(few)

    def _given(self, name: str, result: np.ndarray) -> np.ndarray:
        """What the program gives of an output of the model."""
        streamed = self.package.plan.streamed if self.package else None
        if streamed is not None:
            result = windows.given_by_push(streamed, {name: result})[name]
        if self.fed is not None and name in self.fed.handover.outputs:
            result = self.fed.handover.handed(name, result)
        return result

    def hand_over(self, runs: Sequence[Arrays]) -> bool:
        """Takes what the model is given; whether it sees something else, in the forms of the options."""
        self.fed = forms.fed(self.subject, self.options, runs)
        self.runs = runs if self.fed is None else self.fed.seen
        self.inexact = self.fed is not None and not forms.is_as_before(self.fed, runs)
        return self.inexact

    def judge(self) -> Verdict:
        """After the batch has run."""
        if self.verdict is None:
            assert self.item is not None
            self.verdict = self._judged(self.item.outcome)
        return self.verdict

    def _judged(self, outcome: Any) -> Verdict:
        if isinstance(outcome, Failure):
            if outcome.kind in (NO_BUILD, SANITIZER, HANG, SKIPPED):
                return Verdict(outcome.kind, outcome.detail)
            return Verdict(WRONG, f"{outcome.kind}: {outcome.detail}")
        first, second = outcome
        if self.options.stream:  # one window follows another, and each ends with a push
            each = len(first) // len(self.runs)
            first, second = first[each - 1 :: each], second[each - 1 :: each]
        for number, run in enumerate(second):
            for name, array in run.items():
                if _bytes(array) != _bytes(first[number][name]):
                    return Verdict(WRONG, f"{name} of run {number} depends on what lay in memory before")
        notes = ["disagreed"] if self.wanted.disagreed else []
        notes += ["other weights"] if self.renewed is not None else []
        notes += [self.way] if self.way else []
        notes += ["forms"] if self.fed is not None else []
        notes += [f"strays ({self.strays.kind})"] if self.strays else []
        notes += ["C++"] if self.options.wrappers else []
        notes += _memories(self.package.plan) if self.package else []
        verdict = Verdict(OK)
        for number, run in enumerate(first):
            for name, answers in self.wanted.runs[number].items():
                if name in self.options.state or not answers:
                    notes += [] if answers else ["unknown"]
                    continue
                found = self._compared(name, number, run[name], answers)
                if found.kind == WRONG:
                    return found
                verdict = found if found.kind != OK else verdict
        return Verdict(verdict.kind, verdict.detail, tuple(sorted(set(notes))))

    def _compared(self, name: str, number: int, got: np.ndarray, answers: Sequence[np.ndarray]) -> Verdict:
        if name in self.orders:
            got = got.transpose(np.argsort(self.orders[name]))
        answers = [self._given(name, want) for want in answers]
        if self.strays:
            return self._of_strays(name, number, got, answers)
        in_floats = self.subject.source == "qdq" and not self.options.optimize  # as the model is written
        rounds = self._rounds
        exact = name in self.subject.exact and not (self.winograd or in_floats or self.inexact or rounds)
        more = 0.05 if (self.options.weights_dtype or rounds) and not exact else 0.0
        said = [oracle.differs(got, want, more) for want in answers]
        if not all(said) or any(oracle.of_no_trip(self.subject, got, want) for want in answers):
            return Verdict(OK)
        if not exact:
            narrow = "i8" if rounds else self.options.weights_dtype or ""
            moved = oracle.moved(self.renewed or self.subject, self.runs, name, number, narrow)
            others = [self._given(name, each) for each in moved]
            doubles = oracle.in_doubles(self.renewed or self.subject, self.runs, name, number)
            agrees = [not oracle.differs(got, self._given(name, each).astype(got.dtype), more) for each in doubles]
            if any(agrees) or any(oracle.explains(got, want, others) for want in answers):
                return Verdict(NEAR, f"{name} of run {number}: {said[0]}")
        return Verdict(WRONG, f"{name} of run {number}: {' / '.join(said)}")

    def _of_strays(self, name: str, number: int, got: np.ndarray, answers: Sequence[np.ndarray]) -> Verdict:
        """Beside what may come of values that are not finite, and the like."""
        assert self.strays is not None
        if self.winograd or self._rounds:  # whole tiles are reached there, or rows
            return Verdict(OK)
        more = 0.05 if self.options.weights_dtype else 0.0
        said = strays.differs(got, answers, self.strays.kind, more)
        if not said or any(oracle.of_no_trip(self.subject, got, want) for want in answers):
            return Verdict(OK)
        moved = oracle.moved(self.subject, self.runs, name, number, self.options.weights_dtype or "")
        others = [*moved, *oracle.in_doubles(self.subject, self.runs, name, number)]
        others = [self._given(name, each).astype(got.dtype) for each in others]
        explained = not strays.differs(got, [*answers, *others], self.strays.kind, more)
        return Verdict(NEAR if explained else WRONG, f"{name} of run {number}: {said}")


def _memories(plan: Plan) -> list[str]:
    """What a program really has of several memories and of an accelerator."""
    moved = transfers(plan).values()
    notes = ["tensors copied"] if any(step.function.kernel.copies for step in plan.steps()) else []
    notes += ["tensors early"] if any(each["overlapped_bytes"] for each in moved) else []
    notes += ["weights copied"] if copies(plan.items) else []
    return notes + (["regions"] if plan.partition and plan.partition.taken else [])


def _with_room(array: np.ndarray, shape: Sequence[int | str]) -> np.ndarray:
    """An input as large as the program has it, where that is longer than what the run reads."""
    if array.dtype.kind in "OSU" or array.ndim != len(shape):
        return array
    rooms = zip(shape, array.shape, strict=True)
    more = [(0, max(room - size, 0) if isinstance(room, int) else 0) for room, size in rooms]
    return np.pad(array, more, constant_values=1) if any(behind for _, behind in more) else array


def _bytes(array: np.ndarray) -> Any:
    return array.tolist() if array.dtype.kind == "O" else (array.shape, array.tobytes())


def _trace() -> str:
    return "".join(traceback.format_exc().splitlines(keepends=True)[-14:])


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor: others may keep it busy
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(trials: Sequence[Trial], folder: Path) -> None:
    """Compiles, builds and runs trials of one build together, and judges each."""
    batch = Batch(trials[0].build, folder)
    for number, trial in enumerate(trials):
        trial.compile(folder / f"m{number}", f"m{number}")
        if trial.item is not None:
            batch.items.append(trial.item)
    if len(batch.items) > 1 and np.random.default_rng([trials[0].seed, trials[0].number, 4]).random() < TOGETHER:
        batch.shared = _join(trials, folder / "together")
        batch.items = [trial.item for trial in trials if trial.item is not None]
    batch.run()
    for trial in trials:
        trial.judge()
    shutil.rmtree(folder, ignore_errors=True)


def _join(trials: Sequence[Trial], folder: Path) -> Path | None:
    """Puts the models that can be into one folder, where they share kernels; the source of what they share."""
    apart = [t for t in trials if t.options.single_file or t.options.blob != "array" or t.renewed or t.way]
    alone = [t for t in apart if t.item]
    joined = [t for t in trials if t.item and t.package and t not in alone]
    if len(joined) < 2:
        return None
    try:
        files = several([t.package for t in joined if t.package], "shared")
    except Exception:  # what a user would see as a traceback
        for each in joined:
            each.verdict, each.item = Verdict(CRASH, _trace()), None
        return None
    write_folder(folder, files)
    for each in joined:
        assert each.item is not None
        header = files[f"{each.item.report.prefix}.h"].decode()
        owner = re.search(r"#define \w+_weights (\w+)_weights\n", header)
        name = f"{owner[1] if owner else each.item.report.prefix}.mcb"
        each.item.folder, each.item.blob, each.together = folder, files.get(name, each.item.blob), True
    source = folder / "shared_kernels.c"
    return source if source.is_file() else None
