"""Times mccompile and the peers that are installed on any networks: `python -m benchmarks.networks MODEL.onnx ...`

Beside MODEL.onnx may lie MODEL.in.npy with its input, or a folder test_data_set_0; else inputs are random, as those of
`mccompile check` are. Free dimensions get their sizes by --dim and --shape. All contestants use one thread and take
turns in one run (A B C, B C A, ...), so that a busy machine slows all alike; medians over all runs are compared, and
the fastest runs beside them. Every result is compared with that of the first peer: a fast wrong answer is marked. In
quantized networks and 16-bit floats every library rounds in other places, so results need only be about as close to
the first peer's as those of the other peers are, whose distance is shown as well.
Shares of the peak are of what one core is measured to do in multiply-adds on registers.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.peers import PEERS, Contestant, Inputs, peers_of, versions
from mccompile.base.dtypes import bf16, f16, i8, u8
from mccompile.base.errors import BadFile
from mccompile.check.inputs import random_sets, stored_sets
from mccompile.driver import Options, compile_graph, read
from mccompile.graph.ir import Graph
from mccompile.measure.limits import measured_peak
from mccompile.option_texts import dims, shape
from mccompile.targets import api
from mccompile.toolchain.run import Model

ROUNDS = 8
_NARROW = (i8, u8, f16, bf16)
TOLERANCE = 1e-4  # over the largest reference value
OF_NARROW = 0.05  # the same where there are narrower numbers between; or twice what peers are apart, if that is more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="native")
    parser.add_argument("--prefer", default="time")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--dim", action="append", default=[], help="NAME=SIZE of a free dimension")
    parser.add_argument("--shape", action="append", default=[], help="INPUT=1,3,32,32")
    parser.add_argument("--seconds", type=float, default=1.0, help="per contestant and model, roughly")
    parser.add_argument("--realtime", action="store_true", help="give way to nobody else (as root, Linux)")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/speed.md as well")
    given = parser.parse_args()
    with alone() if given.realtime else nullcontext():
        peak = max(measured_peak(api.load(given.target)) for _ in range(3))
    said = ", ".join(filter(None, (_processor(), versions(given.peers))))
    print(f"{said}, {date.today()}")
    print(f"one thread; peak {peak:.1f} GFLOP/s; microseconds, median (fastest)")
    found = []
    for path in given.models:
        with tempfile.TemporaryDirectory() as folder:
            found.append(bench(path, given, Path(folder), peak))
    for title, runs in (
        ("medians", [each.medians for each in found]),
        ("fastest runs", [each.fastest for each in found]),
    ):
        known = [_ratio(times) for times in runs if len(times) > 1]
        if known:
            mean, worst = statistics.geometric_mean(known), max(known)
            print(f"{title}: geometric mean of the ratio to the fastest peer {mean:.3f}, largest {worst:.3f}")
    if given.markdown:
        print(table(found))


@dataclass(frozen=True)
class Times:
    """Microseconds of a network by contestant, mccompile first."""

    network: str
    medians: Mapping[str, float]
    fastest: Mapping[str, float]


def _ratio(times: Mapping[str, float]) -> float:
    """mccompile's time over that of the fastest peer."""
    ours, *theirs = times.values()
    return ours / min(theirs)


def table(found: Sequence[Times]) -> str:
    """As docs/speed.md has it."""
    there = list(dict.fromkeys(name for each in found for name in [*each.medians][1:]))
    lines = [f"| network | mccompile | {' | '.join(there)} | ratio |", f"|---|--:|{'--:|' * len(there)}--:|"]
    for each in found:
        ours, *_ = each.medians.values()
        cells = [_shown(time) for time in (ours, *map(each.medians.get, there))]
        lines.append(f"| {each.network} | {' | '.join(cells)} | {_ratio(each.medians):.2f} |")
    return "\n".join(lines)


def _shown(time: float | None) -> str:
    return "" if time is None else f"{time:,.0f}" if time >= 1000 else f"{time:.1f}"


def _processor() -> str:
    """What the machine calls it; nothing where it does not say."""
    cpuinfo = Path("/proc/cpuinfo")
    words = cpuinfo.read_text(encoding="utf-8") if cpuinfo.is_file() else ""
    found = re.search(r"model name\s*: (.*)", words)
    return found[1] if found else ""


def bench(path: Path, given: argparse.Namespace, folder: Path, peak: float) -> Times:
    """Prints a line per model."""
    ours, inputs = ours_of(path, given, folder)
    with alone() if given.realtime else nullcontext():
        contestants = [ours, *peers_of(path, inputs, folder, given.peers)]
        runs = {c.name: max(2, round(given.seconds / ROUNDS / min(c.times(2)))) for c in contestants}
        seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
        for turn in range(ROUNDS):
            for number in range(len(contestants)):
                contestant = contestants[(turn + number) % len(contestants)]
                contestant.times(1)  # brings what it needs back into the caches
                seconds[contestant.name] += contestant.times(runs[contestant.name])
    medians = {name: statistics.median(values) * 1e6 for name, values in seconds.items()}
    fastest = {name: min(values) * 1e6 for name, values in seconds.items()}
    parts = [f"{name} {medians[name]:.1f} ({fastest[name]:.1f})" for name in seconds]
    share = 2e-3 * ours.macs / medians[ours.name] / peak
    name = path.parent.name if path.stem == "model" else path.stem
    line = f"{name:20} {'   '.join(parts)}   {share:.0%} of peak   arena {ours.arena}"
    if len(contestants) == 1:
        print(line, flush=True)
        return Times(name, medians, fastest)
    first = contestants[1].results
    error, apart, tolerance = _distance(ours.results, first), 0.0, TOLERANCE
    told = f"error {error:.1e}"
    if ours.narrow:
        apart = max((_distance(c.results, first) for c in contestants[2:]), default=0.0)
        tolerance, told = max(OF_NARROW, 2 * apart), f"{told}, peers apart {apart:.1e}"
    wrong = "" if error <= tolerance else " WRONG"
    print(f"{line}   ratio {_ratio(medians):.3f} ({_ratio(fastest):.3f})   {told}{wrong}", flush=True)
    return Times(name, medians, fastest)


@contextmanager
def alone() -> Iterator[None]:
    """Nothing else takes the core away from this thread, or from those that it starts."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _distance(got: list[np.ndarray], want: list[np.ndarray]) -> float:
    """Of the results that are farthest apart; peers may leave out axes of size 1."""
    return max(_difference(a.reshape(b.shape), b) for a, b in zip(got, want, strict=True))


def _difference(got: np.ndarray, want: np.ndarray) -> float:
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return float("inf")
    return float(np.nanmax(np.abs(got - want), initial=0) / max(np.nanmax(np.abs(want), initial=0), 1e-30))


def ours_of(path: Path, given: argparse.Namespace, folder: Path) -> tuple[Contestant, Inputs]:
    target = api.load(given.target)
    sizes, shapes = dims(tuple(given.dim)), dict(map(shape, given.shape))
    options = Options(target=given.target, prefer=given.prefer, dims=sizes, shapes=shapes)
    graph = read(path, options)
    inputs = inputs_of(path, graph)
    narrow = any(value.type.dtype in _NARROW for value in graph.values())
    package = compile_graph(graph, options, path.stem)
    package.write(folder / "out")
    model = Model.build(folder / "out", target.compiler, target.cflags)
    results = list(model.run(inputs).values())
    steps = tuple(package.plan.steps())
    name = f"mccompile {given.target}"
    macs, arena = sum(step.macs for step in steps), package.plan.arena_bytes
    return Contestant(name, results, lambda n: model.time(inputs, n), macs, arena, narrow), inputs


def inputs_of(path: Path, graph: Graph) -> dict[str, np.ndarray]:
    stored = path.with_suffix("").with_suffix(".in.npy")
    if stored.is_file():
        return {graph.inputs[0].name: np.load(stored)}
    try:
        return stored_sets(path.parent, [value.name for value in graph.inputs], graph)[0].inputs
    except BadFile:  # there are none, or those of another model
        return dict(next(random_sets(graph, 0, 1)).inputs)


if __name__ == "__main__":
    main()
