"""The addresses that a plan names, and what C calls the buffers that they lie in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..base.names import Names, c_identifier
from .copies import Awaited, Copied
from .ir import Address, Argument, Branch, Halt, Item, Measured, Plan, Repeat, RowRegion, Step

LONGEST = 24  # letters of a name, behind the model's own
_LAYOUT = re.compile(r"/last(_\d+)?$")  # a tensor whose channels lie last has the name of the file's


def place_names(prefix: str, names: Iterable[str]) -> Iterator[str]:
    """A name in C for each buffer: the end of its own, as long as words of it fit."""
    taken = Names()
    for name in names:
        words = c_identifier(_LAYOUT.sub("", name)).upper().strip("_").split("_")
        kept = words.pop()[-LONGEST:]
        while words and len(kept) + 1 + len(words[-1]) <= LONGEST:
            kept = f"{words.pop()}_{kept}"
        yield f"{prefix.upper()}_AT_{taken.take(kept)}"


def addresses(plan: Plan) -> Iterator[Address]:
    """All that the C of a plan's run and of its accessors names."""
    yield from (tensor.address for tensor in (*plan.inputs, *plan.outputs))
    for state in plan.states:
        yield from (state.tensor.address, state.made)
    yield from _of_items(plan.items)


def _of_items(items: Iterable[Item]) -> Iterator[Address]:
    for item in items:
        match item:
            case Step():
                yield from _of_step(item)
            case RowRegion():
                for stage in item.stages:
                    yield from _of_step(stage.run)
            case Branch():
                yield item.condition.address
                yield from _of_items((*item.then, *item.otherwise))
            case Repeat():
                told = (item.trips, item.condition)
                yield from (each.address for each in told if isinstance(each, Argument))
                yield from (place for swap in item.swaps for place in (swap.first, swap.second, swap.last))
                yield from _of_items(item.items)
            case Measured():
                yield item.source.address
            case Halt() | Copied() | Awaited():
                pass


def _of_step(step: Step) -> Iterator[Address]:
    yield from (argument.address for argument in step.arguments)
    yield from (made.address for made in step.made)
