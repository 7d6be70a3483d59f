"""Runs random cases of operators, compiled to C, beside LiteRT's interpreter:

    python -m tests.importers.tflite.run_cases --count 20 --seed 3 CONV_2D ADD
    python -m tests.importers.tflite.run_cases --table docs/tflite.md      # the table of what is covered

Cases of one operator go into one file, as many as --together, so that few programs are built.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

import mccompile
from mccompile.base.errors import MccError
from mccompile.importers.tflite.refused import REFUSED, reason
from mccompile.importers.tflite.site import registry

from .build import Net
from .draw import Case, Draw, cases, values
from .litert import Litert

_START, _END = "<!-- table of operators -->", "<!-- end of the table -->"
WITHOUT_CASES = {
    "ASSIGN_VARIABLE": "variables are tested as a whole",
    "BROADCAST_ARGS": "not tested beside LiteRT; of constants",
    "CALL_ONCE": "that gives variables their first values; variables are tested as a whole",
    "DENSIFY": "not tested beside LiteRT; constants are made dense while the file is read",
    "IF": "tested as a whole",
    "MULTINOMIAL": "drawn anew in every run; without a seed",
    "LSTM": "not tested beside LiteRT; one step of UNIDIRECTIONAL_SEQUENCE_LSTM",
    "RANGE": "of numbers that are known when compiling; one test",
    "RANDOM_STANDARD_NORMAL": "drawn anew in every run; without a seed",
    "RANDOM_UNIFORM": "drawn anew in every run; without a seed",
    "READ_VARIABLE": "variables are tested as a whole",
    "RNN": "tested as a whole; one step of UNIDIRECTIONAL_SEQUENCE_RNN",
    "SPARSE_TO_DENSE": "tested as a whole, into sizes that are constant",
    "STABLEHLO_COMPOSITE": "as the file writes it out; LiteRT refuses those without attributes",
    "UNIQUE": "tested as a whole; the size of the result is known only at run time",
    "VAR_HANDLE": "variables are tested as a whole",
    "WHERE": "tested as a whole; the size of the result is known only at run time",
    "WHILE": "tested as a whole",
    "custom TFLite_Detection_PostProcess": "tested as a whole; one class for a box",
}
_COMPILER = os.environ.get("CC") or shutil.which("tcc") or "cc"  # quick is better than fast


class Batch:
    """Cases in one file, each of which LiteRT has run by itself."""

    def __init__(self, name: str, case: Case, seeds: Sequence[int], resized: bool = False) -> None:
        self.name, self.case, self.resized = name, case, resized
        self.refused: list[str] = []  # by LiteRT
        self.net, outputs, ranges = Net(), list[int](), dict[int, tuple[float, float]]()
        sizes: dict[int, tuple[int, ...]] = {}
        self.types: set[str] = set()
        self.count = 0
        for seed in seeds:
            if (why := self.why_not(seed)) is not None:
                self.refused.append(f"seed {seed}: {why}")
                continue
            first = len(self.net.inputs)
            draw = self.drawn(self.net, seed)
            sizes |= self.sizes(self.net, self.net.inputs[first:], seed)
            outputs += self.results
            ranges |= draw.ranges
            self.count += 1
        self.data = self.net.file(outputs)
        chance = np.random.default_rng(list(seeds))
        known = [(self.net.tensors[n] | {"shape": sizes[n]}, ranges.get(n)) for n in self.net.inputs]
        self.inputs = [values(tensor, range, chance) for tensor, range in known]
        self.types = {self.net.tensors[number]["type"] for number in (*self.net.inputs, *outputs)}

    def drawn(self, net: Net, seed: int) -> Draw:
        draw = Draw(self.name, net, np.random.default_rng([seed, crc32(self.name.encode())]))
        self.results = self.case.draw(draw)
        return draw

    def sizes(self, net: Net, inputs: Sequence[int], seed: int) -> dict[int, tuple[int, ...]]:
        """Shapes of inputs: those of the file, or others on one axis."""
        found = {}
        for number in inputs:
            shape = list(net.tensors[number]["shape"])
            if self.resized and len(shape) > seed % 3:
                shape[seed % 3] += 1 + seed % 2
            found[number] = tuple(shape)
        return found

    def why_not(self, seed: int) -> str | None:
        """LiteRT's reason to refuse a case."""
        net = Net()
        draw = self.drawn(net, seed)
        chance = np.random.default_rng(seed)
        data = net.file(list(self.results))
        sizes = self.sizes(net, net.inputs, seed)
        known = [(net.tensors[n] | {"shape": sizes[n]}, draw.ranges.get(n)) for n in net.inputs]
        try:
            Litert(data, self.case.optimised)([values(tensor, range, chance) for tensor, range in known])
        except (RuntimeError, ValueError) as error:
            return str(error).strip().splitlines()[0] + str(net.operators[-1])
        return None

    def wrong(self, runs: int = 2) -> list[str]:
        """What differs, in words."""
        if not self.count:
            return []
        shapes = {self.net.tensors[n]["name"]: a.shape for n, a in zip(self.net.inputs, self.inputs, strict=True)}
        asked = {"shapes": shapes} if self.resized else {}
        network = mccompile.load(self.data, target="generic", cc=_COMPILER, **asked)
        reference = Litert(self.data, self.case.optimised)
        found = []
        for run in range(runs):
            got, wanted = network(*self.inputs), reference(self.inputs)
            for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
                why = differs(a, b, self.case)
                if why:
                    found.append(f"{self.name}, run {run}, result {number} of {b.dtype}{list(b.shape)}: {why}")
        return found


def differs(got: np.ndarray, wanted: np.ndarray, case: Case) -> str:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"it is {got.dtype}{list(got.shape)}"
    if wanted.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            off = np.abs(got.astype(np.float64) - wanted)
            off = np.where((got == wanted) | (np.isnan(got) & np.isnan(wanted)), 0, off)
        most = case.rtol * float(np.max(np.abs(wanted), where=np.isfinite(wanted), initial=1e-6))
    else:
        off = np.abs(got.astype(np.int64) - wanted.astype(np.int64))
        most = {1: case.steps, 2: case.halves}.get(wanted.dtype.itemsize, 0) if wanted.dtype != np.bool_ else 0
    if not off.size or not (off > most).any():
        return ""
    place = np.unravel_index(int(np.argmax(off)), off.shape)
    return f"{int((off > most).sum())} of {off.size} differ, by {off.max()} at most: {got[place]}, not {wanted[place]}"


def with_table(page: str, rows: Mapping[str, tuple[int, set[str]]]) -> str:
    """A page with the table of all operators: types and number of cases of a run, or why there are none."""
    lines = ["| operator | cases | types of inputs and results |", "|---|--:|---|"]
    for name in registry():
        count, types = rows.get(name, (0, set()))
        shown = ", ".join(sorted(type.lower() for type in types)) or WITHOUT_CASES[name]
        lines.append(f"| `{name.removeprefix('custom ')}` | {count or ''} | {shown} |")
    lines += ["", "Refused, each with its reason:", "", "| operator | why | what to do |", "|---|---|---|"]
    lines += [f"| `{name}` | {' | '.join(why)} |" for name, why in sorted(REFUSED.items())]
    lines.append(f"| `STABLEHLO_...` | {' | '.join(reason('STABLEHLO_ADD'))} |")
    start, end = page.index(_START) + len(_START), page.index(_END)
    return "\n".join([page[:start], *lines, page[end:]])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--together", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resized", action="store_true", help="Run other sizes than those of the files.")
    parser.add_argument("--table", type=Path, metavar="PAGE", help="Write what was right into the table of this page.")
    asked = parser.parse_args()
    rows: dict[str, tuple[int, set[str]]] = {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MCCOMPILE_CACHE"] = cache
        run, wrong = 0, 0
        for name in asked.names or cases():
            seeds = range(asked.seed, asked.seed + asked.count)
            for first in range(0, asked.count, asked.together):
                try:
                    batch = Batch(name, cases()[name], seeds[first : first + asked.together], asked.resized)
                    found = batch.wrong()
                except MccError as error:
                    found = [f"{name}: {str(error)[:1500]}"]
                except Exception:
                    found = [f"{name}: {traceback.format_exc()[-1500:]}"]
                else:
                    run += batch.count
                    if not found:
                        count, types = rows.get(name, (0, set()))
                        rows[name] = count + batch.count, types | batch.types
                    for why in batch.refused:
                        print(f"{name}: LiteRT refuses {why[:300]}")
                wrong += len(found)
                print("\n".join(found) or f"{name}: {batch.count} right, {' '.join(sorted(batch.types))}", flush=True)
        print(f"{run} cases, {wrong} wrong")
    if asked.table is not None:
        asked.table.write_text(with_table(asked.table.read_text(encoding="utf-8"), rows), encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
