"""What a worker does: builds the kernels that a call may get, and says what each takes.

Invariant: a job holds all that it needs, and what it gives depends on nothing else but the machine. Done twice it gives
the same again, but for noise where time is measured.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from ...base.errors import CheckFailed, MccError, Problem
from ...base.records import dataclass
from ...kernels.measurements import Key, Measurement
from ...targets.api import Target
from ...toolchain.emulate import Emulated
from ...toolchain.model_report import Report
from ...toolchain.run import Model
from ...toolchain.serial_line import Port
from ..building import served
from .runner import by_command

INSTRUCTIONS, SECONDS, TICKS, GIVEN = "instructions", "seconds", "ticks", "as the command says"
ROUNDS = 7
ROUND = 0.02  # seconds of one kernel in one round, roughly
BOARD_RUNS = 5  # of a kernel, on a board
MOST_RUNS = 300  # of one kernel in one round


@dataclass(frozen=True)
class Built:
    """A kernel to be measured: its C by name, and what its model says."""

    key: Key
    files: Mapping[str, bytes]
    model: float


@dataclass(frozen=True)
class Job:
    """The kernels of one call."""

    among: tuple[Built, ...]
    target: Target
    cc: str | None = None
    runner: str = ""  # a command of the user's that measures
    port: Port | None = None  # of a board that is flashed with each

    @property
    def unit(self) -> str:
        if self.port is not None:
            return TICKS
        return GIVEN if self.runner else INSTRUCTIONS if self.target.run else SECONDS

    @property
    def name(self) -> str:
        return self.among[0].key.call


@dataclass(frozen=True)
class JobResult:
    """What a job has found, and what went wrong."""

    measurements: tuple[Measurement, ...]
    failures: tuple[str, ...]


def measured(job: Job) -> JobResult:
    figures: dict[Key, float] = {}
    failures: list[str] = []
    with ExitStack() as kept:
        models: dict[Key, Model] = {}
        for built in job.among:
            folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="mccompile-")), "out")
            try:
                _write(built.files, folder)
                if job.port is not None:
                    figures[built.key] = _on_board(folder, job.port)
                elif job.runner:
                    figures[built.key] = by_command(job.runner, folder, job.target, job.cc)
                elif job.target.run:
                    model = Emulated.build(folder, job.target, job.cc)
                    figures[built.key] = model.count(inputs_of(model.report)).run_instructions
                else:
                    models[built.key] = Model.build(folder, job.cc or job.target.compiler, job.target.cflags, 1)
            except MccError as error:
                failures.append(f"{built.key.kernel}: {error.problems[0].what}: {error.problems[0].why}")
        if models:
            figures |= _timed(models)
    return JobResult(
        tuple(Measurement(b.key, figures[b.key], job.unit, b.model) for b in job.among if b.key in figures),
        tuple(failures),
    )


def _on_board(folder: Path, port: Port) -> float:
    """Ticks of a board that is flashed with a kernel."""
    board = served(folder, port)
    try:
        board.time(inputs_of(board.report), BOARD_RUNS)
    finally:
        board.close()
    median = statistics.median_low(board.ticks)
    if not median:
        fix = "define MCC_CLOCK() of mcc_profile.h as a counter that your board has"
        raise CheckFailed(Problem("the clock of the board does not advance", port.name, "a run takes 0 ticks", fix))
    return median


def _timed(models: Mapping[Key, Model]) -> dict[Key, float]:
    """Seconds of the one step of each: in turns, on one processor; of each turn the median, and the median of these."""
    inputs = {key: inputs_of(model.report) for key, model in models.items()}
    with _on_one_processor():
        runs = {}
        for key, model in models.items():
            one = min(model.time(inputs[key], 3))
            runs[key] = max(3, min(MOST_RUNS, round(ROUND / one)))
        rounds: dict[Key, list[float]] = {key: [] for key in models}
        for _ in range(ROUNDS):
            for key, model in models.items():
                rounds[key].append(statistics.median(_runs(model, inputs[key], runs[key])))
    return {key: statistics.median(found) for key, found in rounds.items()}


def _runs(model: Model, inputs: Mapping[str, np.ndarray], count: int) -> list[float]:
    """Seconds of the step in each of so many runs."""
    spent = [model.spent(1)[0]]
    for _ in range(count):
        model.time(inputs, 1)
        spent.append(model.spent(1)[0])
    return [after - before for before, after in itertools.pairwise(spent)]


@contextmanager
def _on_one_processor() -> Iterator[None]:
    """The process stays where it is, where the system can be told so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(before)[os.getpid() % len(before)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def inputs_of(report: Report) -> dict[str, np.ndarray]:
    """Some numbers, always the same."""
    chance, found = np.random.default_rng(0), {}
    for tensor in report.inputs:
        dtype, shape = tensor.dtype, tensor.static_shape
        if dtype.is_integer:
            low, high = max(int(dtype.low), -100), min(int(dtype.high), 100)
            found[tensor.name] = chance.integers(low, high, shape, endpoint=True).astype(dtype.numpy)
        elif dtype.kind == "bool":
            found[tensor.name] = chance.integers(0, 2, shape).astype(dtype.numpy)
        else:
            found[tensor.name] = chance.uniform(-2, 2, shape).astype(dtype.numpy)
    return found


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, contents in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def keys(jobs: Sequence[Job]) -> list[Key]:
    return [built.key for job in jobs for built in job.among]
