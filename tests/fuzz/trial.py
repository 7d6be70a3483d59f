"""One program: a subject compiled with options, run in a batch, and what that shows.

Verdicts: ok; near (off by no more than the reference itself, moved by a millionth); refused (with a reason); wrong;
crash (not one of our errors); no-build; sanitizer; hang."""

from __future__ import annotations

import shutil
import signal
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.base.errors import MccError
from mccompile.driver import Options, channels_last, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.toolchain.model_report import read_report

from . import machines, oracle
from .programs import HANG, NO_BUILD, SANITIZER, Batch, Failure, Item
from .subject import Arrays, Subject

OK, NEAR, REFUSED, WRONG, CRASH, SKIPPED = "ok", "near", "refused", "wrong", "crash", "skipped"
VERDICTS = (OK, NEAR, REFUSED, SKIPPED, WRONG, CRASH, NO_BUILD, SANITIZER, HANG)
BAD = (WRONG, CRASH, NO_BUILD, SANITIZER, HANG)
COMPILE_SECONDS = 60


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
    item: Item | None = None
    verdict: Verdict | None = None
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    winograd: bool = False

    def compile(self, folder: Path, prefix: str) -> None:
        """Writes the C of the program, or says why there is none."""
        try:
            with _limited(COMPILE_SECONDS):
                package = self._package(prefix)
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
        package.write(folder)
        self.winograd = any("winograd" in function.kernel.id for function in package.plan.functions)
        report = read_report(folder)
        given = {tensor.name for tensor in report.inputs}
        runs = [{n: self._turned(n, a) for n, a in feeds.items() if n in given} for feeds in self.runs]
        sessions = [runs, runs if self.options.state else runs[:1]]
        self.item = Item(folder, report, sessions)

    def _package(self, prefix: str) -> Package:
        options = self.options
        graph = load_proto(self.subject.model, None, options.dims, options.shapes, bounds=options.bounds)
        self.orders = {name: tuple(order) for name, order in channels_last(graph, options).items()}
        return compile_graph(graph, options, prefix)

    def _turned(self, name: str, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.transpose(self.orders[name])) if name in self.orders else array

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
        for number, run in enumerate(second):
            for name, array in run.items():
                if _bytes(array) != _bytes(first[number][name]):
                    return Verdict(WRONG, f"{name} of run {number} depends on what lay in memory before")
        notes = ["disagreed"] if self.wanted.disagreed else []
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
        exact = name in self.subject.exact and not self.winograd
        more = 0.05 if self.options.weights_dtype and not exact else 0.0
        said = [oracle.differs(got, want, more) for want in answers]
        if not all(said):
            return Verdict(OK)
        if not exact:
            others = oracle.moved(self.subject, self.runs, name, number)
            if any(oracle.explains(got, want, others) for want in answers):
                return Verdict(NEAR, f"{name} of run {number}: {said[0]}")
        return Verdict(WRONG, f"{name} of run {number}: {' / '.join(said)}")


def _bytes(array: np.ndarray) -> Any:
    return array.tolist() if array.dtype.kind == "O" else (array.shape, array.tobytes())


def _trace() -> str:
    return "".join(traceback.format_exc().splitlines(keepends=True)[-14:])


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(trials: Sequence[Trial], folder: Path) -> None:
    """Compiles, builds and runs trials of one build together, and judges each."""
    batch = Batch(trials[0].build, folder)
    for number, trial in enumerate(trials):
        trial.compile(folder / f"m{number}", f"m{number}")
        if trial.item is not None:
            batch.items.append(trial.item)
    batch.run()
    for trial in trials:
        trial.judge()
    shutil.rmtree(folder, ignore_errors=True)
