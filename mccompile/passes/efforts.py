"""What calls cost with the best kernel of each, as passes compare one form of a computation with another."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from ..kernels.registry import effort
from ..program.ir import Call
from .api import Context


def effort_of(calls: Iterable[Call], context: Context) -> float:
    """The sum over all calls; infinite where one has no kernel."""
    choices = [context.registry.choose(call, context.target).candidates for call in calls]
    return sum(effort(candidates[0].cost, context.target) if candidates else inf for candidates in choices)
