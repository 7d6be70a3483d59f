"""What each part of the optimizer is worth: a table in docs/optimizer.md.

    python benchmarks/optimizer_table.py --zoo FOLDER

Per model of a folder (a folder each, with model.onnx and test_data_set_*, as ONNX's own tests have them): nodes of the
model, kernel calls of the program, and the time of a run: as compiled by default, and with fusion, layout or folding
left out. Times are the shortest of several rounds in which the variants take turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mccompile.base.errors import MccError
from mccompile.check.inputs import stored_sets
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load
from mccompile.graph.ir import all_nodes
from mccompile.measure.correctness import build

# fmt: off
LEFT_OUT = {
    "default": frozenset[str](),
    "no fusion": frozenset({
        "fuse", "fuse_pad", "fuse_batchnorm", "merge_parallel", "move_factors", "recognise_idioms",
    }),
    "no layout": frozenset({"assign_layout"}),
    "no folding": frozenset({"fold_constants", "clean_up"}),
}
# fmt: on
ROUNDS = 7
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "optimizer.md"
BEGIN, END = "<!-- table: benchmarks/optimizer_table.py -->", "<!-- end of table -->"


@dataclass(frozen=True)
class Row:
    name: str
    nodes: int
    calls: dict[str, int]  # by variant
    milliseconds: dict[str, float]


def measured(folder: Path, target: str) -> Row:
    models, calls, nodes = {}, {}, 0
    for variant, without in LEFT_OUT.items():
        graph = load(folder / "model.onnx")
        nodes = sum(1 for _ in all_nodes(graph))
        data = stored_sets(folder, [value.name for value in graph.inputs])[0]
        options = Options(target=target, without=without)
        package = compile_graph(graph, options, folder.name)
        calls[variant] = sum(1 for _ in package.plan.steps())
        models[variant] = build(package, options.resolved_target())
    fastest = dict.fromkeys(models, float("inf"))
    for _ in range(ROUNDS):
        for variant, model in models.items():
            start = time.perf_counter()
            model.run(data.inputs)
            fastest[variant] = min(fastest[variant], time.perf_counter() - start)
    return Row(folder.name, nodes, calls, {variant: 1e3 * seconds for variant, seconds in fastest.items()})


def lines(rows: list[Row]) -> list[str]:
    """A table in Markdown."""
    titles = ["model", "nodes", *(f"calls, {v}" if v != "default" else "calls" for v in ("default", "no fusion"))]
    titles += [f"ms, {variant}" for variant in LEFT_OUT]
    found = [f"| {' | '.join(titles)} |", f"|---|{'--:|' * (len(titles) - 1)}"]
    for row in rows:
        counts = [str(row.nodes), str(row.calls["default"]), str(row.calls["no fusion"])]
        times = [f"{row.milliseconds[variant]:.2f}" for variant in LEFT_OUT]
        found.append(f"| {' | '.join([row.name, *counts, *times])} |")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--zoo", type=Path, required=True, help="the folder of models")
    parser.add_argument("--target", default="generic")
    parser.add_argument("--only", default="", help="names of models, with commas between; the table is only printed")
    arguments = parser.parse_args()
    wanted = [name for name in arguments.only.split(",") if name]
    rows = []
    for path in sorted(arguments.zoo.glob("*/model.onnx")):
        if wanted and path.parent.name not in wanted:
            continue
        try:
            rows.append(measured(path.parent, arguments.target))
            print(lines(rows)[-1], flush=True)
        except MccError as error:
            print(f"{path.parent.name}: {error.problems[0].what}", flush=True)
    if not rows:
        print(f"no model in {arguments.zoo}", file=sys.stderr)
        return 2
    if not wanted:
        before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        DOCUMENT.write_text("\n".join([before + BEGIN, "", *lines(rows), "", END + after]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
