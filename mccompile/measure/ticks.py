"""What a model takes on a board: ticks of its clock for init, for a run, and for each step; and the stack, where the
board's program says where that lies.

Whole runs are timed by the server around them. Steps are known where the code was compiled with --profile, whose
counting is part of the runs then. Invariant: nothing is estimated; what a board cannot say is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.provenance import show
from ..base.records import dataclass
from ..base.stages import stage
from ..check.inputs import random_sets
from ..driver import Options, compile_graph, read, settled
from ..emit.package import Package
from ..emit.summary import table
from ..plan.ir import Step
from ..toolchain.serial_line import Port
from ..toolchain.served import RunCost
from .building import on_board, refuse_undefined
from .handing import as_handed_over

RUNS = 5


def named_step(step: Step) -> dict[str, Any]:
    """What says of a measured step which one it is."""
    return {
        "name": " + ".join(step.provenance),
        "kernel": step.function.kernel.id,
        "function": step.function.name,
        "macs": step.macs,
    }


@dataclass(frozen=True)
class Ticks:
    package: Package
    init: RunCost
    runs: tuple[RunCost, ...]
    steps: tuple[int, ...]  # of each in the last run; none where they are not counted
    hz: int  # ticks per second; 0: not known

    @property
    def median(self) -> int:
        return statistics.median_low(took.ticks for took in self.runs)

    @property
    def stack(self) -> int | None:
        """Bytes of the deepest run."""
        return max((took.stack for took in self.runs if took.stack is not None), default=None)

    def us(self, ticks: int) -> float:
        return 1e6 * ticks / self.hz

    @property
    def _plan_steps(self) -> list[Step]:
        return list(self.package.plan.steps())

    def as_dict(self) -> dict[str, Any]:
        plan, steps = self.package.plan, self._plan_steps
        stacks = {"run_stack_bytes": self.stack, "init_stack_bytes": self.init.stack}
        time = {"ticks_per_second": self.hz, "median_us": self.us(self.median)} if self.hz else {}
        return {
            "model": plan.name,
            "target": plan.target,
            "macs": self.package.macs,
            "run_ticks": self.median,
            "fastest_ticks": min(took.ticks for took in self.runs),
            "init_ticks": self.init.ticks,
            **time,
            "runs": len(self.runs),
            "weights_bytes": self.package.weights_bytes,
            "arena_bytes": plan.arena_bytes,
            **{key: value for key, value in stacks.items() if value is not None},
            "portable": [step.as_dict() for step in plan.portable],
            "left_out": [each.as_dict() for each in self.package.left_out],
            "steps": [self._step(*each) for each in zip(steps, self.steps, strict=True)] if self.steps else len(steps),
        }

    def _step(self, step: Step, ticks: int) -> dict[str, Any]:
        return {**named_step(step), "ticks": ticks, **({"us": self.us(ticks)} if self.hz else {})}

    def show(self) -> str:
        """For the terminal."""
        plan, median = self.package.plan, self.median
        per_mac = f", {median / self.package.macs:.2f} per multiply-accumulate" if self.package.macs else ""
        time = f", {self.us(median):.1f} us" if self.hz else ""
        stack = "stack not told" if self.stack is None else f"stack {self.stack}"
        lines = [
            f"{plan.name} on its board, {len(self.runs)} runs",
            f"run      {median} ticks{per_mac}{time}",
            f"init     {self.init.ticks} ticks",
            f"weights  {self.package.weights_bytes} bytes",
            f"ram      arena {plan.arena_bytes}, {stack} bytes",
            *(step.show() for step in plan.portable),
            *(each.show() for each in self.package.left_out),
        ]
        if not median:
            lines.append("hint     its clock stands still: MCC_CLOCK() of mcc_profile.h is yours to define")
        if not self.steps:
            return "\n".join([*lines, "hint     --profile, there and here, tells the ticks of each step"])
        rows = table(["ticks", "share", "per mac", "function", "nodes"], list(self._rows()), frozenset({3, 4}))
        return "\n".join([*lines, "", *rows])

    def _rows(self) -> Iterator[list[str]]:
        total = sum(self.steps) or 1
        for step, ticks in zip(self._plan_steps, self.steps, strict=True):
            name = step.function.name.removeprefix(f"{self.package.plan.prefix}_")
            per_mac = f"{ticks / step.macs:.2f}" if step.macs else ""
            yield [str(ticks), f"{ticks / total:.1%}", per_mac, name, show(step.provenance)]


@stage("bench")
def ticks(path: Path, options: Options, port: Port, seed: int = 0) -> Ticks:
    """Has the board at a port run a model on random inputs; another one there is refused."""
    if "," in options.target:
        fix = "name the target that the board's files were compiled for"
        raise WrongUse(Problem("a board runs one model", "--target", "it runs the one that was flashed", fix))
    graph = read(path, options)
    inputs = dict(next(random_sets(graph, seed, 1)).inputs)
    package = compile_graph(graph, settled(path, options), options.name or path.stem)
    refuse_undefined(package)
    board = on_board(package, port)
    try:
        board.time(as_handed_over(inputs, path, options, package.plan.streamed, board.report), RUNS)
        return Ticks(package, board.init, tuple(board.runs), tuple(board.step_ticks()), board.hz)
    finally:
        board.close()
