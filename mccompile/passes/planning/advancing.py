"""Which items of a run only outputs need: a run for its states alone (<model>_advance) leaves them out.

Invariant: what is left out writes no state, and nothing that is not left out reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ...plan.ir import Branch
from ...plan.ir import Item as PlanItem
from ...program.ir import STREAM, Buffer, Call, Item, Loop, Program, Rows, bodies, reads, walk, writes


def for_outputs(program: Program) -> list[bool]:
    """Of each item of the run: do only outputs need it?"""
    views = dict(program.outputs)
    live = {_memory(views[name].buffer) for name in program.states.values()}
    found = []
    for item in reversed(program.body):
        left_out = isinstance(item, Call | Rows | Loop) or bool(bodies(item))
        left_out = left_out and not any(_matters(inner, live) for inner in walk([item]))
        found.append(left_out)
        if not left_out:
            live |= {_memory(view.buffer) for inner in walk([item]) for view in reads(inner)}
    return found[::-1]


def _matters(item: Item, live: set[Buffer]) -> bool:
    """Does it write what is needed, go on with random numbers, or do something else than compute?"""
    written = [view.buffer for view in writes(item)]
    if isinstance(item, Loop):
        written += [buffer for carry in item.carries for buffer in (carry.now, carry.next)]
    if any(buffer.role == STREAM or _memory(buffer) in live for buffer in written):
        return True
    return not (isinstance(item, Call | Rows) or bodies(item))


def _memory(buffer: Buffer) -> Buffer:
    """The whole that a part is written into by its own call."""
    while buffer.overlap is not None and buffer.overlap.part:
        buffer = buffer.overlap.base
    return buffer


def guarded(items: Sequence[PlanItem], left_out: Sequence[bool]) -> tuple[PlanItem, ...]:
    """The items, and what is left out in branches that a run for its states does not take."""
    found: list[PlanItem] = []
    for is_out, pairs in groupby(zip(items, left_out, strict=True), key=lambda pair: pair[1]):
        group = tuple(item for item, _ in pairs)
        found += [Branch(None, group, (), ("what only outputs need",))] if is_out else group
    return tuple(found)
