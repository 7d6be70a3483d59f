"""`mccompile.tune`: kernels measured from Python."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..driver import Options
from ..measure.tuning.tune import Tuning
from ..measure.tuning.tune import tune as tuned
from .compiled import model_file
from .keywords import options_of
from .spoken import spoken


@spoken
def tune(
    model: Any,
    database: str | Path | None = None,
    options: Options | None = None,
    /,
    *,
    seconds: float | None = 600,
    executor: Executor | None = None,
    runner: str = "",
    cc: str | None = None,
    **keywords: Any,
) -> Tuning:
    """Measures the kernels that a model may get on its target, and keeps that in a file; without `database` in one of
    the cache. `compile(..., tuned=FILE)` believes it. Keywords are those of `compile`.

    `seconds` limits it, `executor` does the work (processes of this machine by default), `runner` is a command that
    measures on a board. `.show()` says in words what came of it."""
    path, _kept = model_file(model)
    opened = None if executor is None else lambda: nullcontext(executor)
    place = None if database is None else Path(database)
    return tuned(path, options_of(options, keywords), place, seconds, opened, cc, runner)
