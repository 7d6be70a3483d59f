"""What tests of a project's own models ask: is the C right, is it what it was, and does it stay within its budgets?

Invariant: everything is measured as `mccompile check` and `--budget` measure it; all that is wrong is told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import option_texts
from ..base.errors import CheckFailed, Problem, raise_all
from ..driver import Options
from ..driver import compile as compile_file
from ..measure.budgets import MEASURED, hold
from ..measure.correctness import check
from ..measure.golden import check_golden
from ..measure.verdict import Verdict
from .keywords import options_of


class Models:
    """Models whose files lie in `folder`, and golden outputs in `golden`, if that is given."""

    def __init__(self, folder: Path, golden: Path | None = None, update: bool = False) -> None:
        self.folder, self.golden, self.update = folder, golden, update

    def assert_matches(self, model: str | Path, /, **keywords: Any) -> Verdict:
        """Compiles, builds and runs a model (emulated where its target needs that), and compares it with the reference.

        Keywords are those of `mccompile.compile` (target, dims, ...), of its `check` (data, seed, runs, cc), and the
        most that it may cost: ram, weights, flash, stack ("64K") and instructions ("3M"). Raises CheckFailed."""
        how: dict[str, Any] = {name: keywords.pop(name) for name in ("data", "seed", "runs", "cc") if name in keywords}
        if how.get("data") is not None:
            how["data"] = self.folder / how["data"]
        limits = {name: keywords.pop(name) for name in option_texts.BUDGETS if name in keywords}
        path, options = self.folder / model, options_of(None, keywords)
        problems: list[Problem] = []
        verdict = self._judged(path, options, how, problems)
        problems += _over(path, options, limits)
        raise_all(CheckFailed, problems)
        return verdict

    def _judged(self, path: Path, options: Options, how: Mapping[str, Any], problems: list[Problem]) -> Verdict:
        if self.golden is None:
            verdict = check(path, options, **how)
        else:
            found = check_golden(path, options, self.golden, self.update, **how)
            verdict = found.verdict
            problems += found.problems
        if not verdict.ok:
            problems += verdict.failure(path).problems
        return verdict


def _over(path: Path, options: Options, limits: Mapping[str, Any]) -> list[Problem]:
    """Budgets that are exceeded."""
    if not limits:
        return []
    budget = options_of(options, {"budget": limits}).budget
    planned = {what: most for what, most in budget.items() if what not in MEASURED}
    measured = {what: most for what, most in budget.items() if what in MEASURED}
    found: list[Problem] = []
    for held, part in ((compile_file, planned), (hold, measured)):
        try:
            held(path, replace(options, budget=part))
        except CheckFailed as failed:
            found += failed.problems
    asked = ", ".join(f"{what} {most:,}" for what, most in budget.items())
    more = f"`mccompile analyze {path} --target {options.target}` shows where it goes"
    return [
        Problem(each.what, each.where, f"{each.why}\nthe test allows {asked}", f"{each.fix}\n{more}".strip())
        for each in found
    ]
