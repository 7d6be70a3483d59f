"""`tune`: the kernels that the calls of a network may get are measured, and the network is planned on what they took.

Invariant: what is in the database already is not measured again, so a run that was interrupted goes on where it was.
Calls that only come up in the plan that measurements lead to are measured in a further round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from ... import __version__
from ...base.discovery import cache_folder
from ...base.errors import Problem, WrongUse
from ...base.records import dataclass
from ...driver import Options, compile, settled
from ...emit.package import Package
from ...kernels.measurements import BOARD, Database, Key, Measured, Measurement
from ...targets.api import Target, runs_here
from ...toolchain.build import find_compiler
from ...toolchain.serial_line import Port
from ...toolchain.tools import version
from ..flashing import refuse_unplaced
from ..workers import Open, ProgressLines, opener, run
from .candidates import Candidates
from .jobs import Built, Job, JobResult, measured
from .one_call import alone

FAR = 4.0  # kernels that are said to take so much longer than the best one are left out
ROUNDS = 3
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Tuning:
    """What a run has come to."""

    database: Path
    calls: int  # of the network, each kind of them once, of which something is measured
    known: int  # measurements of them that there are
    new: int  # those of this run
    left: int  # calls that nothing was found of, mostly for lack of time
    failures: Sequence[str]
    correlation: float | None  # Spearman's, of model and measurement
    before: float  # what the plan of models takes as measured, in the unit of models
    after: float  # the same of the plan of measurements
    rows: Sequence[Measurement] = field(default=(), repr=False)  # the measurements that are known

    @property
    def gain(self) -> float:
        return 1 - self.after / self.before if self.before else 0.0

    def as_dict(self) -> dict[str, Any]:
        figures = ("calls", "known", "new", "left", "correlation", "gain")
        failures = {"failures": list(self.failures), "database": str(self.database)}
        return {name: getattr(self, name) for name in figures} | failures

    def show(self) -> str:
        """For the terminal."""
        ranks = "not known" if self.correlation is None else f"{self.correlation:.3f}"
        lines = [
            f"calls        {self.calls}, with {self.known} kernels measured, {self.new} of them now",
            f"correlation  {ranks} (Spearman, of model and measurement)",
            f"gain         {self.gain:.1%} of the time of a run, as far as it is measured",
            f"database     {self.database}",
        ]
        lines += [f"left         {self.left} calls: give it more --time"] * bool(self.left)
        lines += [f"failed       {failure}" for failure in self.failures]
        return "\n".join(lines)


def default_database() -> Path:
    return cache_folder() / "tuned.sqlite"


def tune(
    model: Path,
    options: Options,
    database: Path | None = None,
    seconds: float | None = None,
    opened: Open | None = None,
    cc: str | None = None,
    runner: str = "",
    port: Port | None = None,
    progress: Progress = lambda line: None,
) -> Tuning:
    """Measures what a network's calls may get, for at most so many seconds. `opened` gives the executor that does it;
    `runner` is a command that measures on a board, `port` leads to one that is flashed with each kernel."""
    target = options.resolved_target()
    if runner:
        refuse_unplaced(runner, "--runner", "program")
    elif port is not None and not port.flash:
        fix = "say how a build gets onto the board: --flash './flash.sh {}'"
        raise WrongUse(Problem("a board measures the kernels that it has", "--serial", "each is a build", fix))
    elif port is None and not target.run and not runs_here(target):
        why = "this machine does not run its programs, and it names no emulator"
        fix = "--serial with --flash, or --runner 'command {}'"
        raise WrongUse(Problem(f"kernels for {target.name} cannot be measured here", "--target", why, fix))
    path = database or default_database()
    path.parent.mkdir(parents=True, exist_ok=True)
    file = Database(path, make=True)
    options = replace(settled(model, replace(options, tuned=None)), print_after=frozenset(), dump=None)
    by_models = compile(model, options)
    work = _Tuner(file, options, cc, runner, port)
    until = None if seconds is None else monotonic() + seconds
    opened = opened or opener("", at_once(target, bool(runner or port)))
    failures: list[str] = []
    package, left = by_models, 0
    for number in range(ROUNDS):
        jobs = work.jobs(package)
        if number and not jobs:
            break
        told = _Collector(file, jobs, progress, failures)
        failures += map(str, run(jobs, measured, opened, told, until))
        left += len(jobs) - told.how_far.done
        package = compile(model, replace(options, tuned=path))
    return work.result(by_models, compile(model, replace(options, tuned=path)), failures, left)


def at_once(target: Target, on_board: bool) -> int:
    """How many kernels this machine measures at a time: where time counts they would disturb each other. 0: as many as
    it has processors."""
    return 1 if on_board or not target.run else 0


class _Collector:
    """Keeps what a job has found, and says how far all are."""

    def __init__(self, file: Database, jobs: Sequence[Job], progress: Progress, failures: list[str]) -> None:
        self.file, self.failures = file, failures
        self.how_far = ProgressLines(len(jobs), "calls", progress)

    def __call__(self, job: Job, found: JobResult) -> None:
        self.file.add(found.measurements)
        self.failures += found.failures
        best = min(found.measurements, key=lambda one: one.figure, default=None)
        self.how_far(f"{best.key.kernel} {best.figure:.6g} {best.unit}" if best else "nothing measured")


class _Tuner:
    """Which kernels of a network to measure, and what they come to."""

    def __init__(self, file: Database, options: Options, cc: str | None, runner: str, port: Port | None) -> None:
        self.file, self.cc, self.runner, self.port = file, cc, runner, port
        compiler = version(find_compiler(cc or options.resolved_target().compiler).command)
        self.candidates = Candidates(options, compiler, BOARD if runner or port else "")
        self.target = self.candidates.target
        self.ticking = not (runner or port or self.target.run)
        self.seen: dict[Key, str] = {}  # every kernel that is worth it, and of which call
        self.tried: set[Key] = set()

    def jobs(self, package: Package) -> list[Job]:
        """What is not known yet: first the calls that take longest."""
        known = {row.key for row in self.file.rows(self.target)} | self.tried
        found: list[Job] = []
        for among in self.candidates.of(package):
            worth = [one for one in among if one.effort <= FAR * min(other.effort for other in among)]
            self.seen |= {one.key: one.name for one in worth}
            built = []
            for one in worth:
                if one.key in known:
                    continue
                made = alone(one.call, one.kernel, one.needs, self.candidates.context, self.ticking)
                if not made.why_not:
                    built.append(Built(one.key, made.files, one.model))
            known |= {one.key for one in worth}
            self.tried |= {each.key for each in built}
            if built:
                found.append(Job(tuple(built), self.target, self.cc, self.runner, self.port))
        return sorted(found, key=lambda job: (-max(built.model for built in job.among), job.name))

    def result(self, by_models: Package, tuned: Package, failures: Sequence[str], left: int) -> Tuning:
        known = {row.key: row for row in self.file.rows(self.target)}
        own = [known[key] for key in self.seen if key in known]
        registry = self.candidates.context.registry
        measured = registry.measured_by(Measured(known.values(), self.target, __version__))
        return Tuning(
            self.file.path,
            len({self.seen[row.key] for row in own}),
            len(own),
            sum(row.key in self.tried for row in own),
            left,
            failures,
            spearman([row.model for row in own], [row.figure for row in own]),
            by_models.estimate.time_by(measured, self.target),
            tuned.estimate.time_by(measured, self.target),
            own,
        )


def spearman(models: Sequence[float], figures: Sequence[float]) -> float | None:
    """The correlation of the ranks of model and measurement; equal ones share theirs."""
    if len(models) < 2:
        return None
    model, measured = _ranks(np.array(models)), _ranks(np.array(figures))
    if np.ptp(model) == 0 or np.ptp(measured) == 0:
        return None
    return float(np.corrcoef(model, measured)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: np.ndarray = ends - (counts - 1) / 2
    return means[group]
