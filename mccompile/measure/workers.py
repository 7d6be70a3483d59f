"""Who does the work: any executor of concurrent.futures. What it gives does not depend on the order in which it comes.

Invariant: a job that was under way when a worker was lost is done again, alone; one that loses workers again and again
is given up and named. Each job that is done is told once. So a job has to give the same whoever does it, and however
often; a worker has to have what it names: this version of mccompile, compilers, emulators, files under the same paths.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from math import inf
from multiprocessing import get_context
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from ..base.errors import Problem, WrongUse
from ..base.extras import install
from ..base.records import dataclass

ATTEMPTS = 3
FORM = "dask://HOST:PORT"
Open = Callable[[], AbstractContextManager[Executor]]


class Named(Protocol):
    @property
    def name(self) -> str: ...


Job = TypeVar("Job", bound=Named)
Found = TypeVar("Found")


@dataclass(frozen=True)
class LostJob(Generic[Job]):
    """A job that nobody has brought to an end."""

    job: Job
    why: str

    def __str__(self) -> str:
        return f"{self.job.name}: {self.why}"


def opener(address: str, count: int = 0) -> Open:
    """`address`: of a scheduler of dask, or nothing: so many processes of this machine, or one for each processor."""
    if not address:
        return lambda: _processes(count or processors())
    scheme, _, place = address.partition("://")
    if scheme != "dask" or not place:
        why, fix = f"executors are {FORM}, or processes of this machine", "--executor dask://localhost:8786"
        raise WrongUse(Problem(f"there is no executor {address!r}", "--executor", why, fix))
    return lambda: _dask(place)


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _processes(count: int) -> Iterator[Executor]:
    executor = ProcessPoolExecutor(count, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


class _Cluster(Executor):
    """The workers that a scheduler of dask has at the moment."""

    def __init__(self, client: Any) -> None:
        self.client, self.inner = client, client.get_executor(pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        found: Future[Any] = self.inner.submit(fn, *args, **kwargs)
        return found

    @property
    def size(self) -> int:
        return sum(self.client.nthreads().values())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.inner.shutdown(wait=wait)


@contextmanager
def _dask(place: str) -> Iterator[Executor]:
    try:
        import distributed
    except ImportError as error:
        raise WrongUse(
            Problem("dask.distributed is not installed", "--executor", str(error), install("tune"))
        ) from None
    try:
        connect: Any = distributed.Client
        client = connect(f"tcp://{place}", timeout=30, set_as_default=False)
    except OSError as error:
        fix = "start it with `dask scheduler`, and workers that have the same mccompile"
        raise WrongUse(Problem(f"no scheduler of dask at {place}", "--executor", str(error), fix)) from None
    with client:
        executor = _Cluster(client)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


def run(
    jobs: Sequence[Job],
    work: Callable[[Job], Found],
    opened: Open,
    finished: Callable[[Job, Found], None],
    until: float | None = None,
) -> list[LostJob[Job]]:
    """Does the jobs in their order, tells each that is done, and gives those that are lost. After `until` none is
    begun."""
    under_way = _Work(jobs, work, finished, until)
    while under_way.left and not under_way.is_late:
        with opened() as executor:
            under_way.go_on(executor)
    return under_way.lost


def results(
    jobs: Sequence[Job],
    work: Callable[[Job], Found],
    opened: Open,
    instead: Callable[[LostJob[Job]], Found],
    each: Callable[[Found], None] = lambda found: None,
    told: Callable[[str], None] = lambda line: None,
    every: float = 0.0,
) -> list[Found]:
    """What all jobs have given, in their order; of those that are lost what `instead` makes of them. `each` gets one
    as soon as all before it are there, `told` a line for one that comes, at most every so many seconds."""
    found: dict[int, Found] = {}
    given, how_far = 0, ProgressLines(len(jobs), "jobs", told, every)

    def came(job: Job, one: Found) -> None:
        nonlocal given
        found[id(job)] = one
        how_far(job.name)
        while given < len(jobs) and id(jobs[given]) in found:
            each(found[id(jobs[given])])
            given += 1

    for lost in run(jobs, work, opened, came):
        came(lost.job, instead(lost))
    return [found[id(job)] for job in jobs]


class ProgressLines:
    """Lines that say how many jobs are done, and when all will be; at most one in so many seconds, and the last."""

    def __init__(self, count: int, what: str, told: Callable[[str], None], every: float = 0.0) -> None:
        self.count, self.what, self.told, self.every = count, what, told, every
        self.done, self.start, self.last = 0, monotonic(), -inf

    def __call__(self, said: str) -> None:
        self.done, now = self.done + 1, monotonic()
        if now - self.last >= self.every or self.done == self.count:
            self.last = now
            left = (now - self.start) / self.done * (self.count - self.done)
            self.told(f"{self.done} of {self.count} {self.what}, {left:.0f} s left: {said}")


class _Work(Generic[Job, Found]):
    def __init__(
        self,
        jobs: Sequence[Job],
        work: Callable[[Job], Found],
        finished: Callable[[Job, Found], None],
        until: float | None,
    ) -> None:
        self.left, self.work, self.finished, self.until = list(jobs), work, finished, until
        self.attempts: dict[int, int] = {}  # that lost a worker, by the id of a job
        self.lost: list[LostJob[Job]] = []
        self.under_way: dict[Future[Found], Job] = {}
        self.size = 1  # workers that there are

    @property
    def is_late(self) -> bool:
        return self.until is not None and monotonic() > self.until

    def go_on(self, executor: Executor) -> None:
        """Until all is done, or the executor is broken."""
        self.under_way, broken = {}, False
        while not broken and (self.under_way or (self.left and not self.is_late)):
            self.size = executor.size if isinstance(executor, _Cluster) else processors()
            try:
                while self.has_room():
                    job = self.left.pop(0)
                    self.under_way[executor.submit(self.work, job)] = job
            except RuntimeError as error:  # broken since the last result
                self.failed(job, error)
                broken = True
            if self.under_way:
                done, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    broken |= self.ended(future)
        for future in list(self.under_way):
            with suppress(Exception):
                future.result()
            self.ended(future)

    def has_room(self) -> bool:
        """Only a few jobs wait in the executor, so that a limit of time ends it soon; one that lost a worker runs
        alone, so that no other one is blamed."""
        if not self.left or self.is_late:
            return False
        suspects = [job for job in (self.left[0], *self.under_way.values()) if id(job) in self.attempts]
        return len(self.under_way) < (1 if suspects else 4 * max(1, self.size))

    def ended(self, future: Future[Found]) -> bool:
        """Tells what came; is the executor broken?"""
        job, error = self.under_way.pop(future), future.exception()
        if error is None:
            self.finished(job, future.result())
            return False
        self.failed(job, error)
        return isinstance(error, BrokenExecutor)

    def failed(self, job: Job, error: BaseException) -> None:
        self.attempts[id(job)] = self.attempts.get(id(job), 0) + 1
        if self.attempts[id(job)] < ATTEMPTS:
            self.left.insert(0, job)
        else:
            self.lost.append(LostJob(job, f"{type(error).__name__}: {error}"))
