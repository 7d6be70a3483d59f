"""bring_weights: with a window for weights, the constants of a run's items are copied to the arena.

A `Copy` in front of them brings these from the blob: one for each item, or for several that have few. It is begun
before the items of the copy before compute, where the window holds the weights of both; one is under way at a time.

Invariant: the constants that are in the arena together take no more than the window. They lie in the blob in the order
in which they are copied, what several copies bring once for each; none is read in the blob itself. A run that ends
early leaves no copy under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...base.dtypes import string, u8
from ...base.errors import CheckFailed, Problem, UnsupportedModel
from ...base.names import Names
from ...base.records import dataclass
from ...kinds.fetch import Fetch
from ...memory.interval import align_up
from ...program.ir import (
    CONSTANT,
    Await,
    Buffer,
    Call,
    Copy,
    If,
    Item,
    Loop,
    Measure,
    Overlap,
    Program,
    Rows,
    Stop,
    Storage,
    View,
    reads,
    walk,
)
from ...program.taken_names import taken_names
from ...targets.api import Target
from ..api import Context
from ..memory.constants import constant_align, needed_align

_SMALL = 4  # constants of several items are copied together where they take no more than this part of the window


@dataclass(frozen=True)
class _Load:
    """A copy, and the first and the last item of the body that read it."""

    first: int
    last: int
    copy: Copy

    @property
    def bytes(self) -> int:
        return self.copy.to.max_bytes


def bring_weights(program: Program, context: Context) -> None:
    window = context.memory.window
    if not window:
        return
    _refuse(program)
    names, seen = taken_names(program), set[Buffer]()
    loads = [
        _Load(first, last, _instead(program.body[first : last + 1], names, seen, context.target))
        for first, last in _groups(program.body, window // _SMALL, context.target)
    ]
    end = len(program.body)
    handed_out = [view.buffer for _, view in program.outputs if view.buffer.role == CONSTANT and view.buffer.max_bytes]
    if handed_out:  # outputs that are constants
        copy, copies = _copy(list(dict.fromkeys(handed_out)), names, seen, context.target)
        copy.provenance = tuple(name for name, view in program.outputs if view.buffer in copies)
        program.outputs = [(name, _copied(view, copies)) for name, view in program.outputs]
        loads.append(_Load(end, end, copy))
    _fit(program, loads, window)
    before: dict[int, list[Item]] = {}
    ends = [place for place, item in enumerate(program.body) if _may_end(item)]
    for load, previous in zip(loads, [None, *loads], strict=False):
        before.setdefault(_begin(load, previous, ends, window), []).append(load.copy)
        before.setdefault(load.first, []).append(Await(load.copy))
    program.body = [each for place, item in enumerate(program.body) for each in (*before.get(place, ()), item)]
    program.body += before.get(end, [])


def _groups(body: list[Item], most: int, target: Target) -> list[tuple[int, int]]:
    """The first and the last of items whose constants are copied together: one, or several that have few."""
    found, inside = list[tuple[int, int]](), list[Buffer]()
    for place, item in enumerate(body):
        constants = _constants([item])
        if not constants:
            continue
        joined = list(dict.fromkeys((*inside, *constants)))
        if found and _layout(joined, target)[1] <= most:
            found[-1], inside = (found[-1][0], place), joined
        else:
            found.append((place, place))
            inside = constants
    return found


def _constants(items: list[Item]) -> list[Buffer]:
    """Those with elements."""
    read = dict.fromkeys(view.buffer for inner in walk(items) for view in reads(inner))
    return [buffer for buffer in read if buffer.role == CONSTANT and buffer.max_bytes]


def _layout(constants: list[Buffer], target: Target) -> tuple[dict[Buffer, int], int]:
    """Where each lies behind the first, and how many bytes they take."""
    places, size = dict[Buffer, int](), 0
    for constant in constants:
        places[constant] = align_up(size, constant_align(constant, target))
        size = places[constant] + constant.max_bytes
    return places, size


def _begin(load: _Load, previous: _Load | None, ends: list[int], window: int) -> int:
    """In front of which item a copy begins: as early as the window and the copy before allow."""
    first = 0
    if previous is not None:
        first = previous.first if previous.bytes + load.bytes <= window else previous.last + 1
    return max([first, *(place + 1 for place in ends if first <= place < load.first)])


def _instead(items: list[Item], names: Names, seen: set[Buffer], target: Target) -> Copy:
    """Brings all constants of items, which read the copies from now on."""
    copy, copies = _copy(_constants(items), names, seen, target)
    copy.provenance = next((call.provenance for call in _calls(items)), ())
    for inner in walk(items):
        _reads_instead(inner, copies)
    return copy


def _copy(
    constants: list[Buffer], names: Names, seen: set[Buffer], target: Target
) -> tuple[Copy, dict[Buffer, Buffer]]:
    """Also the parts that it makes of constants."""
    places, size = _layout(constants, target)
    align = max(needed_align(constant, target) for constant in constants)
    to = Buffer(names.take("weights"), u8, (size,), storage=Storage(align))
    copies = dict[Buffer, Buffer]()
    for constant in constants:
        name = names.take(constant.name) if constant in seen else constant.name
        copies[constant] = replace(constant, name=name, overlap=Overlap(to, places[constant], part=True))
    seen.update(constants)
    return Copy(tuple(copies.values()), to), copies


def _copied(view: View, copies: Mapping[Buffer, Buffer]) -> View:
    return replace(view, buffer=copies.get(view.buffer, view.buffer))


def _reads_instead(item: Item, copies: Mapping[Buffer, Buffer]) -> None:
    for call in _calls([item]):
        call.ins = tuple(_copied(view, copies) for view in call.ins)
    match item:
        case If():
            item.condition = _copied(item.condition, copies)
        case Measure():
            item.source = _copied(item.source, copies)
        case Loop():
            item.trips = _copied(item.trips, copies) if isinstance(item.trips, View) else item.trips
            item.condition = _copied(item.condition, copies) if item.condition is not None else None


def _calls(items: list[Item]) -> Iterator[Call]:
    for item in walk(items):
        if isinstance(item, Call):
            yield item
        elif isinstance(item, Rows):
            yield from (stage.call for stage in item.stages)


def _may_end(item: Item) -> bool:
    ends = any(isinstance(inner, Stop | Measure) for inner in walk([item]))
    return ends or any(isinstance(call.kind, Fetch) for call in _calls([item]))


def _fit(program: Program, loads: list[_Load], window: int) -> None:
    """Refuses a window that is too small for what one item reads."""
    largest = max(loads, key=lambda load: load.bytes, default=None)
    if largest is None or largest.bytes <= window:
        return
    nodes = ", ".join(largest.copy.provenance[:3]) or "a step"
    why = f"{nodes} reads {largest.bytes} bytes of weights, which are not split any further"
    fix = f"the least window that would do: --weights-window {largest.bytes}"
    raise CheckFailed(Problem(f"a window of {window} bytes is too small for the weights", program.name, why, fix))


def _refuse(program: Program) -> None:
    """What needs constants at other times than while a step reads them."""
    if any(buffer.dtype is string for buffer in program.buffers()):
        what, fix = "weights cannot come through a window", "leave out --weights-window"
        why = "strings point at their text as long as somebody may read them"
        raise UnsupportedModel(Problem(what, program.name, why, fix))
