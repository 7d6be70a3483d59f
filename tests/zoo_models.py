"""A model of the zoo: compiled, run, and compared with its stored outputs. Any worker can do it that sees the folder.

Where integers of a quantized network differ from the stored ones (which were computed in floats), they must equal what
rational arithmetic gives, and how many differ is said. C that adds up floats over bytes where the report does not say
so is wrong.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from mccompile.base.errors import MccError
from mccompile.check import rounding
from mccompile.check.compare import compare
from mccompile.check.inputs import DataSet, stored_sets
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load
from mccompile.graph import text as graph_text
from mccompile.graph.ir import Graph
from mccompile.measure.correctness import build
from mccompile.ops.api import resolve
from mccompile.passes.api import ALL
from mccompile.passes.constants_file import read_constants
from mccompile.program import text as program_text
from mccompile.targets.api import Pool, Target
from mccompile.toolchain.emulate import Emulated
from mccompile.toolchain.run import Model
from tests.float_sums import float_sums
from tests.passes.graph import exact_qdq
from tests.poisoned import poisoned

TOLERANCE = 1e-4  # of the largest element of an output
POISONS = (0xA5, 0xFF)  # a number, and NaN, in every float type


@dataclass
class Row:
    name: str
    status: str = "passed"
    detail: str = ""
    figures: list[str] = field(default_factory=lambda: ["", "", "", "", ""])


@dataclass(frozen=True)
class Job:
    folder: Path
    arguments: argparse.Namespace
    moved: Mapping[str, Any]  # how far others move its results

    @property
    def name(self) -> str:
        return self.folder.name


def row_of(job: Job) -> Row:
    row = Row(job.name)
    try:
        _try(job.folder, job.arguments, job.moved, row)
    except MccError as error:
        row.status, row.detail = "refused", _in_one_line(error)
    except Exception as error:  # one broken model must not hide what the others do
        row.status, row.detail = "broken", f"{type(error).__name__}: {error}"
    return row


def _try(folder: Path, arguments: argparse.Namespace, moved: Mapping[str, Any], row: Row) -> None:
    with tempfile.TemporaryDirectory(prefix="zoo-") as scratch:
        dump = Path(scratch) if arguments.roundtrip else None
        options = Options(
            target=arguments.target,
            prefer=arguments.prefer,
            threads=arguments.threads,
            rows=arguments.rows,
            optimize=not arguments.plain,
            name=folder.name,
            dump=dump,
            slices=arguments.sliced,
            external=(ALL,) if arguments.outside else (),
            mem=(Pool("dtcm", 16 << 10, 0), Pool("sram", None, 1)) if arguments.pools else (),
        )
        start = time.perf_counter()
        graph = load(folder / "model.onnx")
        sets = stored_sets(folder, [value.name for value in graph.inputs])
        precision = _precision(graph, options.resolved_target())
        package = compile_graph(graph, options, folder.name)
        seconds = time.perf_counter() - start
        unlike = reads_back(dump) if dump else []
    unlike += _floats_unsaid(package)
    model = build(package, options.resolved_target())
    filled = [build(poisoned(package, byte), options.resolved_target()) for byte in POISONS] if arguments.poison else []
    worst, problems, fastest = 0.0, unlike, float("inf")
    said: list[str] = []
    for data_set in sets:
        start = time.perf_counter()
        results = model.run(data_set.inputs, poison=0xA5)
        fastest = min(fastest, time.perf_counter() - start)
        rel, found = _compare(model, results, data_set, moved, precision)
        if found and all(want.dtype.kind in "iu" for want in data_set.outputs or []):
            unlike_floats, found = _against_exact(folder / "model.onnx", model, results, data_set, found)
            said += unlike_floats
        worst, problems = max(worst, rel), problems + found
        if arguments.poison:
            problems += _poisoned([model, *filled], data_set, results)
    plan = package.plan
    row.status = "wrong" if problems else "passed"
    row.detail = "; ".join(problems) or "; ".join([f"max rel {worst:.1e}", *said])
    weights = len(package.files[f"{plan.prefix}.mcb"])
    row.figures = [str(plan.arena_bytes), str(plan.arena_bound), str(weights), f"{seconds:.2f}", f"{1e3 * fastest:.2f}"]


def _floats_unsaid(package: Package) -> list[str]:
    """C that adds up floats over bytes though the report speaks of no floats between quantized tensors."""
    if json.loads(package.files["report.json"])["float_in_quantized"]:
        return []
    text = package.files[f"{package.plan.prefix}_kernels.c"].decode()
    return [f"{name} adds up floats over bytes" for name in float_sums(text)]


def _precision(graph: Graph, target: Target) -> float:
    """How close floats can be asked to be."""
    return max(TOLERANCE, rounding.of_numbers(graph, bool(target.option("half_lanes", 0))))


def _compare(
    model: Model | Emulated,
    results: Mapping[str, np.ndarray],
    data_set: DataSet,
    moved: Mapping[str, Any],
    precision: float,
) -> tuple[float, list[str]]:
    """The largest relative difference of floats, and what is wrong."""
    worst, problems = 0.0, []
    allowed_float = max(
        precision, 2 * (moved.get("float_max_rel_to_range") or 0.0)
    )  # the reference is not exact either
    allowed_int = moved.get("int_max") or 0
    for tensor, want in zip(model.report.outputs, data_set.outputs or [], strict=True):
        found = compare(tensor.name, results[tensor.name], want, rtol=0.0, atol=0.0)
        if want.dtype.kind in "iu":
            ok, figure = not found.why and found.max_abs <= allowed_int, f"off by {found.max_abs:.0f}"
        else:
            ok, figure = not found.why and found.max_rel <= allowed_float, f"max rel {found.max_rel:.1e}"
            worst = max(worst, found.max_rel)
        if not ok:
            problems.append(f"{data_set.name} {tensor.name}: {found.why or figure}")
    return worst, problems


def _against_exact(
    path: Path,
    model: Model | Emulated,
    results: Mapping[str, np.ndarray],
    data_set: DataSet,
    problems: list[str],
) -> tuple[list[str], list[str]]:
    """How the stored integers differ from exact ones, and what is wrong if the results are not these."""
    try:
        exact = exact_qdq.run(onnx.load(path), data_set.inputs)
    except NotImplementedError:
        return [], problems
    said = []
    for tensor, want in zip(model.report.outputs, data_set.outputs or [], strict=True):
        if not np.array_equal(results[tensor.name], exact[tensor.name]):
            return [], problems
        steps = np.abs(want.astype(np.int64) - exact[tensor.name])
        count = int((steps > 0).sum())
        said.append(f"{data_set.name} exact, {count} of {steps.size} stored integers are up to {steps.max()} off")
    return said, []


def _poisoned(models: Sequence[Model | Emulated], data_set: DataSet, expected: Mapping[str, np.ndarray]) -> list[str]:
    problems = []
    for model in models:
        for poison in POISONS:
            results = model.run(data_set.inputs, poison=poison)
            changed = [name for name, array in results.items() if array.tobytes() != expected[name].tobytes()]
            problems += [f"{data_set.name} {name}: depends on memory that was not written" for name in changed]
    return problems


def reads_back(folder: Path) -> list[str]:
    """Every printed graph and program, read back and printed again."""
    constants = read_constants(folder / "constants.zip") if (folder / "constants.zip").exists() else {}
    problems = []
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        if path.name.endswith(".graph.txt"):
            again = graph_text.show(graph_text.read(text, resolve, constants, path.name))
        else:
            again = program_text.show(program_text.read(text, constants, path.name))
        if again != text:
            pairs = zip(text.splitlines(), again.splitlines(), strict=False)
            line = next((number for number, (a, b) in enumerate(pairs, 1) if a != b), 0)
            problems.append(f"{path.name} reads back differently, line {line}")
    return problems


def _in_one_line(error: MccError) -> str:
    found: dict[str, int] = {}
    for problem in error.problems:
        found[problem.what] = found.get(problem.what, 0) + 1
    return "; ".join(what if count == 1 else f"{what} ({count} times)" for what, count in found.items())
