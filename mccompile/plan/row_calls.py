"""Chains of rows as the calls that they are, one after the other, and into how many slices these cut a run."""

from __future__ import annotations

from .ir import Item, Plan, RowRegion, Step


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
