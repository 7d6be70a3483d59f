"""The planners by name, for `--planner` and for comparisons. Each turns blocks into a placement; none may overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from mccompile.memory.best_fit import best_fit
from mccompile.memory.centred import centred
from mccompile.memory.greedy_by_size import greedy_by_size
from mccompile.memory.interval import Block, Placement
from mccompile.memory.push_down import push_down, push_down_single

Planner = Callable[[Sequence[Block]], Placement]

PLANNERS: Mapping[str, Planner] = MappingProxyType(
    {
        "push-down": push_down,
        "push-down-single": push_down_single,
        "greedy-by-size": greedy_by_size,
        "best-fit": best_fit,
        "centred": centred,
    }
)
