"""Who does the work: any executor of concurrent.futures. What it gives does not depend on the order in which it comes.

Invariant: a job that was under way when a worker was lost is done again, alone; one that loses workers again and again
is given up and named. Each job that is done is told once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import get_context
from time import monotonic
from typing import Any

from ...base.errors import Problem, WrongUse
from .jobs import Found, Job, measured

ATTEMPTS = 3
Open = Callable[[], AbstractContextManager[Executor]]
Finished = Callable[[Job, Found], None]


def opener(address: str, apart: bool) -> Open:
    """`address`: of a scheduler of dask, or nothing: processes of this machine. `apart`: one at a time, since they
    would disturb each other's time."""
    if not address:
        return lambda: _processes(1 if apart else processors())
    scheme, _, place = address.partition("://")
    if scheme != "dask" or not place:
        why, fix = "executors are dask://HOST:PORT, or processes of this machine", "--executor dask://localhost:8786"
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


@contextmanager
def _dask(place: str) -> Iterator[Executor]:
    try:
        import distributed
    except ImportError as error:
        fix = "pip install 'mccompile[tune]'"
        raise WrongUse(Problem("dask.distributed is not installed", "--executor", str(error), fix)) from None
    try:
        connect: Any = distributed.Client
        client = connect(f"tcp://{place}", timeout=30, set_as_default=False)
    except OSError as error:
        fix = "start it with `dask scheduler`, and workers that have the same mccompile"
        raise WrongUse(Problem(f"no scheduler of dask at {place}", "--executor", str(error), fix)) from None
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


def run(jobs: Sequence[Job], opened: Open, finished: Finished, until: float | None = None) -> list[str]:
    """Does the jobs in their order, tells each that is done, and gives what failed. After `until` none is begun."""
    work = _Work(jobs, finished, until)
    while work.left and not work.is_late:
        with opened() as executor:
            work.go_on(executor)
    return work.failures


class _Work:
    def __init__(self, jobs: Sequence[Job], finished: Finished, until: float | None) -> None:
        self.left, self.finished, self.until = list(jobs), finished, until
        self.attempts: dict[int, int] = {}  # that lost a worker, by the id of a job
        self.failures: list[str] = []
        self.under_way: dict[Future[Found], Job] = {}

    @property
    def is_late(self) -> bool:
        return self.until is not None and monotonic() > self.until

    def go_on(self, executor: Executor) -> None:
        """Until all is done, or the executor is broken."""
        self.under_way, broken = {}, False
        while not broken and (self.under_way or (self.left and not self.is_late)):
            try:
                while self.has_room():
                    job = self.left.pop(0)
                    self.under_way[executor.submit(measured, job)] = job
            except RuntimeError as error:  # broken since the last result
                self.lost(job, error)
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
        return len(self.under_way) < (1 if suspects else 4 * processors())

    def ended(self, future: Future[Found]) -> bool:
        """Tells what came; is the executor broken?"""
        job, error = self.under_way.pop(future), future.exception()
        if error is None:
            self.finished(job, future.result())
            return False
        self.lost(job, error)
        return isinstance(error, BrokenExecutor)

    def lost(self, job: Job, error: BaseException) -> None:
        self.attempts[id(job)] = self.attempts.get(id(job), 0) + 1
        if self.attempts[id(job)] < ATTEMPTS:
            self.left.insert(0, job)
        else:
            self.failures.append(f"{job.name}: {type(error).__name__}: {error}")
