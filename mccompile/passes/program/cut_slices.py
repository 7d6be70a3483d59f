"""cut_slices: if slices have a maximum of cycles, calls that take longer are computed in pieces, one after the other,
and each piece is a slice.

Invariant: no slice takes longer, as kernels estimate their time, with a margin for integers; a program of which that
cannot be had is refused. Pieces are those that workers could compute at the same time, so their order changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ...base.dtypes import u8
from ...base.errors import Problem, UnsupportedModel
from ...base.provenance import show
from ...kernels.slices import Pieces, at_most, in_pieces
from ...memory.interval import align_up
from ...program.ir import Buffer, Call, Item, Program, Rows
from ...program.taken_names import taken_names
from ..api import Context
from ..planning.estimate import runs_of, taken


def cut_slices(program: Program, context: Context) -> None:
    most, registry, target = context.max_slice, context.registry, context.target
    if not most:
        return
    names = taken_names(program)
    longest: tuple[float, Item | None] = (most, None)
    for item in program.body:
        time = _longest(item, context)
        if time > most and isinstance(item, Call):
            pieces = in_pieces(registry[item.kernel], item, target, time, most)
            if pieces is not None:
                name = names.take(f"scratch_{show(item.provenance, 1) or item.kind.name}_pieces")
                _cut(item, pieces, name)
                time = pieces.longest
        longest = max(longest, (time, item), key=lambda each: each[0])
    if longest[1] is not None:
        raise _refusal(longest[0], longest[1], most)


def _longest(item: Item, context: Context) -> float:
    """Cycles of the longest slice of an item, none of it cut."""
    runs = [*runs_of([item])]
    if isinstance(item, Rows):
        return max(taken(run, context) / run.pieces for run in runs)
    return sum(at_most(run.call, taken(run, context)) for run in runs)


def _cut(call: Call, pieces: Pieces, workspace: str) -> None:
    draft, needs = pieces.call, pieces.needs
    call.rows, call.workers, call.blocks = draft.rows, draft.workers, draft.blocks
    call.in_turn, call.scratch = True, None
    if needs.scratch:
        size = align_up(needs.scratch, needs.scratch_align)
        call.scratch = Buffer(workspace, u8, (size,), provenance=call.provenance)
        call.scratch.storage = replace(call.scratch.storage, align=needs.scratch_align)


def _refusal(time: float, item: Item, most: int) -> UnsupportedModel:
    if isinstance(item, Rows):
        why = "of a chain of rows, one call for one row takes longer"
    elif isinstance(item, Call) and item.in_turn:
        why = "the smallest piece that its kernel can be told to compute takes longer"
    else:
        why = "its kernel computes all at once" if isinstance(item, Call) else "a loop or a branch is one slice"
    what = f"{show(item.provenance, 1) or 'a step'} cannot be cut into slices of {most} cycles"
    return UnsupportedModel(Problem(what, "--max-slice", why, f"try --max-slice {ceil(time)}"))
