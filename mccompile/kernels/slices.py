"""Calls in pieces, one after the other, where slices of a run are to take so many cycles at most."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ..base.dims import upper
from ..base.records import dataclass
from ..program.ir import Call
from ..targets.api import Target
from .api import Kernel, Needs, static_views
from .work import phases

MARGIN = 2.0  # what calls that make integers take at most, over their estimates: counted on Cortex-M4
BY_ROWS = 1.3  # what kernels lose that are made for rows one by one, and know better cuts of their own


@dataclass(frozen=True)
class Pieces:
    """The call in as few pieces as will do, and cycles of the longest one."""

    call: Call
    needs: Needs
    longest: float


def at_most(call: Call, time: float) -> float:
    """Cycles that no run of a call exceeds which is estimated to take so many."""
    return time * MARGIN if call.rows is None and call.outs[0].buffer.dtype.is_integer else time


def longest_slice(kernel: Kernel, call: Call, target: Target, time: float, most: int) -> float:
    """Cycles of the longest slice that a call leads to which is estimated to take so many."""
    time = at_most(call, time)
    if time <= most:
        return time
    if call.rows is not None:
        return target.machine.row + time / max(1, upper(call.outs[0].shape[call.rows]))
    cut = in_pieces(kernel, call, target, time, most)
    return cut.longest if cut is not None else time


def in_pieces(kernel: Kernel, call: Call, target: Target, time: float, most: int) -> Pieces | None:
    """In units of the kernel's own or by rows; None if it has none. Where no piece is short enough, the smallest."""
    if static_views(call) or any(view.buffer.dtype.is_packed for view in call.outs):
        return None  # two pieces may share a byte
    best: Pieces | None = None
    for axis in (None, *range(len(call.outs[0].shape))):
        draft = replace(call, rows=axis, workers=max(2, ceil(time / most)))
        needs = kernel.match(draft, target)
        if not isinstance(needs, Needs) or (axis is not None and axis not in needs.rows):
            continue
        draft = replace(draft, blocks=needs.blocks)
        units, barrier = kernel.units(draft), kernel.barrier(draft)
        whole = time * (1 if axis is None else BY_ROWS)
        fewest = draft.workers if whole * max(units, default=0) <= most * sum(units) else len(units)
        for workers in range(max(2, fewest), len(units) + 1):
            pieces = (piece for phase in phases(units, workers, barrier) for piece in phase)
            longest = target.machine.row + whole * max(sum(units[begin:end]) for begin, end in pieces) / sum(units)
            if best is None or longest < best.longest:
                best = Pieces(replace(draft, workers=workers), needs, longest)
            if longest <= most:
                return best
    return best
