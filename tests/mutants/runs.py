"""Runs of tests with a mutant in place of the code, each in a process of its own, which begins with what no mutant
changes imported already."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pytest

from .draw import ROOT, Mutant
from .quickest_first import TIMES

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".cache", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
PATIENCE = 4  # a mutant with which tests take so many times as long does not end
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["numpy", "onnx.reference", "ml_dtypes", "jinja2", "cffi", "hypothesis", "pytest"])


@dataclass(frozen=True)
class _Unchanged:
    """What tests take without any change."""

    seconds: float
    times: Path  # of each, for the plugin quickest_first


class Runs:
    """Runs of tests in checkouts that mutants can be written into, one for each worker."""

    def __init__(self, scratch: Path, workers: int) -> None:
        self.scratch, self.workers = scratch, workers
        self.unchanged: dict[tuple[str, ...], _Unchanged] = {}
        self.folders: Queue[Path] = Queue()
        for number in range(workers):
            folder = shutil.copytree(ROOT, scratch / str(number), ignore=LEFT_OUT, symlinks=True)
            # Files may change twice within a second, so bytecode is known by a hash, and made once.
            compiled = [
                "-m",
                "compileall",
                "-q",
                "--invalidation-mode",
                "checked-hash",
                "mccompile",
                "kernels_templates",
            ]
            subprocess.run([sys.executable, *compiled], cwd=folder, check=True)
            self.folders.put(Path(folder))

    def noticed(self, name: str, mutants: Sequence[Mutant]) -> int:
        """How many of them; prints the others."""
        begin = time.monotonic()
        for tests in dict.fromkeys(mutant.tests for mutant in mutants):
            if tests not in self.unchanged:
                self.unchanged[tests] = self.run_unchanged(tests)
        with ThreadPoolExecutor(self.workers) as pool:
            answers = list(pool.map(self.is_noticed, mutants))
        for mutant in (m for m, was_noticed in zip(mutants, answers, strict=True) if not was_noticed):
            print(f"survives:\n{mutant.changes()}", flush=True)
        print(f"{name}: {sum(answers)} of {len(mutants)} noticed ({time.monotonic() - begin:.0f} s)", flush=True)
        return sum(answers)

    def run_unchanged(self, tests: tuple[str, ...]) -> _Unchanged:
        times, begin = self.scratch / f"times{len(self.unchanged)}.json", time.monotonic()
        if not _passes(self.folders.queue[0], tests, times, None):
            sys.exit(f"fails without any change: pytest {shlex.join(tests)}")
        return _Unchanged(time.monotonic() - begin, times)

    def is_noticed(self, mutant: Mutant) -> bool:
        folder = self.folders.get()
        original = (folder / mutant.file).read_bytes()
        known = self.unchanged[mutant.tests]
        try:
            (folder / mutant.file).write_text(mutant.text, encoding="utf-8")
            return not _passes(folder, mutant.tests, known.times, PATIENCE * known.seconds + 10)
        finally:
            (folder / mutant.file).write_bytes(original)
            self.folders.put(folder)


def _passes(folder: Path, tests: tuple[str, ...], times: Path, timeout: float | None) -> bool:
    run = _PROCESSES.Process(target=_session, args=(folder, tests, times))
    run.start()
    try:
        run.join(timeout)
        return run.exitcode == 0
    finally:
        with contextlib.suppress(ProcessLookupError):  # and what it has started
            os.killpg(run.pid or 0, signal.SIGKILL)
        run.join()


def _session(folder: Path, tests: tuple[str, ...], times: Path) -> None:
    """Runs pytest in a process that has imported what no mutant changes."""
    os.setsid()
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    # Bytecode is never written: files may change twice within a second.
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", TIMES: str(times)}
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.quickest_first", *tests]))
