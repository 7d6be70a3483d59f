"""The addresses that a plan names, and what C calls the buffers that they lie in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..base.names import Names
from .copies import Awaited, Copied
from .ir import Address, Argument, Branch, Halt, Item, Measured, Place, Plan, Repeat, RowRegion, Step

_AT = "_AT_"
LONGEST = 24  # letters of a name, behind the model's own
_LAYOUT = re.compile(r"/last(_\d+)?$")  # a tensor whose channels lie last has the name of the file's
_OUTPUT = re.compile(r"(?<=\w)(_output_0|:0)$")  # what exporters put behind the name of a node with one result
_FUSED = ";"  # TensorFlow's converter joins the names of all that it fuses, the operator whose result it is first

_WORD = re.compile(r"(?<![0-9A-Za-z_])[0-9A-Za-z]|(?<=_)[A-Za-z]")


def place_names(prefix: str, names: Iterable[str]) -> Iterator[str]:
    """A name in C for each buffer, made of the end of its own."""
    taken = Names()
    for name in names:
        own = _OUTPUT.sub("", _LAYOUT.sub("", name)).split(_FUSED)[0]
        yield f"{prefix.upper()}{_AT}{taken.take(_end_of(own))}"


def own_name(place: Place) -> str:
    """The name of a buffer without what all of them begin with, as names of variables are written."""
    return place.symbol.partition(_AT)[2].lower()


def _end_of(name: str) -> str:
    """As many of the last words as fit. A number belongs to the word before: of `dense_1/Relu` there is no `1_RELU`."""
    ends = (_letters(name[word.start() :]) for word in _WORD.finditer(name))
    return next((end for end in ends if len(end) <= LONGEST), _letters(name)[-LONGEST:]) or "X"


def _letters(text: str) -> str:
    return re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_").upper()


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
                if item.condition is not None:
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
