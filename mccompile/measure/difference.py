"""What changed between two compiled models: figures, and steps by the nodes that they do the work of.

Both sides are report.json files (or the folders that hold them), or what `mccompile bench --json`, `mccompile
analyze --json` and `mccompile quantize --json` print. Only figures that both sides have are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import BadFile, Problem
from ..emit.summary import table

FIGURES = {  # key -> what it is; less is better in all but the last
    "arena_bytes": "RAM: arena, bytes",
    "struct_bytes": "RAM: struct, bytes",
    "run_stack_bytes": "RAM: stack, bytes",
    "external_bytes": "RAM: outside the arena, bytes",
    "weights_bytes": "flash: weights, bytes",
    "code_bytes": "flash: code, bytes",
    "macs": "multiply-accumulates",
    "run_instructions": "instructions per run",
    "init_instructions": "instructions of init",
    "median_us": "time, µs",
    "accuracy_percent": "accuracy, %",
}


@dataclass(frozen=True)
class Change:
    what: str
    before: float
    after: float

    @property
    def share(self) -> str:
        if self.before == self.after:
            return "same"
        if not self.before:
            return "new"
        return f"{(self.after - self.before) / self.before:+.1%}"


@dataclass(frozen=True)
class Difference:
    before: str  # model and target
    after: str
    figures: tuple[Change, ...]
    steps: tuple[tuple[str, str], ...]  # name, and what happened to it

    @property
    def has_changes(self) -> bool:
        return bool(self.steps) or any(change.before != change.after for change in self.figures)

    def as_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "figures": [{"what": c.what, "before": c.before, "after": c.after} for c in self.figures],
            "steps": [{"name": name, "change": change} for name, change in self.steps],
        }

    def show(self) -> str:
        """For the terminal."""
        rows = [[c.what, _number(c.before), _number(c.after), c.share] for c in self.figures]
        lines = [f"before   {self.before}", f"after    {self.after}", ""]
        lines += table(["", "before", "after", "change"], rows, frozenset({0}))
        lines += ["", f"{len(self.steps) or 'no'} steps changed"]
        return "\n".join([*lines, *(f"  {name}: {change}" for name, change in self.steps)])

    def markdown(self) -> str:
        """For a pull request."""
        lines = [f"**{_cell(self.before)}** → **{_cell(self.after)}**", "", "| | before | after | change |"]
        lines += ["|---|--:|--:|--:|"]
        lines += [f"| {c.what} | {_number(c.before)} | {_number(c.after)} | {c.share} |" for c in self.figures]
        lines += ["", f"{len(self.steps) or 'No'} steps changed."]
        if self.steps:
            lines += ["", "<details><summary>Steps</summary>", "", "| step | change |", "|---|---|"]
            lines += [*(f"| {_cell(name)} | {_cell(change)} |" for name, change in self.steps), "", "</details>"]
        return "\n".join(lines)


def difference(before: Path, after: Path) -> Difference:
    one, other = _read(before), _read(after)
    figures = [
        Change(words, one[key], other[key])
        for key, words in FIGURES.items()
        if isinstance(one.get(key), int | float) and isinstance(other.get(key), int | float)
    ]
    return Difference(_title(one), _title(other), tuple(figures), tuple(_steps(_steps_of(one), _steps_of(other))))


def _read(path: Path) -> Mapping[str, Any]:
    file = path / "report.json" if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        fix = "name an output folder of mccompile, or a report.json"
        raise BadFile(Problem(f"cannot read {file.name}", str(file), error.strerror or str(error), fix)) from None
    except ValueError as error:
        raise BadFile(Problem(f"{file} is not JSON", "", str(error), "name a report.json of mccompile")) from None
    if not isinstance(content, dict) or not {"model", "target"} <= content.keys():
        fix = "name an output folder, its report.json, or what bench, analyze or quantize --json has printed"
        raise BadFile(Problem("this is not a report of mccompile", str(file), "it has no model and target", fix))
    return {**content, **content.get("measured", {}), "steps": content.get("steps", [])}


def _title(report: Mapping[str, Any]) -> str:
    return f"{report['model']} for {report['target']}"


def _steps_of(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Steps by name; a name that stands there twice is told apart by its place."""
    steps: Sequence[Mapping[str, Any]] = report["steps"] if isinstance(report["steps"], list) else []
    found: dict[str, Mapping[str, Any]] = {}
    for step in steps:
        name, count = step["name"] or step.get("op", "step"), 2
        key = name
        while key in found:
            key, count = f"{name} ({count})", count + 1
        found[key] = step
    return found


def _steps(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    for name in {**before, **after}:
        if name not in after:
            yield name, "gone"
        elif name not in before:
            yield name, f"new, {after[name]['kernel']}"
        else:
            changes = [
                f"{key} {before[name][key]} → {after[name][key]}"
                for key in ("kernel", "macs")
                if before[name].get(key) != after[name].get(key)
            ]
            if changes:
                yield name, ", ".join(changes)


def _number(value: float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    """Text that neither ends a cell of a table nor means anything in Markdown or HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
