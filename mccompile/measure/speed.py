"""How fast a model runs on this machine: median and spread of whole runs, and the time of each step.

Whole runs are timed as they are; steps in a second build that takes the time after each of them. Shares of the peak are
of the multiply-adds that one core is measured to do on registers.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.provenance import show
from ..base.records import dataclass
from ..base.stages import stage
from ..check.inputs import random_sets
from ..driver import Options, compile_graph, read, settled
from ..emit.package import Package
from ..emit.summary import table
from ..plan.ir import Step
from ..toolchain.run import Model
from .building import own_functions, refuse_undefined
from .handing import as_handed_over
from .limits import peak_once

SECONDS = 1.0  # of each of the two builds, roughly
FEWEST = 5  # runs


@dataclass(frozen=True)
class Speed:
    package: Package
    runs: tuple[float, ...]  # seconds, sorted
    steps: tuple[tuple[Step, float], ...]  # seconds of each in a run, the median
    peak: float  # GFLOP/s of one core
    functions: Mapping[str, int]  # bytes of code of functions of steps

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def spread(self) -> float:
        """From the first to the third quartile, over the median."""
        first, _, third = statistics.quantiles(self.runs, n=4)
        return (third - first) / self.median

    @property
    def macs(self) -> int:
        return sum(step.macs for step, _ in self.steps)

    def gflops(self, macs: int, seconds: float) -> float:
        return 2e-9 * macs / seconds if seconds else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "model": self.package.plan.name,
            "target": self.package.plan.target,
            "macs": self.macs,
            "median_us": self.median * 1e6,
            "fastest_us": self.runs[0] * 1e6,
            "spread": self.spread,
            "runs": len(self.runs),
            "gflops": self.gflops(self.macs, self.median),
            "peak_gflops": self.peak,
            "arena_bytes": self.package.plan.arena_bytes,
            "portable": [step.as_dict() for step in self.package.plan.portable],
            "left_out": [each.as_dict() for each in self.package.left_out],
            "function_code_bytes": dict(self.functions),
            "steps": [
                {
                    "name": " + ".join(step.provenance),
                    "kernel": step.function.kernel.id,
                    "function": step.function.name,
                    "macs": step.macs,
                    "us": seconds * 1e6,
                    "gflops": self.gflops(step.macs, seconds),
                }
                for step, seconds in self.steps
            ],
        }

    def show(self) -> str:
        """For the terminal."""
        plan, speed = self.package.plan, self.gflops(self.macs, self.median)
        total = sum(seconds for _, seconds in self.steps) or 1.0
        rows = []
        for step, seconds in self.steps:
            own = self.gflops(step.macs, seconds)
            figures = [f"{own:.1f}", f"{own / self.peak:.0%}"] if step.macs else ["", ""]
            name = step.function.name.removeprefix(f"{plan.prefix}_")
            rows.append([f"{seconds * 1e6:.1f}", f"{seconds / total:.1%}", *figures, name, show(step.provenance)])
        lines = [
            f"{plan.name} on {plan.target}, {len(self.runs)} runs",
            f"median   {self.median * 1e6:.1f} us, fastest {self.runs[0] * 1e6:.1f}, spread {self.spread:.1%}",
            f"speed    {speed:.1f} GFLOP/s, {speed / self.peak:.0%} of the {self.peak:.1f} of one core",
            f"ram      arena {plan.arena_bytes} bytes",
            *(step.show() for step in plan.portable),
            *(each.show() for each in self.package.left_out),
            "",
            *table(["us", "share", "GFLOP/s", "of peak", "function", "nodes"], rows, frozenset({4, 5})),
        ]
        return "\n".join(lines)


@stage("bench")
def speed(path: Path, options: Options, cc: str | None = None, seed: int = 0) -> Speed:
    """Builds a model for this machine and times it on random inputs."""
    target = options.resolved_target()
    graph = read(path, options)
    inputs = dict(next(random_sets(graph, seed, 1)).inputs)
    # The model's own file is written again, with ticks.
    apart = replace(settled(path, options), single_file=False, module=False)
    package = compile_graph(graph, apart, options.name or path.stem)
    refuse_undefined(package)
    steps = tuple(package.plan.steps())
    with tempfile.TemporaryDirectory(prefix="mccompile-") as folder:
        out = Path(folder, "out")
        package.write(out)
        whole = Model.build(out, cc or target.compiler, target.cflags)
        package.write_ticking(out)
        timed = Model.build(out, cc or target.compiler, target.cflags, len(steps))
    inputs = as_handed_over(inputs, path, options, package.plan.streamed, whole.report)
    runs = sorted(_runs(whole, inputs))
    spent, end = [timed.spent(len(steps))], time.perf_counter() + SECONDS
    while len(spent) <= FEWEST or (len(spent) <= len(runs) and time.perf_counter() < end):
        timed.time(inputs, 1)
        spent.append(timed.spent(len(steps)))
    medians = np.median(np.diff(np.array(spent), axis=0), axis=0)
    spent_by = tuple(zip(steps, map(float, medians), strict=True))
    functions = own_functions(whole.function_bytes, package)
    return Speed(package, tuple(runs), spent_by, peak_once(target, cc), functions)


def _runs(model: Model, inputs: Mapping[str, Any]) -> list[float]:
    """Seconds of as many runs as take about SECONDS."""
    one = min(model.time(inputs, FEWEST))
    return model.time(inputs, max(FEWEST, round(SECONDS / one)))
