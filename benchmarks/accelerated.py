"""What an accelerator takes of models, and whether what is compiled gives what others give:

    python -m benchmarks.accelerated kws_ref_model.tflite mobilenet.onnx --accelerator ethos-u55-128

Each model becomes one package, is emulated with the stand-in of the accelerator, and is compared with LiteRT
(onnxruntime for .onnx). Inputs are random; `differ` counts elements of the outputs, and `by` is the largest difference,
in steps: units of integers, 127ths of the largest float. Status 1 says that outputs differ by more than one.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks.mlperf_tiny import reference
from mccompile.driver import Options, compile
from mccompile.emit.package import Package
from mccompile.emit.summary import table
from mccompile.measure.building import build
from mccompile.targets import api as targets

RUNS = 8


@dataclass(frozen=True)
class Row:
    model: str
    taken: int  # operators
    left: int
    cycles: int  # of the accelerator, as its compiler estimates them
    core: int  # cycles of the same regions on the core
    scratch: int  # bytes
    arena: int
    elements: int
    differ: int
    by: float  # steps


def measured(model: Path, options: Options, runs: int = RUNS) -> Row:
    package = compile(model, options)
    partition = package.plan.partition
    assert partition is not None
    taken = partition.taken
    apart = _apart(model, package, runs)
    return Row(
        model.stem,
        sum(region.units for region in taken),
        len(partition.left),
        round(sum(region.cycles for region in taken)),
        round(sum(region.core_cycles for region in taken)),
        max((region.workspace for region in taken), default=0),
        package.plan.arena_bytes,
        apart.size,
        int(np.count_nonzero(apart)),
        round(float(apart.max()), 2),
    )


def _apart(model: Path, package: Package, runs: int) -> np.ndarray:
    """Of the first output of some runs, in steps; of floats, in 127ths of the largest."""
    built, other = build(package, targets.load(package.plan.build.target)), reference(model)
    given, draw, found = package.plan.inputs[0], np.random.default_rng(1), []
    dtype = given.type.dtype.numpy
    for _ in range(runs):
        shape = tuple(int(size) for size in given.type.static_shape)
        x = draw.integers(-128, 128, shape).astype(dtype) if dtype.kind == "i" else draw.random(shape).astype(dtype)
        got, want = next(iter(built.run({given.name: x}).values())), other(x)
        step = 1.0 if want.dtype.kind in "iu" else max(float(np.abs(want).max()), 1e-30) / 127
        found.append(np.abs(got.astype(np.float64) - want.astype(np.float64)).ravel() / step)
    return np.concatenate(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accelerated")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--accelerator", default="ethos-u55-128")
    parser.add_argument("--target", default="cortex-m55")
    arguments = parser.parse_args()
    options = Options(accelerator=arguments.accelerator, target=arguments.target)
    rows = [measured(model, options) for model in arguments.models]
    head = [column.name for column in fields(Row)]
    print("\n".join(table(head, [[str(each) for each in astuple(row)] for row in rows], frozenset({0}))))
    return int(any(row.by > 1 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
