"""Changes one place of the code at a time and asks whether a test fails: `make mutants`.

A mutant that no test notices survives. The score is the share of those that were noticed. Mutants are drawn by a seed,
so a run can be repeated; the named ones are tried besides, and all of them must be noticed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from .draw import ROOT, Mutant, drawn
from .named import NAMED
from .quickest_first import TIMES
from .subjects import SUBJECTS

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".cache", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
LEAST_SCORE = 85.0  # per cent
PATIENCE = 4  # a mutant with which tests take so many times as long does not end


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=30, help="mutants of each subject")
    options.add_argument("--jobs", type=int, default=2)
    names = ["named", *(subject.name for subject in SUBJECTS)]
    options.add_argument("--only", action="append", choices=names)
    asked = options.parse_args()
    wanted = asked.only or names
    noticed, tried, lost = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        runs = _Runs(Path(scratch), asked.jobs)
        if "named" in wanted:
            lost = len(NAMED) - runs.noticed("named", [named.mutant() for named in NAMED])
        for subject in SUBJECTS:
            if subject.name in wanted:
                mutants = drawn(subject, asked.count, asked.seed)
                noticed, tried = noticed + runs.noticed(subject.name, mutants), tried + len(mutants)
    score = 100 * noticed / max(tried, 1)
    if tried:
        print(f"mutation score {score:.1f} % ({noticed} of {tried}, seed {asked.seed})")
    return 1 if lost or (tried and score < LEAST_SCORE) else 0


@dataclass(frozen=True)
class _Unchanged:
    """What tests take without any change."""

    seconds: float
    times: Path  # of each, for the plugin quickest_first


class _Runs:
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
    plugins = ["-p", "no:cacheprovider", "-p", "tests.mutants.quickest_first"]
    command = [sys.executable, "-m", "pytest", "-x", "-q", *plugins, *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", TIMES: str(times)}
    run = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return run.wait(timeout) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):  # and what it has started
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


if __name__ == "__main__":
    sys.exit(main())
