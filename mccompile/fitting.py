"""Which plan a budget leads to, and which plans are best. Plans differ in what they prefer and in how many bytes of
arena are enough; all are compiled, so RAM and weights are exact.

Invariant: what is found is given as changes of options that lead to the same plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .base.errors import CheckFailed, Problem, raise_all
from .base.records import dataclass
from .emit.package import Package
from .emit.traffic import transfers
from .targets.api import WORTH, Prefer

Changes = Mapping[str, Any]  # of options
Attempt = Callable[[Changes], Package]
_KNOWN = ("ram", "weights", "flash")  # of what budgets hold, before C is compiled
SMALLEST: Changes = {"prefer": Prefer.RAM, "enough": 1}
BETWEEN = 4  # plans between the smallest arena and that of the fastest plan


@dataclass(frozen=True)
class Point:
    """A plan: bytes of its arena, bytes of weights and (estimated) code, and estimated cycles."""

    changes: Changes
    package: Package

    @property
    def ram(self) -> int:
        return self.package.plan.arena_bytes

    @property
    def weights(self) -> int:
        return self.package.weights_bytes

    @property
    def flash(self) -> int:
        return self.weights + self.package.estimate.code

    @property
    def time(self) -> float:
        return self.package.estimate.time

    @property
    def copied(self) -> dict[str, int]:
        """Of two memories, of which one is copied: bytes of the one that steps work in, bytes that a run copies, and
        how long it takes or waits for that, where that is known."""
        near = sum(arena.bytes for arena in self.package.plan.arenas if not arena.copied)
        for each in transfers(self.package.plan).values():
            told = ("traffic_bytes", "traffic_us", "waited_us")
            return {"fast_bytes": near, **{name: each[name] for name in each if name in told}}
        return {}

    def as_dict(self) -> dict[str, Any]:
        return {
            "ram_bytes": self.ram,
            **self.copied,
            "flash_bytes": self.flash,
            "weights_bytes": self.weights,
            "estimated_time": self.time,
            "options": told(self.changes),
        }

    @property
    def figures(self) -> tuple[float, ...]:
        return self.ram, self.flash, self.time, *self.copied.values()

    def over(self, budget: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """What is over the budget, as far as is known before C is compiled: how much is used, and how much may be."""
        used = dict(zip(_KNOWN, (self.ram, self.weights, self.weights), strict=True))
        return {what: (used[what], budget[what]) for what in used if used[what] > budget.get(what, used[what])}


def told(changes: Changes) -> str:
    """As flags."""
    if "budget" in changes:
        return f"--budget fast={changes['budget']['fast']}"
    enough = changes.get("enough", 0)
    if not enough:
        return f"--prefer {changes['prefer']}"
    return "--budget ram=min" if changes == SMALLEST else f"--budget ram={enough}"


def fitting(attempt: Attempt, prefer: Prefer | None, budget: Mapping[str, int]) -> tuple[Point, bool]:
    """The fastest plan within the budget, or the plan that is preferred; of none that fit the one that is over by
    least, and whether it fits."""
    tried = []
    for changes in _plans(prefer, budget):
        tried.append(Point(changes, attempt(changes)))
        if not tried[-1].over(budget):
            return tried[-1], True
    return min(tried, key=lambda p: tuple(used - limit for used, limit in p.over(budget).values())), False


def _plans(prefer: Prefer | None, budget: Mapping[str, int]) -> Iterator[Changes]:
    """The fastest first."""
    if budget.keys().isdisjoint(_KNOWN) or prefer not in (None, Prefer.TIME):
        yield {}
        if "ram" in budget and prefer in WORTH:
            yield {"prefer": Prefer.RAM, "enough": budget["ram"]}
        return
    yield {"prefer": Prefer.TIME}
    yield {"prefer": Prefer.RAM, "enough": budget.get("ram", 0)}
    if "ram" not in budget:
        yield {"prefer": Prefer.FLASH}


def frontier(attempt: Attempt) -> list[Point]:
    """The best plans: none is dominated, that is no better in any figure than another one. The fastest first."""
    preferred: list[Changes] = [{"prefer": what} for what in (Prefer.TIME, Prefer.RAM, Prefer.FLASH, Prefer.BALANCED)]
    points = [Point(changes, attempt(changes)) for changes in (*preferred, SMALLEST)]
    most, least = points[0].ram, points[-1].ram
    points += _less_fast(attempt, min(points, key=lambda p: tuple(p.copied.values())))
    for number in range(1, BETWEEN + 1) if not points[0].copied else ():
        enough = round(least * (most / max(1, least)) ** (number / (BETWEEN + 1)))
        changes = {"prefer": Prefer.RAM, "enough": enough}
        points.append(Point(changes, attempt(changes)))
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.time, p.ram, p.flash)):
        if not any(all(a <= b for a, b in zip(other.figures, point.figures, strict=True)) for other in kept):
            kept.append(point)
    return kept


def _less_fast(attempt: Attempt, point: Point) -> Iterator[Point]:
    """Plans that work in less and less of a fast memory, where they fit."""
    size = point.copied.get("fast_bytes", 0)
    for _ in range(BETWEEN if size else 0):
        size = size * 2 // 3
        changes = {"budget": {"fast": size}}
        try:
            yield Point(changes, attempt(changes))
        except CheckFailed:
            continue


def refused(
    point: Point,
    budget: Mapping[str, int],
    frugal: Sequence[tuple[str, Changes]],
    attempt: Attempt,
    elsewhere: Callable[[Mapping[str, int]], str] | None = None,
) -> None:
    """`frugal`: further options that may make the arena smaller, in words and as changes. `elsewhere`: where so much of
    each would fit, where the budget is that of a board, which does not grow."""
    problems, plan = [], point.package.plan
    over = {what: both for what, both in point.over(budget).items() if what != "flash"}  # told once code is measured
    for what, (used, limit) in over.items():
        lives = [life for life in plan.lives if life.at_peak]
        sizes = ", ".join(f"{life.name} {life.high - life.low}" for life in lives)
        why = f"at its peak the smallest plan holds {sizes} bytes"
        if what != "ram":
            why = "so large are the weights"
        allow = elsewhere(_needs(point)) if elsewhere is not None else f"allow it: --budget {what}={used}"
        grows = elsewhere is None
        fix = _what_fits(point, frugal, attempt, limit, allow, grows) if what == "ram" else allow
        problems.append(Problem(f"{used} bytes of {what} are {used - limit} over the budget", plan.name, why, fix))
    raise_all(CheckFailed, problems)


def _needs(point: Point) -> dict[str, int]:
    return {"ram": point.ram, "weights": point.weights}


def _what_fits(
    point: Point, frugal: Sequence[tuple[str, Changes]], attempt: Attempt, limit: int, allow: str, grows: bool
) -> str:
    """Which options would stay within a budget of RAM: found by trying each alone, then more and more of those that
    help, then all together. `grows`: may the budget be a larger one?"""

    def tried(chosen: Sequence[tuple[str, Changes]]) -> int:
        return attempt({**point.changes, **_together(chosen)}).plan.arena_bytes

    alone = [(words, tried([(words, changes)])) for words, changes in frugal]
    fit = [f"with {words} it takes {nbytes} bytes" for words, nbytes in alone if nbytes <= limit]
    allow = f"{allow} (or make the model's largest tensors smaller"
    if fit or not frugal:
        return "; ".join(fit) or f"{allow})"
    helpful = [each for each, (_, nbytes) in zip(frugal, alone, strict=True) if nbytes < point.ram]
    asked = [(nbytes, words) for words, nbytes in alone]
    chosen: Sequence[tuple[str, Changes]]
    for chosen in (*(helpful[:count] for count in range(2, len(helpful) + 1)), frugal):
        nbytes, words = tried(chosen), _words(chosen)
        if nbytes <= limit:
            return f"with {words} it takes {nbytes} bytes"
        asked.append((nbytes, words))
    nbytes, words = min(reversed(asked), key=lambda each: each[0])  # of equal ones the last: with all options
    if nbytes == point.ram or not grows:
        return f"{allow}: even with {words} it takes {nbytes} bytes)"
    _, few = min(asked, key=lambda each: each[0])
    return f"the least that options reach is {nbytes} bytes, with {few} --budget ram={nbytes}; {allow})"


def _together(chosen: Sequence[tuple[str, Changes]]) -> Changes:
    """Later ones come instead of earlier ones."""
    return {name: value for _, changes in chosen for name, value in changes.items()}


def _words(chosen: Sequence[tuple[str, Changes]]) -> str:
    """Of what is left of them; flags as a command takes them."""
    last = _together(chosen)
    words = [words for words, changes in chosen if all(last[name] is changes[name] for name in changes)]
    return (" " if all(each.startswith("--") for each in words) else ", ").join(words)
