"""What evidence claims of random programs, on emulated cores: `python -m tests.fuzz.claims --seed 1 --seconds 100`.

Of each program, with random options, the certificates are checked. Runs with constants, extremes, infinities, NaN and
random numbers follow one another, each with the state that the one before has left: they take at most the stack of the
bound, which is at most 1.15 times that and 64 bytes, and at most the instructions of the bound; and each step takes the
same instructions in all of them, unless evidence names it. Status 1 says that something does not hold. Nothing is done
where the compiler or the emulator is missing.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embedded.bounds import around
from mccompile.base.errors import BadFile, InternalError, MccError, UnsupportedModel, WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.evidence.folder import checked, checked_ranges, checked_trace
from mccompile.evidence.stack import of_graph
from mccompile.evidence.time import named, runs
from mccompile.evidence.time_bound import aligned
from mccompile.frontend.listed import nodes_of
from mccompile.frontend.load import load_proto
from mccompile.measure.building import flags_of
from mccompile.targets.api import Target
from mccompile.toolchain.bounds.program import bound
from mccompile.toolchain.emulate import Emulated
from mccompile.toolchain.model_report import Tensor
from mccompile.toolchain.ticks import count_steps
from mccompile.toolchain.tools import missing

from . import options, subject, trial
from .machines import Machine

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55")
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")
FOLLOWED = 30  # seconds that a bound may take
INPUTS = 9  # eight constant ones, and a random one
DRAWN = ("prefer", "mem", "slices", "stream", "keep_inputs", "external", "recompute", "planner")


@dataclass(frozen=True)
class Seen:
    """What runs took that followed one another."""

    init_stack: int | None
    run_stack: int | None
    instructions: int  # the most
    steps: Sequence[tuple[int, int]]  # the least and the most of each


def asked(drawn: subject.Subject, core: str, chance: np.random.Generator) -> Options:
    """Options that code with evidence may have."""
    draws, machine = options.choices(), Machine(core, 1)
    found = {name: value for name in DRAWN if (value := draws[name](chance, drawn, machine)) is not None}
    if any(pool.copied for pool in found.get("mem", ())):
        del found["mem"]  # programs copy there: boards have nothing that does
    return Options(target=core, dims=options.dims(drawn), bounds=drawn.bounds, state=drawn.state, **found)


def inputs_of(drawn: subject.Subject, given: Sequence[Tensor], seed: int, count: int) -> list[Mapping[str, np.ndarray]]:
    """What the subject draws; then anything that a type can hold for its floats, beside the others as drawn."""
    first = drawn.runs([seed])[0]
    fits = all(t.name in first and first[t.name].shape == t.static_shape for t in given if t.is_static)  # no stream
    own = {t.name: first[t.name] for t in given} if fits else {}
    floats = [t for t in given if t.dtype.is_float]
    is_any = not drawn.free and all(t.is_static for t in given) and len(own) + len(floats) >= len(given)
    return [own] * fits + [{**own, **each} for each in runs(floats, count * bool(floats and is_any), seed)]


def seen(package: Package, target: Target, built: Emulated, inputs: Sequence[Mapping[str, np.ndarray]]) -> Seen:
    steps = len([*package.plan.steps()])
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        package.write(Path(scratch, "out"))
        package.write_ticking(Path(scratch, "out"))
        ticking = Emulated.build(Path(scratch, "out"), target, None, flags_of(package, target), ticks=steps)
        state: bytes | None = None
        counts, taken = [], []
        for each in inputs:
            counts.append(built.count(each, state=state))
            taken.append(count_steps(ticking, each, sys.maxsize, steps, state))
            state = built.run_twice(each, state)[0].state if built.report.state_bytes else None
    table = np.array(taken).reshape(len(taken), steps)
    ends = [(int(low), int(high)) for low, high in zip(table.min(axis=0), table.max(axis=0), strict=True)]
    stacks = [[getattr(c, name) for c in counts] for name in ("init_stack", "run_stack")]
    init, run = (None if None in each else max(each) for each in stacks)
    return Seen(init, run, max(c.run_instructions for c in counts), ends)


def broken(
    drawn: subject.Subject, seed: int, core: str, options: Options | None = None, count: int = INPUTS
) -> tuple[list[str], str]:
    """The claims that do not hold, and what became of the bound on instructions."""
    given = options or asked(drawn, core, np.random.default_rng(seed))
    target = given.resolved_target()
    try:
        package = compile_graph(load_proto(drawn.model, None, given.dims, bounds=given.bounds), given, "claims")
    except (BadFile, UnsupportedModel, WrongUse):
        return [], "refused"
    memory = checked(package)
    checked_trace(package, nodes_of(drawn.model), memory)
    checked_ranges(package, memory)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        package.write(Path(scratch, "out"))
        built = Emulated.build(Path(scratch, "out"), target, None, [*flags_of(package, target), "-g"])
        inputs = inputs_of(drawn, built.report.inputs, seed, count)
        if not inputs:
            return [], "no inputs"
        took = seen(package, target, built, inputs)
        late, kind = late_of(package, target, built, took)
    return [*far_stacks(built, took), *unnamed(package, target, took), *late], kind


def far_stacks(built: Emulated, took: Seen) -> list[str]:
    """Bounds that are below what was used, or far above it."""
    names = ["claims_init", "claims_run"]
    bounds = of_graph(built.call_graph, names)["bounds"]
    found = []
    for name, used in zip(names, (took.init_stack, took.run_stack), strict=True):
        most = bounds[name]["bytes"]
        if used is not None and most is not None and not used <= most <= 1.15 * used + 64:
            found.append(f"{name} took {used} bytes of stack, its bound is {most}")
    return found


def unnamed(package: Package, target: Target, took: Seen) -> list[str]:
    """Steps whose instructions differ, which evidence does not name."""
    found = []
    for step, (low, high) in zip(package.plan.steps(), took.steps, strict=True):
        varying = named(step, target)
        if low != high and not varying.reasons:
            found.append(f"{varying.function} took {low} to {high} instructions, and is not named")
    return found


def late_of(package: Package, target: Target, built: Emulated, took: Seen) -> tuple[list[str], str]:
    """A bound on instructions that a run has exceeded, and what became of the bound."""
    try:
        with trial.limited(FOLLOWED):
            most = bound(built.program, target.compiler, "claims_run", aligned(package)).instructions
    except TimeoutError:
        most = None
    if most is None:
        return [], "no bound of time"
    count = took.instructions - around(built.program, target.compiler, "claims_run")
    wrong = [f"a run took {count} instructions, its bound is {most}"] * (count > most)
    return wrong, "bound" if most <= 1.1 * count else "bound above 1.1"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.claims", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first subject")
    arguments = parser.parse_args()
    if lacking := missing([*TOOLS]):
        print(f"claims of evidence are not checked: {' and '.join(lacking)} not found")
        return 0
    end, number = time.monotonic() + arguments.seconds, arguments.first
    counts: collections.Counter[str] = collections.Counter()
    while time.monotonic() < end:
        drawn, core = subject.draw(arguments.seed, number), CORES[number % len(CORES)]
        try:
            wrong, kind = broken(drawn, number, core)
        except (InternalError, MccError) as failed:
            wrong, kind = [str(failed)], "failed"
        counts[kind] += 1
        counts["wrong"] += bool(wrong)
        for each in wrong:
            print(f"--seed {arguments.seed} --first {number}, {core}: {each}", flush=True)
        number += 1
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
