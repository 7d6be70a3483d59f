"""Results placed in dead parts of operands, such as the output of attention over its queries. Part of bufferize.

A hole is a view of an operand's buffer that was read before and shares no element with any that is still needed. The
result gets the view's strides, if kernels take those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappush

import numpy as np

from ...base.dims import static
from ...base.tensor import Shape
from ...program.ir import TEMPORARY, Buffer, Call, Overlap, Program, View, bodies, reads, writes
from ...program.relocate import covers_in_any_order, disjoint
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
    dead: dict[Buffer, _Dead] = {}
    for now, item in enumerate(program.body):
        if not isinstance(item, Call) or len(item.outs) != 1:
            continue
        out = item.outs[0]
        if out.buffer in bound or out.buffer.dtype.is_packed or not covers_in_any_order(out):
            continue
        for buffer in dict.fromkeys(view.buffer for view in item.ins):
            if buffer.role != TEMPORARY or buffer in bound or buffer.dtype is not out.buffer.dtype:
                continue
            if buffer not in dead:
                dead[buffer] = _Dead(accesses[buffer])
            hole = dead[buffer].first(now, out.shape)
            if hole is not None:
                yield now, item, hole


class _Dead:
    """Views of parts of a buffer that nobody needs any more, in the order in which they were first accessed."""

    def __init__(self, accesses: Sequence[tuple[int, View]]) -> None:
        views = dict.fromkeys(view for _, view in accesses)
        self.parts = [view for view in views if not covers_in_any_order(view)]
        ranges = np.array([view.byte_range for _, view in accesses])
        lasts = [_last(part, accesses, ranges) for part in self.parts]
        self.waiting = sorted(zip(lasts, range(len(lasts)), strict=True), reverse=True)
        self.found: dict[Shape, list[int]] = {}

    def first(self, now: int, shape: Shape) -> View | None:
        """The first of a shape; to be asked of one moment after the other."""
        while self.waiting and self.waiting[-1][0] < now:
            _, number = self.waiting.pop()
            heappush(self.found.setdefault(self.parts[number].shape, []), number)
        numbers = self.found.get(shape)
        return self.parts[numbers[0]] if numbers else None


def _last(part: View, accesses: Sequence[tuple[int, View]], ranges: np.ndarray) -> int:
    """When an element of a part may be accessed for the last time."""
    low, high = part.byte_range
    near = np.flatnonzero((ranges[:, 0] < high) & (low < ranges[:, 1]))[::-1]
    return next((accesses[n][0] for n in near if not disjoint(part, accesses[n][1])), -1)


def fill(joiner: Joiner, call: Call, hole: View) -> bool:
    """Lays a result into a hole; False if a kernel refuses."""
    out = call.outs[0]
    first = static(hole.offset)
    start = first * out.buffer.dtype.bits // 8
    if start % max(out.buffer.storage.align, out.buffer.dtype.bits // 8):
        return False
    buffer = replace(out.buffer, shape=(hole.last_element - first + 1,), overlap=Overlap(hole.buffer, start))
    return joiner.relocate(out, View(buffer, out.shape, hole.strides), set())
