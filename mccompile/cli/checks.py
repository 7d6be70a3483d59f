"""What `check` does with each model and target: a job that any worker can do.

Invariant: what it finds is text, numbers and problems, so it is the same wherever the job was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import CheckFailed, MccError, Problem
from ..base.records import dataclass
from ..measure.bitwise import alike, bitwise
from ..measure.correctness import check
from ..measure.golden import check_golden
from ..measure.learning import check_learning
from ..measure.verdict import Tolerance
from ..measure.workers import LostJob, opener, results
from ..toolchain.serial_line import Port
from . import training_verdicts, verdicts
from .jobs import held_of

if TYPE_CHECKING:
    from ..driver import Options
    from ..passes.learn.phase_graphs import Learning


@dataclass(frozen=True)
class CheckSettings:
    """What all jobs of a command share."""

    data: Path | None
    seed: int
    runs: int
    tolerance: Tolerance
    cc: str | None
    golden: Path | None
    update_golden: bool
    port: Port | None = None  # of the board that runs it
    learning: Learning | None = None  # it learns, and that is checked
    bitwise: bool = False  # builds are compared as well


@dataclass(frozen=True)
class Check:
    file: Path
    options: Options
    how: CheckSettings

    @property
    def name(self) -> str:
        return f"{self.file} for {self.options.target}"


@dataclass(frozen=True)
class Checked:
    name: str
    found: dict[str, Any]  # for JSON
    lines: tuple[str, ...] = ()  # for the terminal
    held: tuple[str, ...] = ()  # budgets
    failures: tuple[CheckFailed, ...] = ()
    error: MccError | None = None  # what ends the command
    bits: str = ""  # a digest of all results, where builds were compared


def checked(job: Check) -> Checked:
    how, own, kept = job.how, job.options, None
    if how.learning is not None:
        return _learned(job, how.learning)
    try:
        if how.golden is None:
            verdict = check(job.file, own, how.data, how.seed, how.runs, how.tolerance, how.cc, how.port)
        else:
            kept = check_golden(
                job.file,
                own,
                how.golden,
                how.update_golden,
                data=how.data,
                seed=how.seed,
                runs=how.runs,
                tolerance=how.tolerance,
                cc=how.cc,
            )
            verdict = kept.verdict
    except CheckFailed as failed:
        return _failed(job, failed)
    except MccError as error:
        return Checked(job.name, {}, error=error)
    failures: list[CheckFailed] = []
    held: list[str] = []
    outside = None
    try:
        held = held_of([(job.file, own)])
    except CheckFailed as failed:
        failures.append(failed)
    except MccError as raised:
        outside = raised
    if kept is not None and kept.problems:
        failures.append(CheckFailed(*kept.problems))
    if not verdict.ok:
        failures.append(verdict.failure(job.file))
    lines, told = [*verdicts.lines(verdict, kept)], verdicts.as_dict(verdict, kept)
    bits = ""
    if how.bitwise and outside is None:
        try:
            found = bitwise(job.file, own, how.data, how.seed, how.runs, how.cc)
            bits = found.digest
            lines += verdicts.lines_of_bits(found)
            told |= {"ok": told["ok"] and found.ok, "bitwise": verdicts.bits_as_dict(found)}
            failures += [] if found.ok else [found.failure(job.file)]
        except MccError as raised:
            outside = raised
    return Checked(job.name, told, tuple(lines), tuple(held), tuple(failures), outside, bits)


def _learned(job: Check, learning: Learning) -> Checked:
    how = job.how
    try:
        found = check_learning(
            job.file, learning, job.options, how.data, how.seed, how.runs, how.tolerance.rtol, how.cc
        )
    except CheckFailed as failed:
        return _failed(job, failed)
    except MccError as error:
        return Checked(job.name, {}, error=error)
    failures = () if found.ok else (found.failure(job.file),)
    return Checked(job.name, training_verdicts.as_dict(found), tuple(training_verdicts.lines(found)), failures=failures)


def _failed(job: Check, failed: CheckFailed) -> Checked:
    found = {"ok": False, "model": str(job.file), "target": job.options.target, "error": str(failed)}
    return Checked(job.name, found, failures=(failed,))


def _lost(lost: LostJob[Check]) -> Checked:
    what, fix = "no worker has brought a check to its end", "check it alone, without --executor"
    return _failed(lost.job, CheckFailed(Problem(what, lost.job.name, lost.why, fix)))


def all_checked(
    jobs: Sequence[Check], executor: str, each: Callable[[Checked], None], told: Callable[[str], None]
) -> list[Checked]:
    """In the order of the jobs. One alone is done here, unless an executor is named; and so are those of a board."""
    if not executor and (len(jobs) == 1 or any(job.how.port is not None for job in jobs)):
        found = []
        for job in jobs:
            found.append(checked(job))
            each(found[-1])
        return found
    return results(jobs, checked, opener(executor), _lost, each, told)


def bit_equal(done: Iterable[tuple[Check, Checked]]) -> dict[str, list[list[str]]]:
    """By model the targets whose results have the same bits, in groups; only where several were compared."""
    digests: dict[str, dict[str, str]] = {}
    for job, one in done:
        if one.bits:
            digests.setdefault(str(job.file), {})[job.options.target] = one.bits
    return {file: alike(each) for file, each in digests.items() if len(each) > 1}
