"""Joins the units that an accelerator supports into the largest regions that are connected and convex.

Invariant: with every region as one step, the units still have an order in which they can run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ...accelerators.api import Unit
from ...graph.ir import Value

Before = Mapping[Unit, Mapping[Unit, None]]
Groups = Mapping[Unit, Set[Unit]]


def convex_regions(units: Sequence[Unit], taken: Set[Unit]) -> list[tuple[Unit, ...]]:
    """Regions of units that are taken, in the order of their first ones."""
    made_by = {value: unit for unit in units for value in unit.makes}
    before = {unit: _makers(unit, made_by) for unit in units}
    groups = {unit: {unit} for unit in units}  # by member, the group as one object
    edges = [(first, unit) for unit in units for first in before[unit] if unit in taken and first in taken]
    changed = True
    while changed:  # what stood between two groups may have joined one of them since
        changed = False
        for first, second in edges:
            a, b = groups[first], groups[second]
            if a is not b and not _passes_others(a, b, before, groups):
                a |= b
                groups |= dict.fromkeys(b, a)
                changed = True
    regions = {id(groups[unit]): groups[unit] for unit in units if unit in taken}
    return [tuple(unit for unit in units if unit in group) for group in regions.values()]


def _makers(unit: Unit, made_by: Mapping[Value, Unit]) -> dict[Unit, None]:
    return dict.fromkeys(made_by[value] for value in unit.reads if value in made_by)


def _passes_others(a: Set[Unit], b: Set[Unit], before: Before, groups: Groups) -> bool:
    """Is there a way from group `a` to group `b`, or back, through what is in neither?"""
    return _leads(a, b, before, groups) or _leads(b, a, before, groups)


def _leads(a: Set[Unit], b: Set[Unit], before: Before, groups: Groups) -> bool:
    waiting = [other for unit in b for other in before[unit] if other not in a and other not in b]
    seen = set[int]()
    while waiting:
        group = groups[waiting.pop()]
        if id(group) in seen:
            continue
        seen.add(id(group))
        for other in (other for unit in group for other in before[unit]):
            if other in a:
                return True
            if other not in b:
                waiting.append(other)
    return False
