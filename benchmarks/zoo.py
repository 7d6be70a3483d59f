"""Networks that others have published, and the project's own, on eight targets: the page docs/zoo.md, made from the
recorded tables of microcontrollers and of vectors, and benchmarks/zoo.json for what these do not have.
benchmarks/zoo.toml says where each network comes from; none lies in the project but those of its examples.

python -m benchmarks.zoo                          make the page anew from what is recorded
python -m benchmarks.zoo --measure --zoo FOLDER   measure first what no table has; FOLDER has NAME/model.onnx
... --only "vww cortex-m4"                        rows with each of these words in their names
... --again                                       also what zoo.json has
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import instructions, small_networks
from embedded import models, table
from mccompile.base.errors import MccError
from mccompile.driver import Options, compile
from mccompile.measure.cost import cost
from mccompile.targets.api import Prefer

TOP = Path(__file__).resolve().parent.parent
ENTRIES, FIGURES, PAGE = TOP / "benchmarks" / "zoo.toml", TOP / "benchmarks" / "zoo.json", TOP / "docs" / "zoo.md"
BEGIN, END = "<!-- begin of tables: python -m benchmarks.zoo -->", "<!-- end of tables -->"
TARGETS = ("cortex-m0", "cortex-m4", "cortex-m7", "cortex-m55", "rv32imc", "aarch64", "riscv64v", "wasm32")
COUNTED = 15_000_000  # multiply-accumulates up to which a run is emulated; more would take minutes
SOFT_FLOATS, SOFT = ("cortex-m0", "rv32imc"), 1_000_000  # the same where floats are computed by functions
PREFERRED = ("balanced", "time", "ram", "flash")  # whose row is shown, of several
COLUMNS = ("run_instructions", "arena_bytes", "weights_bytes", "code_bytes")
HEAD = ("network", "instructions", "RAM: arena", "flash: weights", "flash: code", "command")


@dataclass(frozen=True)
class Entry:
    """A network: where it comes from, and what is told of it."""

    name: str
    does: str
    origin: str  # an address, or the file or module of the project
    licence: str
    integers: bool = False

    def file(self, scratch: Path, zoo: Path | None) -> Path | None:
        """Where it is here; None where that is not known."""
        if self.origin.startswith("https:"):
            return zoo / self.name / "model.onnx" if zoo else None
        if self.origin.endswith(".onnx"):
            return TOP / self.origin
        if self.origin.startswith("embedded/"):
            return models.path_of(self.name, scratch)
        return small_networks.path_of(self.name, scratch)

    @property
    def argument(self) -> str:
        return self.origin if self.origin.endswith(".onnx") else f"{self.name}.onnx"


@dataclass(frozen=True)
class Row:
    """What is recorded of a network on a target."""

    figures: dict[str, Any]
    prefer: str = ""  # where it is not what the target prefers

    def line(self, entry: Entry, target: str) -> str:
        known = (self.figures.get(name) for name in COLUMNS)
        figures = " | ".join("" if value is None else f"{value:,}" for value in known)
        prefer = f" --prefer {self.prefer}" if self.prefer else ""
        return f"| {entry.name} | {figures} | `mccompile bench {entry.argument} --target {target}{prefer}` |"


def _read(file: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


class Recorded:
    """The three tables."""

    def __init__(self) -> None:
        self.own, self.boards, self.vectors = map(_read, (FIGURES, table.FIGURES, instructions.FIGURES))

    def row(self, name: str, target: str) -> Row | None:
        for prefer in PREFERRED:
            if found := self.boards.get(f"{target} {prefer} {name}"):
                return Row(found, prefer)
        if found := self.own.get(f"{name} {target}"):
            return Row(found)
        if found := self.vectors.get(f"{name} {target}"):
            return Row({"macs": found["macs"], "run_instructions": found["vectors"]}, str(Prefer.TIME))
        return None

    def macs(self, name: str) -> int | None:
        rows = filter(None, (self.row(name, target) for target in TARGETS))
        return next((row.figures["macs"] for row in rows), None)


def entries() -> list[Entry]:
    return [Entry(**entry) for entry in tomllib.loads(ENTRIES.read_text(encoding="utf-8"))["network"]]


def measured(entry: Entry, file: Path, target: str, macs: int | None) -> dict[str, Any]:
    """Counted under emulation where that ends within a minute or so, else what compiling alone tells."""
    options = Options(target=target, name=entry.name)
    most = SOFT if target in SOFT_FLOATS and not entry.integers else COUNTED
    if macs is not None and macs <= most:
        found = cost(file, options).as_dict()
        return {name: found[name] for name in ("macs", *COLUMNS)}
    package = compile(file, options)
    sizes = {"arena_bytes": package.plan.arena_bytes, "weights_bytes": package.weights_bytes}
    return {"macs": package.macs, **sizes}


def measure(recorded: Recorded, zoo: Path | None, words: Sequence[str], again: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        for target, entry in ((target, entry) for target in TARGETS for entry in entries()):
            key, file = f"{entry.name} {target}", entry.file(Path(scratch), zoo)
            known = recorded.row(entry.name, target)
            is_wanted = known is None or (again and key in recorded.own)
            if file is None or not is_wanted or not all(word in key for word in words):
                continue
            macs = recorded.macs(entry.name)
            recorded.own[key] = measured(entry, file, target, compile(file, Options()).macs if macs is None else macs)
            FIGURES.write_text(json.dumps(recorded.own, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            print(key, flush=True)


def page(networks: Sequence[Entry], recorded: Recorded) -> str:
    """What stands between the marks."""
    return "\n".join([*_origins(networks, recorded), *_tables(networks, recorded)])


def _origins(networks: Sequence[Entry], recorded: Recorded) -> Iterator[str]:
    yield from ("## Where they come from", "", "| network | what it does | multiply-accumulates | from | licence |")
    yield "|---|---|---:|---|---|"
    for entry in networks:
        macs = recorded.macs(entry.name)
        yield f"| {entry.name} | {entry.does} | {macs or 0:,} | {_source(entry.origin)} | {entry.licence} |"


def _source(origin: str) -> str:
    if not origin.startswith("https:"):
        return f"`{origin}`"
    parts = origin.split("/")
    return f"[{parts[3]}/{parts[4]}, {parts[-1]}]({origin})"


def _tables(networks: Sequence[Entry], recorded: Recorded) -> Iterator[str]:
    for target in TARGETS:
        yield from ("", f"## {target}", "", f"| {' | '.join(HEAD)} |", "|---|---:|---:|---:|---:|---|")
        rows = ((entry, recorded.row(entry.name, target)) for entry in networks)
        yield from (row.line(entry, target) for entry, row in rows if row is not None)


def write_page(text: str) -> None:
    old = PAGE.read_text(encoding="utf-8")
    before, after = old.partition(BEGIN)[0], old.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    recorded = Recorded()
    if arguments.measure:
        try:
            measure(recorded, arguments.zoo, arguments.only.split(), arguments.again)
        except MccError as error:
            print(error, file=sys.stderr)
            return error.exit_code
    write_page(page(entries(), recorded))
    print(f"{len(entries())} networks, {len(recorded.own)} rows of its own")
    return 0


if __name__ == "__main__":
    sys.exit(main())
