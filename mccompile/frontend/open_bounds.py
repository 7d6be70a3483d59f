"""Sizes that follow from data and that nobody bounds: all of them are proposed at once.

Invariant: what is proposed for later nodes has been asked for with what is proposed for earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from ..base.errors import MccError, Problem, UnsupportedModel
from ..graph.refusals import bound_flag
from .bounds import Bounds
from .findings import Findings

_MOST_READS = 24
_MOST_NODES = 20_000  # of the graph, over all reads


def with_all_bounds(
    error: UnsupportedModel, first: Findings, nodes: int, read: Callable[[Findings, Bounds], None]
) -> UnsupportedModel:
    """The error whose fixes name every --bound that the model needs, not only those of the nodes that were reached."""
    known = dict(first.bounds)
    for _ in range(min(_MOST_READS, _MOST_NODES // max(1, nodes))):
        found = Findings(first.sized)
        with suppress(MccError):
            read(found, known)
        if not found.bounds.keys() - known.keys():
            break
        known |= found.bounds
    if len(known) == len(first.bounds) == 1:
        return error
    every = " ".join(bound_flag(*bound) for bound in known.items())

    def whole(problem: Problem) -> Problem:
        asked = next(
            (flag for flag in (bound_flag(*bound) for bound in known.items()) if problem.fix.endswith(flag)), ""
        )
        return replace(problem, fix=problem.fix.removesuffix(asked) + every) if asked else problem

    return UnsupportedModel(*map(whole, error.problems))
