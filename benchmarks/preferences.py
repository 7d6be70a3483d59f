"""Does each preference lead in what it is meant for? Instructions, arena and flash of networks on emulated boards, with
every preference; one is dominated where another has fewer instructions than `time`, a smaller arena than `ram`, or less
flash than `flash`. All are exact; benchmarks/preferences.json keeps them.

python -m benchmarks.preferences              the models of embedded/models.py, and networks over signals; fail where a
                                              preference is dominated, or a figure is another one than is recorded
... --update                                  write them, row by row, so that a run may be interrupted
... --new                                     only those that are not recorded
... --zoo FOLDER                              the models of that folder too
... --target T                                that target only
... --only "conv"                             networks with this in their names
... --jobs 2                                  so many at a time
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import onnx

from embedded.models import NAMES, TOP, path_of
from mccompile.driver import Options
from mccompile.emit.summary import table
from mccompile.measure.cost import cost
from mccompile.targets.api import Prefer
from tests.signal_networks import NETWORKS

TARGETS = ("cortex-m0", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "rv32imc")
EVERY = 3  # of the networks over signals
CLEAR, SMALL = 1.02, 64  # how much less, and by how many bytes or instructions, another preference must take to count
RECORDED = TOP / "benchmarks" / "preferences.json"
PREFERENCES = tuple(Prefer)
HEAD = ("network", "target", "preference", "instructions", "arena", "flash", "dominated by")


@dataclass(frozen=True)
class Figures:
    instructions: int
    arena: int
    flash: int


MEANT: Mapping[Prefer, Callable[[Figures], int]] = {
    Prefer.TIME: lambda figures: figures.instructions,
    Prefer.RAM: lambda figures: figures.arena,
    Prefer.FLASH: lambda figures: figures.flash,
}


def networks(folder: Path, zoo: Path | None) -> Iterator[Path]:
    for name in NAMES:
        yield path_of(name, folder)
    for network in [network for network in NETWORKS.values() if not network.hop][::EVERY]:
        path = folder / f"{network.name}.onnx"
        onnx.save(network.model(False), path)
        yield path
    if zoo is not None:
        yield from sorted(zoo.glob("*/model.onnx"))


def name_of(path: Path) -> str:
    return path.parent.name if path.stem == "model" else path.stem


def measured(target: str, path: Path) -> dict[Prefer, Figures]:
    found = {}
    for prefer in PREFERENCES:
        each = cost(path, Options(target=target, prefer=prefer, name=name_of(path)))
        flash = each.code_bytes + each.weights_bytes
        found[prefer] = Figures(each.run_instructions, each.package.plan.arena_bytes, flash)
    return found


def dominated(found: Mapping[Prefer, Figures]) -> dict[Prefer, Prefer]:
    """Preferences that another one is better at what they are meant for."""
    best = {prefer: min(found, key=lambda other: meant(found[other])) for prefer, meant in MEANT.items()}
    least = {p: meant(found[best[p]]) for p, meant in MEANT.items()}
    return {p: best[p] for p, meant in MEANT.items() if meant(found[p]) > max(CLEAR * least[p], least[p] + SMALL)}


def recorded() -> dict[str, dict[Prefer, Figures]]:
    """By network and target."""
    table = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    return {row: {Prefer(p): Figures(*figures) for p, figures in found.items()} for row, found in table.items()}


def record(rows: Mapping[str, Mapping[Prefer, Figures]]) -> None:
    stored = {row: {prefer: astuple(figures) for prefer, figures in rows[row].items()} for row in sorted(rows)}
    lines = [f"  {json.dumps(row)}: {json.dumps(found)}" for row, found in stored.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def lines_of(row: str, found: Mapping[Prefer, Figures]) -> list[Sequence[str]]:
    network, target = row.split(" ")
    behind = dominated(found)
    by = {prefer: behind[prefer].value if prefer in behind else "" for prefer in found}
    return [[network, target, p.value, *(f"{n:,}" for n in astuple(f)), by[p]] for p, f in found.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    lines, changed, known = list[Sequence[str]](), list[str](), recorded()
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch, ProcessPoolExecutor(given.jobs) as jobs:
        paths = {name_of(path): path for path in networks(Path(scratch), given.zoo) if given.only in name_of(path)}
        for target in given.target or TARGETS:
            names = [name for name in paths if not (given.new and f"{name} {target}" in known)]
            all_of_them = jobs.map(partial(measured, target), [paths[name] for name in names])
            for row, found in zip([f"{name} {target}" for name in names], all_of_them, strict=True):
                changed += [] if known.get(row) == found else [row]
                known[row] = found
                lines += lines_of(row, found)
                if given.update:
                    record(known)
    count = sum(bool(line[-1]) for line in lines)
    print("\n".join([*table(HEAD, lines, frozenset({0, 1, 2, 6})), f"{count} of {len(lines)} are dominated"]))
    if changed and not given.update:
        print(f"not as recorded: {', '.join(changed)}; --update writes them", file=sys.stderr)
    return 1 if count or (changed and not given.update) else 0


if __name__ == "__main__":
    sys.exit(main())
