"""Executors that lose workers, and pools that break: every job is done and told once, or named as failed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from time import monotonic
from typing import Any

import pytest

from mccompile.base.errors import WrongUse
from mccompile.kernels.measurements import Key
from mccompile.measure.tuning import workers
from mccompile.measure.tuning.jobs import Built, Found, Job
from mccompile.targets import api

TARGET = api.load("cortex-m4")


def job(name: str) -> Job:
    return Job((Built(Key(name, *["k"] * 6), {}, 1.0),), TARGET)


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
            future.set_result(Found((), ()))
        else:
            self.broken = isinstance(error, BrokenProcessPool)
            future.set_exception(error)
        return future


def done(
    names: str, fails: Callable[[str], Exception | None], until: float | None = None
) -> tuple[list[str], list[str]]:
    told: list[str] = []
    failures = workers.run(
        [job(name) for name in names], lambda: nullcontext(Pool(fails)), lambda one, _: told.append(one.name), until
    )
    return told, failures


def test_every_job_is_done_once() -> None:
    told, failures = done("abcdefghijklmnop", lambda name: None)
    assert sorted(told) == list("abcdefghijklmnop") and failures == []


@pytest.mark.parametrize("error", [BrokenProcessPool("gone"), RuntimeError("lost")])
def test_a_worker_that_is_lost_costs_nothing(error: Exception) -> None:
    left = [error, error]
    told, failures = done("abcdefghijkl", lambda name: left.pop() if name == "c" and left else None)
    assert sorted(told) == list("abcdefghijkl") and failures == []


def test_who_loses_workers_again_and_again_is_named_and_no_other() -> None:
    told, failures = done("abcdefghijkl", lambda name: BrokenProcessPool("gone") if name == "c" else None)
    assert sorted(told) == list("abdefghijkl")
    assert failures == ["c: BrokenProcessPool: gone"]


def test_nothing_begins_after_the_time() -> None:
    assert done("abc", lambda name: None, monotonic() - 1) == ([], [])


@pytest.mark.parametrize("address", ["dask", "dask://", "ray://host:1"])
def test_unknown_executors_are_refused(address: str) -> None:
    with pytest.raises(WrongUse, match=r"there is no executor .*\n.*\n.*\n.*dask://localhost:8786"):
        workers.opener(address, False)
