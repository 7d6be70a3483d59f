"""Everyday blocks at everyday sizes on every target, whatever is preferred: all compile, and all are equal to the
reference. `python -m tests.sweep --seconds 600 --targets generic,cortex-m4`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mccompile.base.errors import STRICT
from mccompile.driver import Options
from tests.fuzz import machines, oracle, trial
from tests.fuzz.machines import Build, Machine
from tests.fuzz.trial import Trial

from .blocks import BLOCKS, SIZES, subject

PREFER = ("time", "ram", "flash", "balanced")
EMULATED = 64  # larger sizes take emulators too long
GOOD = (trial.OK, trial.NEAR)


def trials(
    names: Sequence[str], sizes: Sequence[int], prefer: Sequence[str], builds: Sequence[Build]
) -> Iterator[Trial]:
    """All programs of a block, one after the other; the reference is asked once for each size."""
    for name in names:
        for quantized in BLOCKS[name].kinds:
            for size in sizes:
                made = subject(name, quantized, size)
                runs = made.runs([size])
                wanted = oracle.wanted(made, runs)
                for build in builds:
                    if size > EMULATED and build.machine.target in ("cortex-m4", "cortex-m55", "rv32imc", "aarch64"):
                        continue
                    for said in prefer:
                        options = Options(target=build.machine.target, prefer=said)
                        yield Trial(size, int(quantized), 0, made, options, build, runs, wanted, asked=name)


def build_of(machine: Machine) -> Build:
    return machines.draw(machine, np.random.default_rng(1))


def judged(batch: Sequence[Trial], folder: Path) -> Iterator[tuple[str, Trial]]:
    """Verdicts of programs of one build, and what each is."""
    trial.run(batch, folder)
    for each in batch:
        kind = "int8" if each.number else "float"
        prefer = f"--target {each.options.target} --prefer {each.options.prefer}"
        yield f"{each.asked} of {each.seed}, {kind}, {prefer}", each


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--targets", default="", help="only these, with commas between")
    parser.add_argument("--blocks", default="", help="only those whose names hold this")
    arguments = parser.parse_args()
    os.environ[STRICT] = "1"
    end, counts = time.monotonic() + arguments.seconds, Counter[str]()
    names = [name for name in BLOCKS if arguments.blocks in name]
    asked = tuple(filter(None, arguments.targets.split(",")))
    with tempfile.TemporaryDirectory(prefix="sweep-") as scratch:
        for machine in machines.one_each(machines.available(asked)):
            for name in names:
                found = list(trials([name], SIZES, PREFER, [build_of(machine)]))
                for start in range(0, len(found), machine.per_batch):
                    if time.monotonic() > end:
                        counts["not tried"] += len(found) - start
                        break
                    for what, each in judged(found[start : start + machine.per_batch], Path(scratch, "batch")):
                        assert each.verdict is not None
                        counts[each.verdict.kind] += 1
                        if each.verdict.kind not in GOOD:
                            print(f"{each.verdict.kind}: {what}\n  {each.verdict.detail}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return int(not set(counts) <= {*GOOD, "not tried"})


if __name__ == "__main__":
    sys.exit(main())
