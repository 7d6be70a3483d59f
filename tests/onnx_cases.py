"""Cases of ONNX's backend tests, in processes that are replaced when a case crashes or hangs, so it is one failure.

A worker starts a server once, which collects all cases and forks a runner for them: making the cases takes seconds,
and a worker of a cluster may have threads, or no children of its own. A runner keeps what it has imported.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
import unittest
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import onnx.backend.test
from onnx import ModelProto

from mccompile.backend import MccompileBackend, Prepared
from mccompile.base.errors import CheckFailed, MccError

TOP = Path(__file__).resolve().parent.parent
SANITIZE = ("-g", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
PASSED, REFUSED, WRONG, BROKEN, EXCLUDED = "passed", "refused", "wrong", "broken", "excluded"


@dataclass(frozen=True)
class Outcome:
    name: str
    status: str
    detail: str = ""


@dataclass(frozen=True)
class How:
    """What is the same for all cases."""

    flags: tuple[str, ...]  # of the C compiler
    without: frozenset[str]
    optimize: bool
    sanitize: bool
    timeout: float  # seconds

    @property
    def options(self) -> dict[str, Any]:
        flags = (*self.flags, *(SANITIZE if self.sanitize else ()))
        return {"flags": flags, "without": self.without, "optimize": self.optimize}


@dataclass(frozen=True)
class Case:
    name: str
    how: How


def tried(case: Case) -> Outcome:
    """By the server of this worker."""
    with _LOCK:
        try:
            return _server(case.how).outcome(case.name)
        except (EOFError, OSError):
            _server.cache_clear()
            raise


_LOCK = Lock()


class _Server:
    def __init__(self, how: How) -> None:
        command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
        environment = _under_sanitizer() if how.sanitize else dict(os.environ)
        self.process = subprocess.Popen(
            command, cwd=TOP, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.tell(how)

    def tell(self, what: Any) -> None:
        assert self.process.stdin is not None
        pickle.dump(what, self.process.stdin)
        self.process.stdin.flush()

    def outcome(self, name: str) -> Outcome:
        self.tell(name)
        assert self.process.stdout is not None
        found: Outcome = pickle.load(self.process.stdout)
        return found


_server = cache(_Server)


def serve() -> None:
    """The server: what it is told comes in, outcomes go out, until its worker ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    how: How = pickle.load(sys.stdin.buffer)
    with tempfile.TemporaryDirectory(prefix="onnx-suite-") as home:
        os.environ["ONNX_HOME"] = home  # the suite keeps the data that it makes there
        os.environ.pop("ONNX_MODELS", None)
        cases = dict(collect(how.options))
        runner = _Runner(cases)
        while True:
            try:
                name = pickle.load(sys.stdin.buffer)
            except EOFError:
                runner.end()
                return
            outcome, usable = runner.outcome(name, how.timeout)
            if not usable:
                runner = _Runner(cases)
            pickle.dump(outcome, answers)
            answers.flush()


def _under_sanitizer() -> dict[str, str]:
    """The sanitizer's library has to be loaded before everything else."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    # Python leaves memory to the system when it ends; that is not a leak of the model's
    extra = {"LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0", "CC": "gcc"}
    return {**os.environ, **extra}


def collect(options: dict[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every case for this device, as onnx's runner has it."""

    class Compiled(MccompileBackend):
        @classmethod
        def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
            return True  # what cannot be compiled is a failure, not a case to be skipped

        @classmethod
        def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
            return super().prepare(model, device, **options)

    holder = type("Cases", (unittest.TestCase,), {})()
    with np.errstate(all="ignore"):  # making the data divides by zero on purpose
        groups = onnx.backend.test.BackendTest(Compiled, __name__).test_cases
    for group in groups.values():
        for name, test in vars(group).items():
            if name.startswith("test_") and name.endswith("_cpu"):
                yield name.removesuffix("_cpu"), test.__get__(holder)


class _Runner:
    """A process that runs case after case."""

    def __init__(self, cases: dict[str, Callable[[], None]]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_run_cases, args=(cases, theirs, self.pipe))
        self.process.start()
        theirs.close()

    def outcome(self, name: str, timeout: float) -> tuple[Outcome, bool]:
        """With whether the process can go on."""
        self.pipe.send(name)
        if not self.pipe.poll(timeout):
            self.process.kill()
            self.process.join()
            return Outcome(name, BROKEN, f"ran longer than {timeout:.0f} seconds"), False
        try:
            return Outcome(name, *self.pipe.recv()), True
        except EOFError:
            self.process.join()
            return Outcome(name, BROKEN, f"the process ended with {self.process.exitcode}"), False

    def end(self) -> None:
        self.pipe.close()
        self.process.join()


def _run_cases(cases: dict[str, Callable[[], None]], pipe: Connection, other_end: Connection) -> None:
    other_end.close()  # so the pipe ends when the server closes it
    with tempfile.TemporaryFile() as nobody_reads:
        os.dup2(nobody_reads.fileno(), 1)
    with suppress(EOFError):
        while True:
            pipe.send(_run(cases[pipe.recv()]))


def _run(test: Callable[[], None]) -> tuple[str, str]:
    try:
        test()
    except CheckFailed as error:
        return WRONG, _one_line(str(error))
    except MccError as error:
        problem = error.problems[0]
        refused = error.exit_code == 3
        return (REFUSED if refused else BROKEN), _one_line(f"{problem.where}: {problem.what}: {problem.why}")
    except AssertionError as error:
        return WRONG, _one_line(str(error))
    except Exception as error:  # whatever happens to one case must not hide the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        return BROKEN, _one_line(f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}")
    return PASSED, ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
