"""Which steps may take other instructions for other inputs, why, and what was counted on an emulated core.

Invariant: a step that is not listed was not seen to differ, and neither its kernel nor its expressions branch on data.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.dtypes import DType, string
from ..base.errors import CheckFailed, WrongUse
from ..base.records import dataclass
from ..emit.package import Package
from ..measure.building import flags_of
from ..plan.ir import Step
from ..targets.api import Target
from ..toolchain.emulate import Emulated, run_command
from ..toolchain.model_report import Tensor
from ..toolchain.ticks import count_steps
from ..toolchain.tools import missing

INPUTS = 20
_LONG = 10**9  # instructions: of networks that take more, fewer inputs are tried, two at least
UNFORESEEN = "seen when it was counted"
_SCALES = (1e-30, 1e-3, 0.1, 1.0, 8.0, 100.0)
_FILLED = (0.0, 1.0, -1.0, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 1e-42)  # the last one is subnormal
_MOST = int(np.iinfo(np.int64).max)
_NO_TELLING = sys.maxsize  # what ticks themselves take stays in: it is the same in every run


@dataclass(frozen=True)
class Varying:
    """A step whose count may depend on data."""

    step: int
    function: str
    reasons: tuple[str, ...]  # none: the claim is that it does not
    low: int = 0  # as counted
    high: int = 0

    @property
    def is_missed(self) -> bool:
        return not self.reasons and self.low != self.high

    def __str__(self) -> str:
        why = "; ".join(self.reasons) or "NOT NAMED"
        factor = self.high / max(1, self.low)
        return f"step {self.step} ({self.function}): {self.low} to {self.high}, {factor:.3f} x: {why}"


@dataclass(frozen=True)
class Counts:
    steps: Sequence[Varying]  # all of them
    low: int  # of a whole run
    high: int
    inputs: int  # that were tried

    @property
    def varying(self) -> list[Varying]:
        return [each for each in self.steps if each.low != each.high]

    def __str__(self) -> str:
        spread = f"{self.low} to {self.high}" if self.varying else f"{self.low}"
        return "\n".join([f"{spread} instructions", *(f"  {each}" for each in self.varying)])


def given(tensor: Tensor, number: int, chance: np.random.Generator) -> np.ndarray:
    """The input of a run: first those filled with one number, then random ones, in some of which is NaN."""
    shape, dtype = tensor.static_shape, tensor.dtype
    if not dtype.is_float:
        low, high = (int(dtype.low), int(dtype.high)) if dtype.is_integer else (0, 1)
        fixed = (0, low, high)
        drawn = chance.integers(low, min(high, _MOST), shape, np.int64, endpoint=True)
        return np.asarray(np.full(shape, fixed[number]) if number < len(fixed) else drawn).astype(dtype.numpy)
    if number < len(_FILLED):
        return as_stored(np.full(shape, _FILLED[number]), dtype)
    found = chance.normal(0, _SCALES[number % len(_SCALES)], shape)
    if number % 5 == 0:
        found = np.where(chance.random(shape) < 0.1, chance.choice(_FILLED, shape), found)
    return as_stored(found, dtype)


def as_stored(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    """Those too large for narrow floats become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers.astype(dtype.numpy))


def runs(tensors: Sequence[Tensor], count: int, seed: int = 0) -> Iterator[Mapping[str, np.ndarray]]:
    chance = np.random.default_rng(seed)
    for number in range(count):
        yield {tensor.name: given(tensor, number, chance) for tensor in tensors}


def named(step: Step, target: Target) -> Varying:
    """What is claimed of a step."""
    function = step.function
    return Varying(step.number, function.name, tuple(function.kernel.varies(function.call, target)))


def counted(package: Package, target: Target, count: int = INPUTS, most: int = sys.maxsize) -> Counts:
    """For so many inputs, or until all runs together took `most` instructions."""
    steps = [*package.plan.steps()]
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        out = Path(scratch, "out")
        package.write(out)
        package.write_ticking(out)
        model = Emulated.build(out, target, None, flags_of(package, target), ticks=len(steps))
        inputs = runs(model.report.inputs, count)
        taken: list[list[int]] = []
        for each in inputs:
            taken.append(count_steps(model, each, _NO_TELLING, len(steps)))
            if len(taken) > 1 and sum(map(sum, taken)) > most:
                break
    found = np.array(taken)
    ends = zip(steps, found.min(axis=0), found.max(axis=0), strict=True)
    claims = [(named(step, target), int(low), int(high)) for step, low, high in ends]
    made = [Varying(each.step, each.function, each.reasons, low, high) for each, low, high in claims]
    return Counts(made, int(found.sum(axis=1).min()), int(found.sum(axis=1).max()), len(taken))


def time_certificate(package: Package, target: Target) -> dict[str, Any]:
    """The steps that may differ. Counts are of the inputs that were tried: they are not bounds."""
    why = _uncounted(package, target)
    counts = None
    if not why:
        try:
            counts = counted(package, target, most=_LONG)
        except (CheckFailed, WrongUse) as failed:
            why = f"it does not run on the emulated board: {failed.problems[0].what}"
    steps = counts.steps if counts else [named(step, target) for step in package.plan.steps()]
    return {
        "schema": "mccompile-time-1",
        "inputs": counts.inputs if counts else 0,
        **({"run": {"low": counts.low, "high": counts.high}} if counts else {"not_counted": why}),
        "steps": [
            {
                "step": each.step,
                "function": each.function,
                "reasons": [*(each.reasons or (UNFORESEEN,))],
                **({"counted": {"low": each.low, "high": each.high}} if counts else {}),
            }
            for each in steps
            if each.reasons or each.is_missed
        ],
    }


def _uncounted(package: Package, target: Target) -> str:
    """Why instructions are not counted, or nothing."""
    if target.hosted:
        return "instructions are counted on bare-metal cores alone"
    if package.plan.given:
        return f"the size {package.plan.given[0].name} is known only at run time"
    if any(tensor.type.dtype is string for tensor in package.plan.inputs):
        return "an input has texts"
    lacking = missing([target.compiler, *run_command(target)[:1]])
    return f"{' and '.join(lacking)} is not installed" if lacking else ""


def shown(time: Mapping[str, Any]) -> str:
    """For the terminal."""
    many = len(time["steps"])
    what = f"{many} step{'s' * (many > 1)} may depend on data" if many else "no step depends on data"
    if not time["inputs"]:
        return f"{what}; not counted: {time['not_counted']}"
    run = time["run"]
    spread = f"{run['low']}" if run["low"] == run["high"] else f"{run['low']} to {run['high']}"
    return f"{what}; {spread} instructions for {time['inputs']} inputs"
