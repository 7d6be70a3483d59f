"""Results laid into dead parts of operands: the output of attention where its queries were. Part of bind_storage.

A hole is a view of an operand's buffer that was read before and shares no element with any that is still needed. The
result gets the view's strides, if kernels take those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..base.dims import static
from ..program.ir import TEMPORARY, Buffer, Call, Overlap, Program, View, bodies, reads, writes
from ..program.relocate import covers_in_any_order, disjoint
from .join_parts import Joiner


def holes(program: Program) -> Iterator[tuple[int, Call, View]]:
    """Positions of calls, calls, and the dead views that their results fit into; in programs without regions."""
    if any(bodies(item) or not isinstance(item, Call) for item in program.body):
        return
    accesses: dict[Buffer, list[tuple[int, View]]] = {}
    for time, item in enumerate(program.body):
        for view in (*reads(item), *writes(item)):
            accesses.setdefault(view.buffer, []).append((time, view))
    bound = {b for buffer in program.buffers() if buffer.overlap for b in (buffer, buffer.overlap.base)}
    bound |= {view.buffer for _, view in program.outputs}
    for now, item in enumerate(program.body):
        if not isinstance(item, Call) or len(item.outs) != 1:
            continue
        out = item.outs[0]
        if out.buffer in bound or out.buffer.dtype.is_packed or not covers_in_any_order(out):
            continue
        for buffer in dict.fromkeys(view.buffer for view in item.ins):
            if buffer.role != TEMPORARY or buffer in bound or buffer.dtype is not out.buffer.dtype:
                continue
            needed = [view for time, view in accesses[buffer] if time >= now]
            dead = dict.fromkeys(view for time, view in accesses[buffer] if time < now and view.shape == out.shape)
            for hole in dead:
                if not covers_in_any_order(hole) and all(disjoint(hole, view) for view in needed):
                    yield now, item, hole
                    break


def fill(joiner: Joiner, call: Call, hole: View) -> bool:
    """Lays a result into a hole; False if a kernel refuses."""
    out = call.outs[0]
    first = static(hole.offset)
    start = first * out.buffer.dtype.bits // 8
    if start % max(out.buffer.storage.align, out.buffer.dtype.bits // 8):
        return False
    buffer = replace(out.buffer, shape=(hole.last_element - first + 1,), overlap=Overlap(hole.buffer, start))
    return joiner.relocate(out, View(buffer, out.shape, hole.strides), set())
