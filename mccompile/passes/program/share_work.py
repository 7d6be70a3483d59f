"""share_work: long calls are computed by several workers at the same time; each worker computes one piece of the
result.

Invariant: pieces write different elements, and a call that is shared reads nothing that another piece of it writes.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dtypes import u8
from ...base.provenance import show
from ...kernels.api import Needs, static_views
from ...kernels.slices import BY_ROWS
from ...kernels.work import phases, slowest
from ...memory.interval import align_up
from ...program.clone import clone
from ...program.ir import Buffer, Call, If, Item, Program
from ...program.taken_names import taken_names
from ..api import Context
from .bring_tensors import taken


def share_work(program: Program, context: Context) -> None:
    if context.threads < 2:
        return
    names = taken_names(program)
    for call in _alone(program.body):
        kernel = context.registry[call.kernel]
        if static_views(call) or kernel.cost(call, context.target).time < context.target.machine.handover:
            continue
        if any(view.buffer.dtype.is_packed for view in call.outs):
            continue  # two pieces may share a byte
        chosen = _best(call, context)
        if chosen is None:
            continue
        draft, needs = chosen
        alone = call.rows, call.workers, call.blocks, call.scratch
        call.rows, call.workers, call.blocks = draft.rows, draft.workers, draft.blocks
        call.scratch = None
        if needs.scratch:
            shared = kernel.barrier(call) > 0
            step = align_up(needs.scratch, needs.scratch_align)
            name = names.take(f"scratch_{show(call.provenance, 1) or call.kind.name}_shared")
            call.scratch = Buffer(name, u8, (step * (1 if shared else call.workers),), provenance=call.provenance)
            call.scratch.storage = replace(call.scratch.storage, align=needs.scratch_align)
            if not _fits(program, context):
                call.rows, call.workers, call.blocks, call.scratch = alone


def _fits(program: Program, context: Context) -> bool:
    """Has the near one of two memories room for workspaces of all workers?"""
    memory = context.memory
    return not memory.copied or memory.near is None or taken(clone(program), context)[0] <= memory.near


def _alone(body: list[Item]) -> list[Call]:
    """Calls that run once: not those of loops, or of regions of rows."""
    found: list[Call] = []
    for item in body:
        if isinstance(item, Call):
            found.append(item)
        elif isinstance(item, If):
            found += _alone(item.then) + _alone(item.otherwise)
    return found


def _best(call: Call, context: Context) -> tuple[Call, Needs] | None:
    """The call shared by as many workers as there are, in units of the kernel's own or by rows; None if that gains
    nothing."""
    kernel, out, threads = context.registry[call.kernel], call.outs[0], context.threads
    best: tuple[float, Call, Needs] | None = None
    for axis in (None, *range(len(out.shape))):
        draft = replace(call, rows=axis, workers=threads)
        needs = kernel.match(draft, context.target)
        if not isinstance(needs, Needs) or (axis is not None and axis not in needs.rows):
            continue
        draft = replace(draft, blocks=needs.blocks)
        units = kernel.units(draft)
        if len(units) < 2:
            continue
        barrier = kernel.barrier(draft)
        unfair = slowest(units, threads, barrier) * (1 if axis is None else BY_ROWS)
        if best is None or unfair < best[0]:
            workers = max(len(phase) for phase in phases(units, threads, barrier))
            best = unfair, replace(draft, workers=workers), needs
    return best[1:] if best is not None and best[0] < 0.95 * threads else None
