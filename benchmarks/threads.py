"""What workers gain on this machine: `python -m benchmarks.threads MODEL.onnx ...`

The same model compiled for one thread and for several takes turns in one program; medians of rounds are compared. Since
others may need the cores meanwhile, the division of the work is also measured by one thread alone, piece by piece: the
longest pieces of all steps, and what handing them over takes, come to the time that workers would need who never wait
for memory. Inputs are a ramp; integers are zero. With `--peers onnxruntime` (or others that are installed) one of their
rounds follows each of ours, with one thread and with as many.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.networks import alone, inputs_of
from benchmarks.peers import PEERS, Contestant, peers_of
from mccompile.base.dtypes import f32
from mccompile.base.provenance import show
from mccompile.driver import Options, read
from mccompile.driver import compile as compile_model
from mccompile.emit.blob import Carrier
from mccompile.emit.package import Package
from mccompile.emit.summary import table

ROUNDS = 9


@dataclass(frozen=True)
class Timed:
    """Fastest seconds of a step: by one thread, by several, its pieces one after the other, and each of these."""

    one: float
    many: float
    in_turn: float
    pieces: tuple[float, ...]

    @property
    def longest(self) -> float:
        """What workers need who wait for nothing."""
        return max(self.pieces, default=self.in_turn)


@dataclass(frozen=True)
class Sharing:
    """Of each round seconds by one thread and by several: medians, and fastest runs."""

    medians: tuple[tuple[float, float], ...]
    fastest: tuple[tuple[float, float], ...]
    handed: float  # seconds that pieces take which do nothing
    steps: tuple[Timed, ...]

    @property
    def work(self) -> float:
        """The ratio if nobody ever waited for memory."""
        handed = self.handed * sum(1 for step in self.steps if step.pieces)
        return sum(step.one for step in self.steps) / (sum(step.longest for step in self.steps) + handed)

    def show(self) -> str:
        columns = list(zip(*self.medians, strict=True)), list(zip(*self.fastest, strict=True))
        one, many = (statistics.median(column) for column in columns[0])
        least, least_many = (min(column) for column in columns[1])
        ratio = statistics.median(a / b for a, b in self.medians)
        times = f"one {one * 1e6:.1f} ({least * 1e6:.1f})   several {many * 1e6:.1f} ({least_many * 1e6:.1f})"
        ratios = f"ratio {ratio:.2f} ({least / least_many:.2f}), of the work {self.work:.2f}"
        return f"{times}   {ratios}   to hand over {self.handed * 1e6:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--target", default="native")
    parser.add_argument("--prefer", default="time")
    parser.add_argument("--seconds", type=float, default=4.0, help="per model, roughly")
    parser.add_argument("--steps", action="store_true", help="also the pieces of each step")
    parser.add_argument("--realtime", action="store_true", help="give way to nobody else (as root, Linux)")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[], help=f"of {', '.join(PEERS)}")
    given = parser.parse_args()
    print(f"{given.threads} threads; microseconds: median (fastest); ratios of medians, of fastest runs, of the work")
    for path in given.models:
        names = {"one": 1, "many": given.threads}
        plain = Options(target=given.target, prefer=given.prefer, blob=Carrier.EXTERNAL)
        packages = {n: compile_model(path, replace(plain, name=n, threads=t)) for n, t in names.items()}
        with tempfile.TemporaryDirectory() as folder:
            build(packages, given.threads, plain, Path(folder))
            inputs = inputs_of(path, read(path, plain)) if given.peers else {}
            with alone() if given.realtime else nullcontext():  # threads that peers start inherit it
                peers = {n: peers_of(path, inputs, Path(folder), given.peers, n) for n in (1, given.threads)}
                found, theirs = measured(Path(folder), given.seconds, peers)
        print(f"{path.stem:20} {found.show()}", flush=True)
        for name, ratio in theirs.items():
            print(f"{name:>20} ratio {ratio:.2f}", flush=True)
        if given.steps:
            print("\n".join(table_of_steps(packages["many"], found)), flush=True)


def build(packages: dict[str, Package], threads: int, options: Options, folder: Path) -> None:
    """The program of both, in a folder with their blobs."""
    words, sources = {"threads": str(threads)}, [folder / "threads.c"]
    for name, package in packages.items():
        package.write(folder / name)
        (folder / f"{name}.mcb").write_bytes(package.files[f"{name}.mcb"])
        package.write_ticking(folder / name)
        sources += [folder / name / f"{name}.c", folder / name / f"{name}_kernels.c"]
        floats = [tensor for tensor in package.plan.inputs if tensor.type.dtype is f32]
        of = [f"{name}_input_{tensor.symbol}" for tensor in floats]
        words[f"fill_{name}"] = " ".join(f"FILL({a}(&{name}), {a.upper()}_COUNT)" for a in of)
        words["steps"] = str(len(list(package.plan.steps())))
    text = Path(__file__).with_name("threads.c.in").read_text(encoding="utf-8")
    for key, word in words.items():
        text = text.replace(f"@{key}@", word)
    sources[0].write_text(text, encoding="utf-8")
    target = options.resolved_target()
    places = [f"-I{folder / part}" for part in ("one", "many", "many/runtime")]
    command = [target.compiler, *target.cflags, *map(str, sources), *places, "-pthread", "-lm"]
    subprocess.run([*command, "-o", str(folder / "threads")], check=True)


def measured(
    folder: Path, seconds: float, peers: Mapping[int, Sequence[Contestant]]
) -> tuple[Sharing, dict[str, float]]:
    """What ours gains, and the ratios of peers."""

    def run(rounds: int, runs: int) -> list[list[float]]:
        command = [str(folder / "threads"), str(rounds), str(runs)]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]

    one, _, many, _ = run(1, 2)[0]
    runs = max(3, round(seconds / ROUNDS / (2 * one + many)))
    ratios: dict[str, list[float]] = {}
    found: list[list[list[float]]] = []
    for _ in range(ROUNDS):
        found.append(run(1, runs))
        for lonely, together in zip(*peers.values(), strict=True):
            single, several = (statistics.median(peer.times(max(3, runs // 2))) for peer in (lonely, together))
            ratios.setdefault(lonely.name, []).append(single / several)
    least = [list(map(min, *rows)) for rows in zip(*(lines[2:] for lines in found), strict=True)]
    times = (Timed(one, many, in_turn, tuple(filter(None, pieces))) for one, many, in_turn, *pieces in least)
    medians = tuple((line[0][0], line[0][2]) for line in found)
    fastest = tuple((line[0][1], line[0][3]) for line in found)
    handed = min(line[1][0] for line in found)
    return Sharing(medians, fastest, handed, tuple(times)), {n: statistics.median(r) for n, r in ratios.items()}


def table_of_steps(package: Package, found: Sharing) -> list[str]:
    """What each step takes and gains; `repeats`: its pieces one after the other, over one thread; `uneven`: the longest
    of them over a fair share."""
    rows = []
    for step, took in zip(package.plan.steps(), found.steps, strict=True):
        times = [f"{took.one * 1e6:.1f}", f"{took.many * 1e6:.1f}", f"{took.one / took.many:.2f}"]
        shares = ["", ""]
        if took.pieces:
            fair = sum(took.pieces) / len(took.pieces)
            shares = [f"{took.in_turn / took.one:.2f}", f"{took.longest / fair:.2f}"]
        rows.append([*times, *shares, step.function.name.removeprefix("many_"), show(step.provenance, 1)])
    return table(["one", "several", "ratio", "repeats", "uneven", "function", "nodes"], rows, frozenset({5, 6}))


if __name__ == "__main__":
    main()
