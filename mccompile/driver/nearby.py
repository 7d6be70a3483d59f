"""What a plan's neighbours would come to: one line that says what there is for less time and for less memory.

Invariant: a model is compiled once more only where its own plan took a search among several, which takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..emit.package import Package
from ..fitting import SMALLEST, Changes, told
from ..targets.api import Prefer
from .compiling import compile
from .options import Options

CLEAR = 0.99  # what is less than this is worth a word
FASTER: Changes = {"prefer": Prefer.TIME}


def neighbours(model: Path, options: Options, package: Package) -> list[str]:
    """The line; none where no plans were tried, or none is better in anything."""
    found = "; ".join(_neighbours(model, options, package)) if package.smallest else ""
    return [f"others   {found}"] if found else []


def _neighbours(model: Path, options: Options, package: Package) -> Iterator[str]:
    own = package.estimate.time
    fastest = compile(model, replace(options, **FASTER))
    if fastest.estimate.time < CLEAR * own:
        yield f"faster: {_said(FASTER, fastest.estimate.time / own, fastest.plan.arena_bytes)}"
    for tried in package.smallest:
        if tried.bytes < CLEAR * package.plan.arena_bytes:
            yield f"smaller: {_said(SMALLEST, tried.time / own, tried.bytes)}"


def _said(changes: Changes, time: float, arena: int) -> str:
    return f"{told(changes)}, {time:.2f} times as long, arena {arena}"
