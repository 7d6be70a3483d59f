"""What a board measures as MLPerf Tiny's runner asks, for the form of a project's results page.

Performance is the median of five measurements of at least so many seconds and ten inferences, on one input; accuracy is
over all samples that have labels. Invariant: the model and its options are those that the project was made with.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base.errors import BadFile, Problem, WrongUse
from ..base.records import dataclass
from ..base.stages import stage
from ..check.inputs import random_sets
from ..driver import Options, compile_graph, read, settled
from ..emit.folder import MARK
from ..emit.package import Package
from ..graph.ir import Graph
from ..quantize.samples import read_samples
from ..toolchain.serial_line import Port
from .eembc import BENCHMARKS, Benchmark
from .mlperf_page import SHOWN, fill, read_page
from .mlperf_runner import PATIENCE, Board, as_sent, session

WINDOWS, FEWEST, SECONDS = 5, 10, 10.0
_SLOWER = 100  # times: an emulator's clock beside that of a wall


@dataclass(frozen=True)
class MlperfOptions:
    """`project`: what `deploy --mlperf-tiny` has written; `data`: samples with labels; `seconds`: of a measurement."""

    project: Path
    data: Path | None = None
    seconds: float = SECONDS


@dataclass(frozen=True)
class Measured:
    package: Package
    page: Path
    judged_by: str
    found: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        plan = self.package.plan
        return {
            "model": plan.name,
            "target": plan.target,
            "macs": self.package.macs,
            "weights_bytes": self.package.weights_bytes,
            "arena_bytes": plan.arena_bytes,
            "left_out": [each.as_dict() for each in self.package.left_out],
            "mlperf_tiny": self.found,
        }

    def show(self) -> str:
        """For the terminal."""
        found = self.found
        lines = [
            f"{found['model']} on its board, {found['windows']} measurements of {found['runs']} inferences",
            f"run      {found['microseconds']:.1f} us, {found['inferences_per_second']:.4g} inferences per second",
        ]
        if self.judged_by in found:
            words = self.judged_by.replace("_", " ").replace("roc", "ROC")
            lines.append(f"judged   {words} {found[self.judged_by]:.4g} over {found['samples']} inputs")
        return "\n".join([*lines, f"page     {self.page}"])


@stage("bench")
def mlperf(path: Path, options: Options, port: Port, asked: MlperfOptions, seed: int = 0) -> Measured:
    page = read_page(asked.project)
    benchmark = next((each for each in BENCHMARKS.values() if each.model == page["benchmark"]), None)
    if benchmark is None:
        raise BadFile(Problem(f"there is no benchmark {page['benchmark']!r}", str(asked.project)))
    graph = read(path, options)
    sets, labels = _inputs(graph, asked.data, seed)
    package = compile_graph(graph, settled(path, options), options.name or path.stem)
    report = json.loads((asked.project / MARK).read_text(encoding="utf-8"))
    if report["identity"] != package.identity.hex():
        why = f"it has the code {report['identity']}, this model with these options is {package.identity.hex()}"
        fix = "give the model and the options that deploy got, as the README of the project does, or deploy it again"
        raise WrongUse(Problem("the project is of another build", str(asked.project), why, fix))
    (given,) = report["inputs"]
    sent = [as_sent(benchmark, each[given["name"]], given) for each in sets]
    found = _session(port, benchmark, sent, labels, asked.seconds)
    fill(asked.project, found)
    return Measured(package, asked.project / SHOWN, benchmark.judged_by, found)


def _inputs(graph: Graph, data: Path | None, seed: int) -> tuple[list[dict[str, Any]], Sequence[int]]:
    """One random input, or all samples and what is right of them."""
    if data is None:
        return [dict(next(random_sets(graph, seed, 1)).inputs)], ()
    samples = read_samples(data, graph)
    return list(samples.feeds), () if samples.labels is None else samples.labels.tolist()


def _session(
    port: Port, benchmark: Benchmark, sent: Sequence[bytes], labels: Sequence[int], seconds: float
) -> dict[str, Any]:
    line = port.open()
    try:
        board = Board(line, PATIENCE + _SLOWER * seconds)
        board.load(sent[0])
        first = board.infer(1, 1).microseconds
        runs = max(FEWEST, math.ceil(1e6 * seconds / first) if first else FEWEST)
        return session(board, benchmark, sent, labels, runs, WINDOWS)
    finally:
        line.close()
