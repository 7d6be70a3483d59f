"""bufferize: decides which results are written in place; no other pass decides that.

- An operand of a concat, and what a constant is padded around, is written straight to its place in the result by the
call that makes it.
- A result is written over an operand that dies there, where the kernel's alias pattern allows it.
- A result is laid between what is still needed of an operand, where a part of that is dead.
- What a run keeps for the next one is written to where it is kept, if the old state is not read any more; else it is
  copied there behind the last reader, if that makes the arena smaller.
- Inputs of the model may be overwritten once they are dead, unless they are to be kept.

The second always gains. The first does not: a result whose parts are made early lives long, and strides may keep
results from being written over operands. Nor does the third. So these are choices, made by trying: the one with the
smallest peak, and of equals the one with the fewest copies, as long as calls that get slower kernels for it take no
more time, less that of the copies, than a smaller peak is worth. What touches nothing that is alive at the peak cannot
make it smaller and is not tried. The number of trials is bounded by a count of work, so the outcome does not depend on
the machine. After this pass a buffer may have several writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from ...base.records import dataclass, replace
from ...kernels.remembered import remembered
from ...memory.interval import Block, highest_end, lower_bound, peak
from ...memory.push_down import push_down
from ...program.clone import clone
from ...program.ir import Buffer, Program, walk
from ...targets.api import Prefer
from ..api import Context
from ..memory.apart import lay_apart
from ..memory.bring_states import bring_states
from ..memory.holes import fill, holes
from ..memory.in_place import write_in_place
from ..memory.join_parts import COPY, PIECES, PLANES, STRIDED, Joiner, candidates, may_take_longer
from ..memory.liveness import blocks_of, liveness
from ..memory.state import bind_states
from ..planning.estimate import total
from .order_calls import order_calls

EFFORT = 60_000  # items looked at in all trials together
MAX_HOLES = 16  # dead parts that are tried


@dataclass(frozen=True)
class Choice:
    modes: tuple[str, ...]  # one per candidate of join_parts
    reorder: bool = False  # are calls put into another order after that?
    holes: tuple[int, ...] = ()  # positions of calls whose results lie in dead parts of operands


def bufferize(program: Program, context: Context, thorough: bool = True) -> None:
    """`thorough`: as for `best_choice`."""
    _bind(program, context, best_choice(program, context, thorough))
    bind_states(program, context.registry, context.target)
    bring_states(program, context)
    lay_apart(program, context.memory.keep_inputs, context.target.align)


def best_choice(program: Program, context: Context, thorough: bool = True) -> Choice:
    """`thorough`: what gained nothing at first is tried again after the rest."""
    context = replace(context, registry=remembered(context.registry, context.target))
    touched = [{view.buffer.name for view in (*call.ins, *call.outs)} for call in candidates(program)]
    best = Choice((PIECES,) * len(touched))
    places = () if touched else _places_of_holes(program)
    if not touched and not places:
        return best  # there is nothing to choose
    trials = EFFORT // max(1, sum(1 for _ in walk(program.body)))
    outcomes: dict[Any, _Peak] = {}  # most choices lead to a program that another one has led to
    now = _peak(program, context, best, outcomes)
    peaks = {best: now}  # a sweep that changed nothing asks for what is known

    worth = context.memory.worth
    time = total(program.body, context, lambda cost: cost.time) if worth else 0.0
    quickest = context.target.prefer == Prefer.TIME and may_take_longer(context.target)

    def score(found: _Peak) -> tuple[float, float]:
        taken = time + found.longer
        if worth:
            return float(found.bytes) ** worth * taken, 0
        return (taken, found.bytes) if quickest else (found.bytes, taken)

    def attempt(tried: Choice, gain: int) -> None:
        nonlocal best, now, trials
        if tried not in peaks and trials > 0:
            trials -= 1
            peaks[tried] = _peak(program, context, tried, outcomes)
        if tried in peaks and peaks[tried].bytes <= now.bytes - gain and score(peaks[tried]) <= score(now):
            best, now = tried, peaks[tried]

    def sweep(modes: tuple[tuple[str, int], ...]) -> None:
        for number in range(len(best.modes)):
            for mode, gain in modes:
                if gain and touched[number].isdisjoint(now.names):
                    continue  # what is alive at the peak stays as it is
                if mode != best.modes[number]:
                    attempt(replace(best, modes=(*best.modes[:number], mode, *best.modes[number + 1 :])), gain)

    sweep(((STRIDED, 0), (PLANES, 1), (COPY, 1)))
    before = None
    while thorough and best != before:  # what gained nothing while another place was the peak may do so now
        before = best
        sweep(((PIECES, 1), (STRIDED, 1), (PLANES, 1), (COPY, 1)))
    if best.modes:
        attempt(replace(best, reorder=True), 1)
    if touched:
        trial = clone(program)
        _join(trial, context, best)
        places = _places_of_holes(trial)
    if places:
        attempt(replace(best, holes=places), 1)  # layers of a network are alike: one alone often changes nothing
    if not best.holes:
        for position in places:
            attempt(replace(best, holes=(*best.holes, position)), 1)
    return best


def _places_of_holes(program: Program) -> tuple[int, ...]:
    """Positions of calls whose results may lie in dead parts of operands."""
    return tuple(position for position, _, _ in islice(holes(program), MAX_HOLES))


@dataclass(frozen=True)
class _Peak:
    bytes: int
    names: frozenset[str]  # of buffers in the blocks that are alive then
    longer: float  # what calls take longer, less the copies that go


def _peak(program: Program, context: Context, choice: Choice, outcomes: dict[Any, _Peak]) -> _Peak:
    """The largest live set that these choices lead to, or the tallest block."""
    trial = clone(program)
    joiner = _join(trial, context, choice)
    outcome = (*joiner.outcome, choice.reorder, choice.holes)
    if outcome not in outcomes:
        outcomes[outcome] = _peak_of(trial, context, choice, joiner)
    return outcomes[outcome]


def _peak_of(trial: Program, context: Context, choice: Choice, joiner: Joiner) -> _Peak:
    """That of a copy whose parts are joined."""
    _overlap(trial, context, choice, joiner)
    blocks, owners = _blocks(trial, context)
    most = peak(blocks)
    tall = [number for number, block in enumerate(blocks) if highest_end(block) > most.bytes]
    alive = {*tall} or {number for number, block in enumerate(blocks) if block.name in most.names}
    bound = max((highest_end(blocks[number]) for number in tall), default=most.bytes)
    return _Peak(
        bound, frozenset(buffer.name for buffer, (number, _) in owners.items() if number in alive), joiner.longer
    )


def peak_of(program: Program, context: Context, choice: Choice) -> int:
    """The largest live set that these choices lead to."""
    return lower_bound(blocks_after(program, context, choice))


def size_of(program: Program, context: Context, choice: Choice) -> int:
    """Bytes of the arena that these choices lead to: takes longer, and tells where blocks cannot lie close."""
    return push_down(blocks_after(program, context, choice)).size


def blocks_after(program: Program, context: Context, choice: Choice) -> list[Block]:
    """What is to be placed then."""
    trial = clone(program)
    _bind(trial, context, choice)
    bind_states(trial, context.registry, context.target)
    bring_states(trial, context)
    return _blocks(trial, context)[0]


def _blocks(trial: Program, context: Context) -> tuple[list[Block], Mapping[Buffer, tuple[int, int]]]:
    lives = liveness(trial, context.memory.keep_inputs)
    return blocks_of({buffer: span for buffer, span in lives.items() if not buffer.far}, context.target.align)


def _bind(program: Program, context: Context, choice: Choice) -> None:
    _overlap(program, context, choice, _join(program, context, choice))


def _overlap(program: Program, context: Context, choice: Choice, joiner: Joiner) -> None:
    for wanted in choice.holes:
        found = next(((call, hole) for position, call, hole in holes(program) if position == wanted), None)
        if found is not None:
            fill(joiner, *found)
    write_in_place(program, context.registry, context.target, context.memory.keep_inputs)


def _join(program: Program, context: Context, choice: Choice) -> Joiner:
    joiner = Joiner(program, context.registry, context.target)
    for call, mode in zip(candidates(program), choice.modes, strict=True):
        joiner.join(call, mode)
    if choice.reorder:
        order_calls(program, context)
    return joiner
