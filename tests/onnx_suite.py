"""ONNX's own backend tests, every one that the installed onnx collects: `make onnx-suite`.

Each case runs in a process of its own, so one that crashes or hangs is one failure. Inputs are inputs, never constants;
expected outputs are only compared with, with the suite's own tolerances. What a case says of the shapes of its outputs
may serve as bounds, as any model's may. A case counts as passed only if it ran: refused is failed, and so is a case
that onnx_suite_exclusions.txt leaves out, with its reason. Fails if a case fails that the file does not name.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import numpy as np
import onnx.backend.test
from onnx import ModelProto, TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mccompile.backend import MccompileBackend, Prepared
from mccompile.base.errors import CheckFailed, MccError

EXCLUSIONS = Path(__file__).with_name("onnx_suite_exclusions.txt")
SANITIZE = ("-g", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
PASSED, REFUSED, WRONG, BROKEN, EXCLUDED = "passed", "refused", "wrong", "broken", "excluded"


@dataclass(frozen=True)
class Outcome:
    name: str
    status: str
    detail: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression that names of cases must match")
    parser.add_argument("--without", default="", help="optional passes to leave out, with commas between")
    parser.add_argument("--O0", dest="plain", action="store_true", help="leave out all optional passes")
    parser.add_argument("--cflags", default="-std=c99 -O1", help="for the C compiler")
    parser.add_argument("--sanitize", action="store_true", help="with AddressSanitizer and UndefinedBehaviorSanitizer")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one case")
    parser.add_argument("--list", type=Path, default=Path("build/onnx_suite.txt"), help="where outcomes are written")
    arguments = parser.parse_args()
    if arguments.sanitize:
        under_sanitizer()
    options: dict[str, Any] = {"flags": (*arguments.cflags.split(), *(SANITIZE if arguments.sanitize else ()))}
    options["without"] = frozenset(name for name in arguments.without.split(",") if name)
    options["optimize"] = not arguments.plain
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="onnx-suite-") as home:
        os.environ["ONNX_HOME"] = home  # the suite keeps the data that it makes there
        os.environ.pop("ONNX_MODELS", None)
        cases = {name: test for name, test in collect(options) if re.search(arguments.only, name)}
        warm_up(dict(options))
        outcomes = sorted(run_all(cases, arguments.jobs, arguments.timeout), key=lambda outcome: outcome.name)
    arguments.list.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{o.status:<8} {o.name}{'  ' + o.detail if o.detail else ''}\n" for o in outcomes]
    arguments.list.write_text("".join(lines), encoding="utf-8")
    print_summary(outcomes, time.perf_counter() - start, arguments.list)
    return int(any(outcome.status not in (PASSED, EXCLUDED) for outcome in outcomes))


def under_sanitizer() -> None:
    """Starts this program anew with the sanitizer's library loaded before everything else, as it has to be."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    # Python leaves memory to the system when it ends; that is no leak of the model's
    extra = {"LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0", "CC": "gcc"}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **extra})


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


def exclusions() -> dict[str, str]:
    """Reason by name of the case."""
    lines = EXCLUSIONS.read_text(encoding="utf-8").splitlines() if EXCLUSIONS.is_file() else []
    pairs = (line.split(":", 1) for line in lines if line.strip() and not line.startswith("#"))
    return {name.strip(): reason.strip() for name, reason in pairs}


def warm_up(options: dict[str, Any]) -> None:
    """What every case needs is imported before their processes part."""
    node = helper.make_node("Add", ["x", "y"], ["z"])
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xyz"]
    model = helper.make_model(helper.make_graph([node], "warm", infos[:2], infos[2:]))
    MccompileBackend.prepare(model, **options)


def run_all(cases: dict[str, Callable[[], None]], jobs: int, timeout: float) -> Iterator[Outcome]:
    left_out = exclusions()
    waiting = [name for name in cases if name not in left_out]
    yield from (Outcome(name, EXCLUDED, left_out[name]) for name in cases if name in left_out)
    running: dict[Connection, tuple[str, ForkProcess, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop()
            ours, theirs = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.get_context("fork").Process(target=_child, args=(cases[name], theirs))
            process.start()
            theirs.close()
            running[ours] = name, process, time.monotonic() + timeout
        ready = wait(list(running), timeout=1.0)
        for pipe, (name, process, end) in list(running.items()):
            if pipe in ready:
                yield _outcome(name, pipe, process)
            elif time.monotonic() > end:
                process.kill()
                process.join()
                yield Outcome(name, BROKEN, f"ran longer than {timeout:.0f} seconds")
            else:
                continue
            pipe.close()
            del running[pipe]


def _outcome(name: str, pipe: Connection, process: ForkProcess) -> Outcome:
    try:
        status, detail = pipe.recv()
    except EOFError:
        process.join()
        return Outcome(name, BROKEN, f"the process ended with {process.exitcode}")
    process.join()
    return Outcome(name, status, detail)


def _child(test: Callable[[], None], pipe: Connection) -> None:
    with tempfile.TemporaryFile() as nobody_reads:
        os.dup2(nobody_reads.fileno(), 1)
    pipe.send(_run(test))
    pipe.close()


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


def print_summary(outcomes: list[Outcome], seconds: float, path: Path) -> None:
    counts = Counter(outcome.status for outcome in outcomes)
    for outcome in outcomes:
        if outcome.status not in (PASSED, EXCLUDED):
            print(f"{outcome.status:<8} {outcome.name}  {outcome.detail[:160]}")
    passed = counts[PASSED]
    parts = ", ".join(f"{counts[status]} {status}" for status in (REFUSED, WRONG, BROKEN, EXCLUDED))
    print(f"{passed} passed, {len(outcomes) - passed} failed ({parts}) in {seconds:.0f} s; see {path}")


if __name__ == "__main__":
    sys.exit(main())
