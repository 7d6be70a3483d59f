"""What the planners and the row-wise execution reach over a folder of models: `python -m benchmarks.memory ZOO`.

Prints the table of docs/memory.md in Markdown; `--write` puts it there. Bytes of the arena for target generic: the
sum of all buffers; each planner on the same blocks; the lower bound (no planner can do with less); then with chains
of calls run row by row. `--bounds FILE` compares with what a study of the models found possible: a JSON object with
`must` (call by call) and `stretch` (by rows) for each.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from mccompile.base.errors import MccError
from mccompile.driver import Options, pass_manager
from mccompile.driver.options import RowByRow
from mccompile.frontend.load import load
from mccompile.memory.interval import Block, lower_bound, naive_size
from mccompile.memory.planners import PLANNERS
from mccompile.passes.api import GRAPH, PROGRAM
from mccompile.passes.lower import lower
from mccompile.passes.memory.liveness import blocks_of, liveness, unshared
from mccompile.pipeline import chosen

DOCS = Path(__file__).resolve().parent.parent / "docs" / "memory.md"
START, END = "<!-- made by benchmarks/memory.py -->\n", "<!-- end -->\n"


def blocks(model: Path, rows: RowByRow) -> tuple[list[Block], int]:
    """What has to be placed, and the bytes without any sharing."""
    options = Options(rows=rows)
    manager = pass_manager(options)
    target = manager.context.target
    graph = load(model)
    graph_passes, program_passes = chosen(True)
    manager.run(GRAPH, graph, graph_passes)
    program = lower(graph)
    manager.run(PROGRAM, program, program_passes)
    lives = liveness(program)
    return blocks_of(lives, target.align)[0], naive_size(unshared(program, lives, target.align))


def line(folder: Path) -> list[int]:
    plain, naive = blocks(folder / "model.onnx", RowByRow.OFF)
    by_rows, _ = blocks(folder / "model.onnx", RowByRow.AUTO)
    planned = [planner(plain).size for planner in PLANNERS.values()]
    return [naive, *planned, lower_bound(plain), PLANNERS["push-down"](by_rows).size]


def compared(found: Mapping[str, Sequence[int]], bounds: Mapping[str, Mapping[str, int]]) -> str:
    """How many models are at what is possible, and by how much the others are above it."""
    lines = []
    for word, column in (("must", 1), ("stretch", -1)):
        ratios = {name: row[column] / bounds[name][word] for name, row in found.items() if name in bounds}
        above = [f"{name} {ratio:.3f}" for name, ratio in ratios.items() if ratio > 1]
        lines.append(f"{len(ratios) - len(above)} of {len(ratios)} at `{word}`; above it: {', '.join(above) or 'none'}")
    return "\n".join(lines)


def figures(zoo: Path) -> dict[str, list[int]]:
    found = {}
    for folder in sorted(path.parent for path in zoo.glob("*/model.onnx")):
        try:
            found[folder.name] = line(folder)
        except MccError as error:
            print(f"{folder.name}: {error}")
    return found


def table(found: Mapping[str, Sequence[int]]) -> str:
    head = ["model", "without sharing", *PLANNERS, "lower bound", "by rows"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 1)]
    for name, row in found.items():
        lines.append(f"| {name} | {' | '.join(f'{figure:,}' for figure in row)} |")
    bound = len(head) - 3
    means = [
        math.exp(sum(math.log(max(row[column], 1) / max(row[bound], 1)) for row in found.values()) / len(found))
        for column in range(len(head) - 1)
    ]
    lines.append(f"| *geometric mean over the bound* | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("zoo", type=Path, help="a folder with a folder per model")
    parser.add_argument("--bounds", type=Path, help="what is possible, per model")
    parser.add_argument("--write", action="store_true", help="put the table into docs/memory.md")
    arguments = parser.parse_args()
    found = figures(arguments.zoo)
    made = table(found)
    print(made)
    if arguments.bounds:
        print(compared(found, json.loads(arguments.bounds.read_text(encoding="utf-8"))))
    if arguments.write:
        put(DOCS, START, made, END)


def put(page: Path, start: str, made: str, end: str) -> None:
    """Replaces what stands between two marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    page.write_text(before + start + made + end + rest.partition(end)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
