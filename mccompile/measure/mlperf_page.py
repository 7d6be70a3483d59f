"""The results page of a project for MLPerf Tiny: what is known of the build, and a form for what a board measures.

`results.json` is the page, `results.md` shows it. Invariant: a figure in the measured column is one that a board told,
of the build that the project has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .. import __version__
from ..base.errors import BadFile, Problem, WrongUse
from ..emit.folder import replace_files
from ..emit.package import Package
from ..targets.boards.catalogue import Board
from .eembc import Benchmark

PAGE, SHOWN = "results.json", "results.md"
_ROWS = {
    "arena_bytes": "arena, bytes",
    "weights_bytes": "weights, bytes",
    "microseconds": "microseconds of an inference",
    "inferences_per_second": "inferences per second",
    "accuracy": "accuracy",
    "area_under_roc": "area under the ROC curve",
}


def page_files(benchmark: Benchmark, model: str, board: Board, package: Package) -> dict[str, bytes]:
    """The page of a new project, whose measured column is empty."""
    cycles = package.estimate.time
    built = {"arena_bytes": package.plan.arena_bytes, "weights_bytes": package.weights_bytes}
    estimated = {"microseconds": cycles / board.mhz, "inferences_per_second": 1e6 * board.mhz / cycles}
    return _files(
        {
            "benchmark": benchmark.model,
            "file": model,
            "board": board.name,
            "chip": board.chip,
            "core": board.core.name,
            "mhz": board.mhz,
            "mccompile": __version__,
            "macs": package.macs,
            "computed": built | ({key: float(f"{value:.4g}") for key, value in estimated.items()} if cycles else {}),
            "judged_by": benchmark.judged_by,
            "measured": {},
        }
    )


def read_page(project: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((project / PAGE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        fix = "name the folder that `mccompile deploy --mlperf-tiny` has written"
        raise WrongUse(Problem("there is no page of results", str(project), f"it has no {PAGE}", fix)) from None
    except (OSError, ValueError) as error:
        raise BadFile(Problem(f"cannot read {project / PAGE}", "", str(error))) from None


def fill(project: Path, measured: Mapping[str, Any]) -> None:
    """Puts the figures into the form."""
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    replace_files(project, _files({**read_page(project), "measured": {**measured, "date": when}}))


def _files(page: Mapping[str, Any]) -> dict[str, bytes]:
    stored = json.dumps(page, indent=1, ensure_ascii=False) + "\n"
    return {PAGE: stored.encode(), SHOWN: ("\n".join(_shown(page)) + "\n").encode()}


def _shown(page: Mapping[str, Any]) -> Sequence[str]:
    measured, computed = page["measured"], page["computed"]
    rows = [key for key in _ROWS if key in computed or key in measured or key == page["judged_by"]]
    where = f"{page['chip']}, {page['core']}, {page['mhz']} MHz"
    lines = [
        f"# {page['benchmark']} of MLPerf Tiny on {page['board']}",
        "",
        f"The network `{page['file']}` with {page['macs']:,} multiply-accumulates, compiled by mccompile"
        f" {page['mccompile']} for {page['board']} ({where}).",
        "",
        "| | computed or estimated | measured |",
        "|---|--:|--:|",
        *(f"| {_ROWS[key]} | {_figure(computed.get(key))} | {_figure(measured.get(key))} |" for key in rows),
        "",
    ]
    if not measured:
        return [*lines, "Nothing is measured yet: the last command of README.md asks the board."]
    samples = f", accuracy over {measured['samples']} inputs" if "samples" in measured else ""
    how = f"the median of {measured['windows']} measurements of {measured['runs']} inferences{samples}"
    return [*lines, f"Measured on {measured['date']}: {how}."]


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{float(f'{value:.4g}'):,}"
