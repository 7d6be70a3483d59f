"""What changed between two compiled models: figures, and steps by the nodes that they do the work of.

Both sides are report.json files (or the folders that hold them), or what `mccompile bench --json`, `mccompile
analyze --json` and `mccompile quantize --json` print. Only figures that both sides have are compared.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.errors import BadFile, Problem, WrongUse
from ..base.near import near
from ..base.records import dataclass
from ..emit.summary import table
from ..option_table import options
from .matching import matched
from .results import Results, moved_weights, results

_WORST = 3  # changes that stand first

FIGURES = {  # key -> what it is; less is better in all but the last
    "arena_bytes": "RAM: arena, bytes",
    "struct_bytes": "RAM: struct, bytes",
    "run_stack_bytes": "RAM: stack, bytes",
    "external_bytes": "RAM: outside the arena, bytes",
    "weights_bytes": "flash: weights, bytes",
    "code_bytes": "flash: code, bytes",
    "macs": "multiply-accumulates",
    "run_instructions": "instructions per run",
    "init_instructions": "start-up instructions",
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

    @property
    def worse(self) -> float:
        """By which share; of accuracy, tenths of a point."""
        if self.what == FIGURES["accuracy_percent"]:
            return (self.before - self.after) / 10
        return (self.after - self.before) / self.before if self.before else float(self.after > 0)


@dataclass(frozen=True)
class Difference:
    before: str  # model and target
    after: str
    figures: tuple[Change, ...]
    steps: tuple[tuple[str, str], ...]  # name, and what happened to it
    results: Results | str = ""  # or why there are none
    weights: tuple[str, ...] = ()  # steps whose weights are other bytes
    now: tuple[int | None, ...] = ()  # numbers after, of the steps that changed
    options: tuple[str, ...] = ()  # that are others
    no_steps: str = ""  # why steps are not compared

    @property
    def has_changes(self) -> bool:
        moved = isinstance(self.results, Results) and any(output.largest for output in self.results.outputs)
        figures = any(change.before != change.after for change in self.figures)
        return bool(self.steps or self.weights) or moved or figures

    @property
    def worst(self) -> list[str]:
        """What got worse, most first: a point of accuracy counts like a tenth of a figure."""
        found = [(c.worse, f"{c.what}: {_number(c.before)} → {_number(c.after)} ({c.share})") for c in self.figures]
        if isinstance(self.results, Results):
            right = self.results.right
            found += [(output.share, f"output {output.name} {output.show()}") for output in self.results.outputs]
            if right is not None:
                found += [(10 * (right[0] - right[1]), f"right answers: {right[0]:.2%} → {right[1]:.2%}")]
        return [text for much, text in sorted(found, key=lambda each: -each[0]) if much > 0][:_WORST]

    def as_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "figures": [{"what": c.what, "before": c.before, "after": c.after} for c in self.figures],
            "steps": [{"name": name, "change": change} for name, change in self.steps],
            **({"no_steps": self.no_steps} if self.no_steps else {}),
            "worst": self.worst,
            "options": list(self.options),
            "moved_weights": list(self.weights),
            **({"results": self.results.as_dict()} if isinstance(self.results, Results) else {}),
            **({"no_results": self.results} if isinstance(self.results, str) and self.results else {}),
        }

    def _told(self) -> list[str]:
        """Of results and weights."""
        lines = []
        if isinstance(self.results, str):
            lines += [f"results  not compared: {self.results}"] if self.results else []
        else:
            where = f"{self.results.runs} runs, inputs {self.results.inputs}"
            lines += [f"output   {output.name} {output.show()} ({where})" for output in self.results.outputs]
            right, answers = self.results.right, self.results.answers
            lines += [f"right    {right[0]:.2%} before, {right[1]:.2%} after"] if right is not None else []
            lines += [f"answers  {answers:.2%} of the runs have another largest element"] if answers else []
        lines += [f"weights  moved: {name}" for name in self.weights]
        return lines

    def show(self) -> str:
        """For the terminal."""
        rows = [[c.what, _number(c.before), _number(c.after), c.share] for c in self.figures]
        lines = [f"before   {self.before}", f"after    {self.after}", ""]
        lines[2:2] = [f"options  {text}" for text in self.options]
        lines += table(["", "before", "after", "change"], rows, frozenset({0}))
        told = self._told()
        lines += ["", *told] if told else []
        lines += ["", self.no_steps or f"{len(self.steps) or 'no'} steps changed"]
        return "\n".join([*lines, *(f"  {name}: {change}" for name, change in self.steps)])

    def markdown(self) -> str:
        """For a pull request."""
        lines = [f"**{_cell(self.before)}** → **{_cell(self.after)}**", ""]
        lines += [f"{number}. {_cell(text)}" for number, text in enumerate(self.worst, 1)] or ["Nothing got worse."]
        told = [*(f"options  {text}" for text in self.options), *self._told()]
        lines += ["", *(f"- {_cell(line)}" for line in told)] if told else []
        lines += ["", "| | before | after | change |"]
        lines += ["|---|--:|--:|--:|"]
        lines += [f"| {c.what} | {_number(c.before)} | {_number(c.after)} | {c.share} |" for c in self.figures]
        lines += ["", _cell(self.no_steps) or f"{len(self.steps) or 'No'} steps changed."]
        if self.steps:
            lines += ["", "<details><summary>Steps</summary>", "", "| step | change |", "|---|---|"]
            lines += [*(f"| {_cell(name)} | {_cell(change)} |" for name, change in self.steps), "", "</details>"]
        return "\n".join(lines)


def difference(before: Path, after: Path, data: Path | None = None, runs: int = 3) -> Difference:
    _refuse_models(before, after)
    one, other = _read(before), _read(after)
    found = of_reports(one, other)
    if not (before.is_dir() and after.is_dir()):
        if data is not None:
            why, fix = "only folders have code that can be run", "name two output folders"
            raise WrongUse(Problem("there are no results to compare", "--data", why, fix))
        return found
    weights = tuple(moved_weights(before, after, one, other))
    return replace(found, results=results(before, after, data, runs), weights=weights)


def _is_json(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(64).lstrip().startswith((b"{", b"["))


_ARRAYS = (".npz", ".npy")


def _refuse_models(*files: Path) -> None:
    models = [file for file in files if file.suffix != ".json" and file.is_file() and not _is_json(file)]
    if not models:
        return
    folders = [file.with_name(f"out-{file.stem}") if file in models else file for file in files]
    pairs = [(file, out) for file, out in zip(files, folders, strict=True) if file in models]
    commands = [["mccompile", str(file), "-o", str(out)] for file, out in pairs]
    fix = " && ".join(map(shlex.join, [*commands, ["mccompile", "diff", *map(str, folders)]]))
    why = "folders of C that mccompile wrote are compared, or their reports"
    if any(file.suffix in _ARRAYS for file in models):
        fix = "name the folders of both builds; samples follow them: --data SAMPLES"
    raise BadFile(Problem(f"{models[0].name} is not a report of mccompile", str(models[0]), why, fix))


def since(before: Path, builds: Sequence[Mapping[str, Any]]) -> tuple[int, Difference]:
    """What changed from a folder or report to what `emit.analysis` says now, in the build of that model: its number
    too. The first one of that target, else the first one of that model, else the first one."""
    if before.suffix != ".json" and before.is_file() and not _is_json(before):
        why = "a folder of C that mccompile wrote is compared, or its report"
        fix = f"write it with `mccompile {before} -o out-{before.stem}`, then --since out-{before.stem}"
        if before.suffix in _ARRAYS:
            fix = "name the folder of the earlier build: --since FOLDER"
        raise BadFile(Problem(f"{before.name} is not a report of mccompile", str(before), why, fix))
    report = _read(before)
    alike = [[build.get(key) == report[key] for key in ("model", "target")] for build in builds]
    number = max(range(len(builds)), key=lambda each: (alike[each], -each))
    after = builds[number]
    return number, of_reports(report, {**after, **after.get("measured", {}), "steps": after["steps"]})


def of_reports(one: Mapping[str, Any], other: Mapping[str, Any]) -> Difference:
    figures = [
        Change(words, one[key], other[key])
        for key, words in FIGURES.items()
        if isinstance(one.get(key), int | float) and isinstance(other.get(key), int | float)
    ]
    no_steps = _unlisted(one["steps"], other["steps"])
    changed = [] if no_steps else [*_steps(one["steps"], other["steps"])]
    steps = tuple((name, change) for name, change, _ in changed)
    now = tuple(now for _, _, now in changed)
    told = _title(one), _title(other)
    return Difference(*told, tuple(figures), steps, "", (), now, tuple(_options(one, other)), no_steps)


def _unlisted(before: Any, after: Any) -> str:
    """Why steps are not compared: `bench --json` may have only their number, `quantize --json` has nothing of them."""
    if isinstance(before, list) and isinstance(after, list):
        return ""
    counts = [len(steps) if isinstance(steps, list) else steps for steps in (before, after)]
    told = "" if None in counts else f" ({counts[0]} before, {counts[1]} after)"
    return f"steps were not compared: not both files list them{told}"


def _options(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Those that differ, where both sides tell theirs; the titles say the targets."""
    if not ("options" in one and "options" in other):
        return
    before, after = one["options"], other["options"]
    for option in options():
        key = option.name
        if key != "target" and option.has_flag and before.get(key) != after.get(key):
            was, now = (f"{option.flag} {_words(each[key])}".strip() if key in each else "" for each in (before, after))
            yield f"{was} → {now}" if was and now else f"now {now}" if now else f"no longer {was}"


def _words(value: Any) -> str:
    """A value about as it is written on a command line."""
    if isinstance(value, dict):
        return ",".join(f"{key}={_words(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ",".join(map(_words, value))
    return "" if isinstance(value, bool) else str(value)


def _near_report(path: Path) -> str:
    """What is called like a report or folder that is not there, among those beside it."""
    beside = path.parent.iterdir() if path.parent.is_dir() and not path.exists() else iter(())
    reports = {each.name for each in beside if each.suffix == ".json" or (each / "report.json").is_file()}
    close = near(path.name, reports)
    return f"did you mean {path.with_name(close)}?" if close else ""


def _read(path: Path) -> Mapping[str, Any]:
    file = path / "report.json" if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        fix = _near_report(path) or "name an output folder of mccompile, or a report.json"
        raise BadFile(Problem(f"cannot read {file.name}", str(file), error.strerror or str(error), fix)) from None
    except ValueError as error:
        fix = "name a report.json of mccompile"
        raise BadFile(Problem(f"{file.name} is not JSON", str(file), str(error), fix)) from None
    if not isinstance(content, dict) or not {"model", "target"} <= content.keys():
        several = isinstance(content, dict) and "models" in content
        why = "it lists several models" if several else "it has no model and target"
        fix = "name the output folder of one model, its report.json, or what bench or quantize --json has printed"
        raise BadFile(Problem("this is not a report of mccompile", str(file), why, fix))
    return {**content, **content.get("measured", {}), "steps": content.get("steps")}


def _title(report: Mapping[str, Any]) -> str:
    return f"{report['model']} for {report['target']}"


def _named(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name that stands there twice is told apart by its place."""
    found: dict[str, None] = {}
    for step in steps:
        name, count = step["name"] or step.get("op", "step"), 2
        key = name
        while key in found:
            key, count = f"{name} ({count})", count + 1
        found[key] = None
    return [*found]


def _steps(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, int | None]]:
    """Name, what happened to it, and its number after."""
    same = matched(before, after)
    taken = set(same.values())
    for number, (name, step) in enumerate(zip(_named(before), before, strict=True)):
        if number not in same:
            yield name, "gone", None
            continue
        there = after[same[number]]
        keys = ("kernel", "macs")
        changes = [f"{key} {step[key]} → {there[key]}" for key in keys if step.get(key) != there.get(key)]
        if changes:
            yield name, ", ".join(changes), same[number]
    for number, (name, step) in enumerate(zip(_named(after), after, strict=True)):
        if number not in taken:
            yield name, f"new, {step['kernel']}", number


def _number(value: float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    """Text that neither ends a cell of a table nor means anything in Markdown or HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
