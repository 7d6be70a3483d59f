"""Which steps of two builds do the same work: those of one name, then those that share nodes of the model, as layers of
floats and of integers do, then those of the same kind and work in the same order, as of a model that another tool has
written.

Invariant: a step has at most one twin.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

_QUANTIZES = ("QuantizeLinear", "DequantizeLinear")  # nodes that quantizing adds end in that
Step = Mapping[str, Any]


def matched(before: Sequence[Step], after: Sequence[Step], by_work: bool = False) -> dict[int, int]:
    """Numbers of steps before, and of their twins. `by_work`: also of other names, where order and work are alike."""
    found = _by_name(before, after)
    _by_nodes(before, after, found)
    if not by_work:
        return found
    left = [n for n in range(len(before)) if n not in found]
    taken = set(found.values())
    right = [n for n in range(len(after)) if n not in taken]
    for one, other in aligned([_work(before[n]) for n in left], [_work(after[n]) for n in right]):
        found[left[one]] = right[other]
    return dict(sorted(found.items()))


def aligned(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest common subsequence, as pairs of positions; None is like nothing."""
    lengths = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in range(len(before) - 1, -1, -1):
        for j in range(len(after) - 1, -1, -1):
            same = before[i] is not None and before[i] == after[j]
            lengths[i][j] = lengths[i + 1][j + 1] + 1 if same else max(lengths[i + 1][j], lengths[i][j + 1])
    i = j = 0
    found = []
    while i < len(before) and j < len(after):
        if before[i] is not None and before[i] == after[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def _by_name(before: Sequence[Step], after: Sequence[Step]) -> dict[int, int]:
    """A name that stands there twice is told apart by its place."""
    places: dict[str, list[int]] = {}
    for number, step in enumerate(after):
        places.setdefault(step["name"] or step.get("op", "step"), []).append(number)
    found = {}
    for number, step in enumerate(before):
        there = places.get(step["name"] or step.get("op", "step"))
        if there:
            found[number] = there.pop(0)
    return found


def _by_nodes(before: Sequence[Step], after: Sequence[Step], found: dict[int, int]) -> None:
    taken = set(found.values())
    owner: dict[str, int] = {}
    for number, step in enumerate(after):
        if number not in taken:
            for node in nodes(step["name"]):
                owner.setdefault(node, number)
    for number, step in enumerate(before):
        other = next((owner[node] for node in nodes(step["name"]) if node in owner), None)
        if number not in found and other is not None and other not in taken:
            found[number] = other
            taken.add(other)


def nodes(name: str) -> list[str]:
    """Those that do the work of a step."""
    return [node for node in name.split(" + ") if node and not node.endswith(_QUANTIZES)]


def _work(step: Step) -> Hashable:
    """The kind of a step, its multiply-accumulates, and the shape of its result where that is known; None for moves,
    which are alike everywhere."""
    kind = step["kernel"].partition("/")[0]
    if not step["macs"] and kind == "map":
        return None
    return kind, step["macs"], tuple(re.findall(r"\[.*?\]", step.get("result", "")))
