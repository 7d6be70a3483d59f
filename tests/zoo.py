"""Compiles and runs every model of a folder, and compares with its stored outputs: `make zoo ZOO=folder`.

The folder holds a folder per model, with model.onnx and test_data_set_* as ONNX's own tests have them. An index.json
beside them may say under `ort_opt_vs_noopt` how far the optimiser of onnxruntime moves the results; nobody is asked to
be closer than that. A refused model is not a failure; a wrong result is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mccompile.emit.summary import table
from mccompile.measure.workers import LostJob, results
from tests.executors import add_arguments, opened, told
from tests.zoo_models import Job, Row, row_of


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--zoo", type=Path, required=True, help="the folder of models")
    parser.add_argument("--only", default="", help="names of models, with commas between")
    parser.add_argument("--O0", dest="plain", action="store_true", help="leave out all optional passes")
    parser.add_argument("--target", default="generic")
    parser.add_argument("--prefer", default="", help="ram, time or flash; default: what the target prefers")
    parser.add_argument("--threads", type=int, default=1, help="steps are cut for so many workers")
    parser.add_argument("--rows", choices=("off", "auto"), default="auto", help="run chains of calls row by row")
    parser.add_argument("--sliced", action="store_true", help="run one step at a time")
    parser.add_argument("--outside", action="store_true", help="inputs and outputs lie outside the arena")
    parser.add_argument("--pools", action="store_true", help="tensors lie in a small memory and a large one")
    parser.add_argument(
        "--poison",
        action="store_true",
        help="results must not depend on what lay in the memory before, nor on what dead memory holds before any step",
    )
    parser.add_argument("--roundtrip", action="store_true", help="the IR after every pass must read back as printed")
    add_arguments(parser)
    arguments = parser.parse_args()
    wanted = [name for name in arguments.only.split(",") if name]
    folders = sorted(
        path.parent for path in arguments.zoo.glob("*/model.onnx") if not wanted or path.parent.name in wanted
    )
    missing = sorted(set(wanted) - {folder.name for folder in folders})
    if missing or not folders:
        print(f"no model {', '.join(missing) or 'at all'} in {arguments.zoo}", file=sys.stderr)
        return 2
    moved = _how_far_others_move(arguments.zoo / "index.json")
    jobs = [Job(folder.resolve(), arguments, moved.get(folder.name, {})) for folder in folders]
    rows = results(jobs, row_of, opened(arguments), _lost, _print_row, told)
    _print_table(rows)
    return int(any(row.status in ("wrong", "broken") for row in rows))


def _how_far_others_move(index: Path) -> dict[str, Mapping[str, Any]]:
    if not index.is_file():
        return {}
    models = json.loads(index.read_text(encoding="utf-8"))["models"]
    return {entry["name"]: entry.get("ort_opt_vs_noopt") or {} for entry in models}


def _lost(lost: LostJob[Job]) -> Row:
    return Row(lost.job.name, "broken", lost.why)


def _print_row(row: Row) -> None:
    print(f"{row.status:<8} {row.name:<24} {row.detail.splitlines()[0] if row.detail else ''}", flush=True)


def _print_table(rows: list[Row]) -> None:
    head = ["model", "status", "arena", "bound", "weights", "compile s", "run ms", ""]
    lines = [[row.name, row.status, *row.figures, row.detail[:90]] for row in rows]
    print("\n" + "\n".join(table(head, lines, frozenset({0, 1, 7}))))
    counts = {status: sum(row.status == status for row in rows) for status in ("passed", "refused", "wrong", "broken")}
    print("\n" + ", ".join(f"{count} {status}" for status, count in counts.items() if count or status == "wrong"))


if __name__ == "__main__":
    sys.exit(main())
