"""Executors that lose workers, and pools that break: every job is done and told once, or named as lost."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

import pytest

from mccompile.base.errors import Problem, WrongUse
from mccompile.measure import workers
from mccompile.measure.workers import LostJob, ProgressLines


@dataclass(frozen=True)
class Job:
    name: str


class Pool(Executor):
    """One that does a job at once, unless `fails` says what happens; a pool that broke takes no more."""

    def __init__(self, fails: Callable[[str], Exception | None]) -> None:
        self.fails, self.broken = fails, False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.broken:
            raise BrokenProcessPool("it is broken")
        future: Future[Any] = Future()
        error = self.fails(args[0].name)
        if error is None:
            future.set_result(fn(*args))
        else:
            self.broken = isinstance(error, BrokenProcessPool)
            future.set_exception(error)
        return future


def upper(job: Job) -> str:
    return job.name.upper()


def done(
    names: str, fails: Callable[[str], Exception | None], until: float | None = None
) -> tuple[list[str], list[str]]:
    told: list[str] = []
    lost = workers.run(
        [Job(name) for name in names],
        upper,
        lambda: nullcontext(Pool(fails)),
        lambda job, found: told.append(job.name + found),
        until,
    )
    return told, [str(each) for each in lost]


def twice(names: str) -> list[str]:
    return [name + name.upper() for name in names]


def test_every_job_is_done_once() -> None:
    told, lost = done("abcdefghijklmnop", lambda name: None)
    assert sorted(told) == twice("abcdefghijklmnop") and lost == []


@pytest.mark.parametrize("error", [BrokenProcessPool("gone"), RuntimeError("lost")])
def test_a_worker_that_is_lost_costs_nothing(error: Exception) -> None:
    left = [error, error]
    told, lost = done("abcdefghijkl", lambda name: left.pop() if name == "c" and left else None)
    assert sorted(told) == twice("abcdefghijkl") and lost == []


def test_who_loses_workers_again_and_again_is_named_and_no_other() -> None:
    told, lost = done("abcdefghijkl", lambda name: BrokenProcessPool("gone") if name == "c" else None)
    assert sorted(told) == twice("abdefghijkl")
    assert lost == ["c: BrokenProcessPool: gone"]


def test_nothing_begins_after_the_time() -> None:
    assert done("abc", lambda name: None, monotonic() - 1) == ([], [])


class Backwards(Executor):
    """What came last is done first."""

    def __init__(self) -> None:
        self.left: list[tuple[Future[Any], Any, Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.left.append((future, fn, args))
        return future

    def go_on(self) -> None:
        future, fn, args = self.left.pop()
        try:
            future.set_result(fn(*args))
        except RuntimeError as error:
            future.set_exception(error)


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> Backwards:
    made, inner = Backwards(), workers.wait

    def wait(futures: Any, **how: Any) -> Any:
        made.go_on()
        return inner(futures, **how)

    monkeypatch.setattr(workers, "wait", wait)
    return made


def test_results_have_the_order_of_the_jobs(backwards: Backwards) -> None:
    def work(job: Job) -> str:
        if job.name == "b":
            raise RuntimeError("no")
        return upper(job)

    each: list[str] = []
    told: list[str] = []
    jobs = [Job(name) for name in "abcd"]
    found = workers.results(
        jobs, work, lambda: nullcontext(backwards), lambda lost: str(lost), each.append, told.append
    )
    assert found == each == ["A", "b: RuntimeError: no", "C", "D"]
    assert [line.rpartition(" ")[2] for line in told] == ["d", "c", "a", "b"]
    assert told[-1] == "4 of 4 jobs, 0 s left: b"


def test_how_far_is_said_now_and_then_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    now = [100.0]
    monkeypatch.setattr(workers, "monotonic", lambda: now[0])
    how_far = ProgressLines(5, "cases", lines.append, every=3)
    for name in "abcde":
        now[0] += 2
        how_far(name)
    assert lines == ["1 of 5 cases, 8 s left: a", "3 of 5 cases, 4 s left: c", "5 of 5 cases, 0 s left: e"]


def test_errors_arrive_whole() -> None:
    error = WrongUse(Problem("a", "b", "c", "d"), Problem("e"))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is WrongUse and again.problems == error.problems and str(again) == str(error)


@pytest.mark.parametrize("address", ["dask", "dask://", "ray://host:1"])
def test_unknown_executors_are_refused(address: str) -> None:
    with pytest.raises(WrongUse, match=r"there is no executor .*\n.*\n.*\n.*dask://localhost:8786"):
        workers.opener(address)


def slowly(job: Job) -> str:
    sleep(0.1)
    return upper(job)


@contextmanager
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        yield made


def killing(made: Any, told: list[str], at: int = 1) -> Callable[[str], None]:
    """Collects what is told, and kills the first worker of a cluster at that line."""
    first = next(iter(made.workers.values())).process.process.pid

    def kill(line: str) -> None:
        told.append(line)
        if len(told) == at:
            os.kill(first, signal.SIGKILL)

    return kill


def test_a_cluster_that_loses_a_worker_gives_what_one_process_gives() -> None:
    names = [f"job{number}" for number in range(20)]
    told: list[str] = []
    with cluster() as made:
        opened = workers.opener(f"dask://{made.scheduler_address.removeprefix('tcp://')}")
        jobs = [Job(name) for name in names]
        found = workers.results(jobs, slowly, opened, _not_lost, told=killing(made, told, 3))
    assert found == [name.upper() for name in names] and len(told) == len(names)


def _not_lost(lost: LostJob[Job]) -> str:
    raise AssertionError(str(lost))
