"""Chains of rows as the calls that they are, one after the other, which rows these make, and into how many slices they
cut a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from .ir import Branch, Item, Plan, Repeat, RowRegion, Step

Pieces = frozenset[tuple[int, int]]  # from which row to which


def unasked(region: RowRegion) -> list[int]:
    """Stages that ask the program for rows, and make some that no other one wants."""
    stages = region.stages
    asked = [0] * (len(stages) - 1) + [stages[-1].height]

    def ask(number: int) -> None:
        for pull in stages[number].pulls:
            asked[pull.stage] = min(stages[pull.stage].height, pull.wanted(asked[number]))
            ask(pull.stage)

    ask(len(stages) - 1)
    missed = (number for number, stage in enumerate(stages) if asked[number] < stage.height)
    return [number for number in missed if stages[number].run.function.kernel.asks]


def row_calls(region: RowRegion) -> list[int]:
    """The stages in the order in which they run, once for each time."""
    made, found = [0] * len(region.stages), list[int]()

    def make(number: int, wanted: int) -> None:
        stage = region.stages[number]
        while made[number] < wanted:
            end = min(made[number] + stage.step, stage.height)
            for pull in stage.pulls:
                make(pull.stage, min(pull.wanted(end), region.stages[pull.stage].height))
            found.append(number)
            made[number] = end

    for number in (len(region.stages) - 1, *unasked(region)):
        make(number, region.stages[number].height)
    return found


def made_rows(region: RowRegion) -> list[int]:
    """How many rows each stage makes: no more than others ask for, in steps of its own."""
    calls = row_calls(region)
    return [min(stage.height, calls.count(number) * stage.step) for number, stage in enumerate(region.stages)]


def pieces(plan: Plan) -> dict[str, Pieces]:
    """The rows for which functions are called that only stages call, by name. Of others nothing is said."""
    stages = [each for region in regions(plan.items) for each in zip(region.stages, made_rows(region), strict=True)]
    others = Counter(step.function.name for step in plan.steps())
    others.subtract(stage.run.function.name for stage, _ in stages)
    found: dict[str, set[tuple[int, int]]] = {}
    for stage, made in stages:
        function = stage.run.function
        if not others[function.name] and function.call.workers == 1:
            rows = ((begin, min(begin + stage.step, stage.height)) for begin in range(0, made, stage.step))
            found.setdefault(function.name, set()).update(rows)
    return {name: frozenset(rows) for name, rows in found.items()}


def regions(items: Iterable[Item]) -> Iterator[RowRegion]:
    """Chains of rows, wherever they stand."""
    for item in items:
        match item:
            case RowRegion():
                yield item
            case Branch():
                yield from regions((*item.then, *item.otherwise))
            case Repeat():
                yield from regions(item.items)


def slices_of(plan: Plan) -> int:
    """Into how many pieces a run can be cut: calls of chains, pieces of steps, other items, and moves of states."""
    return sum(map(_slices_of, plan.items)) + any(state.made != state.tensor.address for state in plan.states)


def _slices_of(item: Item) -> int:
    if isinstance(item, RowRegion):
        return len(row_calls(item))
    return len(item.cuts) - 1 if isinstance(item, Step) and item.cuts else 1


def most_stages(plan: Plan) -> int:
    """Of the chains of rows."""
    return max((len(item.stages) for item in plan.items if isinstance(item, RowRegion)), default=0)
