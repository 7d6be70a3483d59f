"""What the models cost on microcontrollers: embedded/costs.json, and the tables of it in docs/embedded.md and zoo.md.

python -m embedded.table             measure; fail where a figure has grown by more than 2 %
python -m embedded.table --update    measure, and write all three anew
... --zoo FOLDER                     measure the models of that folder too (else their rows stay as they are)
... --only "cortex-m4 time"          measure only rows with this in their names
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import zoo
from embedded import stories
from embedded.models import NAMES, TOP, path_of
from mccompile.base.errors import CheckFailed, MccError, Problem
from mccompile.base.quantizing import MOST
from mccompile.driver import Options
from mccompile.emit.summary import table
from mccompile.frontend.load import load
from mccompile.frontend.save import write
from mccompile.measure.cost import cost
from mccompile.quantize.narrow_layers import narrow_layers
from mccompile.quantize.palettes import palettize_layers
from mccompile.targets.api import Prefer

FIGURES, PAGE = TOP / "embedded" / "costs.json", TOP / "docs" / "embedded.md"
BEGIN, END = "<!-- begin of tables: python -m embedded.table --update -->", "<!-- end of tables -->"
GROWTH = 1.02
TARGETS = ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc")
ZOO = ("ad_toycar_f32", "ic_resnet8_int8", "kws_dscnn_f32", "kws_dscnn_int8", "vww96_int8")
NARROW = ("kws_dscnn_int8", "vww96_int8")  # with weights of 4 bits, and of 16 values, too
INTEGERS = ("autoencoder_int8", "residual_int8", "separable_int8")
COMPARED = (("cortex-m4", "flash"), ("cortex-m4", "time"), ("cortex-m55", "time"))
BALANCED = ("cortex-m4", "cortex-m55")
SMALLEST = (  # for networks of integers
    ("cortex-m0", "ram"),
    ("cortex-m0", "flash"),
    ("cortex-m3", "flash"),
    ("rv32imc", "ram"),
)
WATCHED = ("run_instructions", "code_bytes", "weights_bytes", "arena_bytes", "run_stack_bytes")
HEAD = ("model", "instructions", "per mac", "init", "code", "own code", "weights", "arena", "stack")


@dataclass(frozen=True)
class Row:
    """One thing to measure."""

    model: str
    path: Path
    target: str
    prefer: str
    more: Mapping[str, Any] = field(default_factory=dict)  # options

    @property
    def key(self) -> str:
        return f"{self.target} {self.prefer} {self.model}"


def rows(folder: Path, zoo: Path | None) -> Iterator[Row]:
    for name in NAMES:
        for target in TARGETS:
            yield Row(name, path_of(name, folder), target, "ram")
    for bits in stories.BITS:
        for target in stories.CORES:
            yield Row(f"story_{bits}bit", stories.saved(bits, folder), target, "balanced", stories.HOW)
    small = [(name, path_of(name, folder)) for name in INTEGERS]
    large = [(name, Path(zoo, name, "model.onnx")) for name in ZOO] if zoo else []
    for name, path in (*small, *large):
        for target, prefer in COMPARED:
            yield Row(name, path, target, prefer)
    for name, path in large:
        yield Row(name, path, "cortex-m4", "ram")
        if name in NARROW:
            narrow = f"{name}_4bit"
            yield Row(narrow, in_four_bits(path, Path(folder, f"{narrow}.onnx")), "cortex-m4", "flash")
            few = f"{name}_palette"
            yield Row(few, in_palettes(path, Path(folder, f"{few}.onnx")), "cortex-m4", "flash")
    for name, path in (*small, *large):
        for target in BALANCED:
            yield Row(name, path, target, "balanced")
    for name, path in (row for row in (*small, *large) if row[0].endswith("_int8")):
        for target, prefer in SMALLEST:
            yield Row(name, path, target, prefer)


def in_four_bits(path: Path, to: Path) -> Path:
    """The model with weights of 4 bits, as `mccompile quantize --weights int4` makes them."""
    graph = load(path, {})
    narrow_layers(graph, MOST["int4"])
    write(graph, to)
    return to


def in_palettes(path: Path, to: Path) -> Path:
    """The model with weights of 16 values per layer, as `mccompile quantize --weights palette4` makes them."""
    graph = load(path, {})
    palettize_layers(graph)
    write(graph, to)
    return to


def measured(row: Row) -> dict[str, Any]:
    options = Options(target=row.target, prefer=Prefer(row.prefer), name=row.model, **row.more)
    figures = cost(row.path, options).as_dict()
    bound, used = figures["run_stack_bound_bytes"], figures["run_stack_bytes"]
    if figures["run_stack_bound_without"] or bound is None or not used <= bound <= 1.15 * used + 64:
        raise CheckFailed(Problem("the bound of the stack does not hold or is loose", row.key, f"{bound}, {used} used"))
    return {key: figures[key] for key in ("macs", "init_instructions", "own_code_bytes", *WATCHED)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    recorded: dict[str, dict[str, Any]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    grown = []
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        for row in rows(Path(scratch), arguments.zoo):
            if arguments.only not in row.key:
                continue
            try:
                found = measured(row)
            except MccError as error:
                print(f"{row.key}: {error}", file=sys.stderr)
                return error.exit_code
            before = recorded.get(row.key)
            grown += [
                f"{row.key}: {name} was {before[name]}, is {found[name]}"
                for name in WATCHED
                if before is not None and found[name] > before[name] * GROWTH
            ]
            if before is None and not arguments.update:
                grown.append(f"{row.key} is not recorded")
            recorded[row.key] = found
    if arguments.update:
        FIGURES.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        write_page(recorded)
        zoo.write_page(zoo.page(zoo.entries(), zoo.Recorded()))
    print("\n".join(grown) or f"{len(recorded)} rows, nothing has grown by more than 2 %")
    return 1 if grown and not arguments.update else 0


def write_page(recorded: dict[str, dict[str, Any]]) -> None:
    groups: dict[tuple[str, str], list[list[str]]] = {}
    for key, f in sorted(recorded.items()):
        target, prefer, model = key.split(" ")
        per_mac = f"{f['run_instructions'] / f['macs']:.2f}" if f["macs"] else ""
        figures = [
            f"{f[name]:,}"
            for name in ("init_instructions", "code_bytes", "own_code_bytes", "weights_bytes", "arena_bytes")
        ]
        line = [model, f"{f['run_instructions']:,}", per_mac, *figures, f"{f['run_stack_bytes']}"]
        groups.setdefault((target, prefer), []).append(line)
    parts = []
    for (target, prefer), lines in groups.items():
        parts += [f"### {target}, `--prefer {prefer}`", "", "```text", *table(HEAD, lines, frozenset({0})), "```", ""]
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(parts) + f"{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
