"""Counts the instructions of each step for many inputs: random ones of several sizes, zeros, extremes, NaN.

python -m embedded.same_time model.onnx ... --target cortex-m4 --inputs 200

Prints the steps whose count depends on data, and from which count to which. Status 1 says that there are some.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.measure.building import flags_of
from mccompile.targets import api
from mccompile.toolchain.emulate import Emulated
from mccompile.toolchain.model_report import Tensor
from mccompile.toolchain.ticks import count_steps

SCALES = (1e-30, 1e-3, 0.1, 1.0, 8.0, 100.0)
FILLED = (0.0, 1.0, -1.0, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan)
NO_TELLING = sys.maxsize  # what ticks themselves take stays in: it is the same in every run


@dataclass(frozen=True)
class Varying:
    """A step whose count depends on data."""

    step: int
    function: str
    low: int
    high: int

    def __str__(self) -> str:
        return f"step {self.step} ({self.function}): {self.low} to {self.high}, {self.high / max(1, self.low):.3f} x"


@dataclass(frozen=True)
class Counts:
    varying: Sequence[Varying]
    low: int  # of a whole run
    high: int

    def __str__(self) -> str:
        spread = f"{self.low} to {self.high}" if self.varying else f"{self.low}"
        return "\n".join([f"{spread} instructions", *(f"  {each}" for each in self.varying)])


def given(tensor: Tensor, number: int, chance: np.random.Generator) -> np.ndarray:
    """The input of a run: first those filled with one number, then random ones, in some of which is NaN."""
    shape, dtype = tensor.static_shape, tensor.dtype
    if not dtype.is_float:
        most = np.iinfo(dtype.numpy) if dtype.is_integer else None
        low, high = (int(most.min), int(most.max)) if most else (0, 1)
        fixed = (0, low, high)
        drawn = chance.integers(low, high, shape, np.int64, endpoint=True)
        return np.asarray(np.full(shape, fixed[number]) if number < len(fixed) else drawn).astype(dtype.numpy)
    if number < len(FILLED):
        return np.full(shape, FILLED[number], dtype.numpy)
    found = chance.normal(0, SCALES[number % len(SCALES)], shape)
    if number % 5 == 0:
        found = np.where(chance.random(shape) < 0.1, chance.choice(FILLED, shape), found)
    return found.astype(dtype.numpy)


def runs(tensors: Sequence[Tensor], count: int, seed: int = 0) -> Iterator[Mapping[str, np.ndarray]]:
    chance = np.random.default_rng(seed)
    for number in range(count):
        yield {tensor.name: given(tensor, number, chance) for tensor in tensors}


def counted(package: Package, target: str, count: int) -> Counts:
    """For so many inputs."""
    steps = [*package.plan.steps()]
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        out, core = Path(scratch, "out"), api.load(target)
        package.write(out)
        package.write_ticking(out)
        model = Emulated.build(out, core, None, flags_of(package, core), ticks=len(steps))
        inputs = runs(model.report.inputs, count)
        found = np.array([count_steps(model, each, NO_TELLING, len(steps)) for each in inputs])
    lows, highs = found.min(axis=0), found.max(axis=0)
    varying = [
        Varying(step.number, step.function.name, int(low), int(high))
        for step, low, high in zip(steps, lows, highs, strict=True)
        if low != high
    ]
    return Counts(varying, int(found.sum(axis=1).min()), int(found.sum(axis=1).max()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m embedded.same_time", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="cortex-m4")
    parser.add_argument("--inputs", type=int, default=200)
    arguments = parser.parse_args()
    varying = 0
    for path in arguments.models:
        found = counted(compile(path, Options(target=arguments.target)), arguments.target, arguments.inputs)
        varying += bool(found.varying)
        print(f"{path}: {found}", flush=True)
    return int(bool(varying))


if __name__ == "__main__":
    sys.exit(main())
