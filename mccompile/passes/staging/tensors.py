"""The tensors of a program that runs in two memories: which calls write and read them, their liveness, and which of
them may be stored in the far memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ...base.dtypes import string
from ...memory.interval import align_up
from ...program.ir import (
    CONSTANT,
    EXTERNAL,
    INPUT,
    STREAM,
    TEMPORARY,
    Buffer,
    Call,
    Item,
    Program,
    View,
    reads,
    scratches,
    walk,
    writes,
)


class Tensors:
    """Times are positions of items in the program's body."""

    def __init__(self, program: Program, keep_inputs: bool, align: int) -> None:
        self.program, self.align = program, align
        self.readers: dict[Buffer, list[int]] = {}
        self.makers: dict[Buffer, list[int]] = {}
        for time, item in enumerate(program.body):
            for inner in walk([item]):
                for view in reads(inner):
                    self.readers.setdefault(view.buffer, []).append(time)
                for view in writes(inner):
                    self.makers.setdefault(view.buffer, []).append(time)
        self.inputs = [buffer for _, buffer in program.inputs if buffer.role != EXTERNAL]
        self.outputs = {view.buffer for _, view in program.outputs}
        self.lasting = {*self.outputs, *program.lasting_inputs(keep_inputs)}

    def bytes(self, buffer: Buffer) -> int:
        return align_up(buffer.max_bytes, self.align)

    @cached_property
    def lives(self) -> dict[Buffer, tuple[int, int]]:
        """From when it is made to when it is read last, both included; inputs are there before the first item."""
        end, found = len(self.program.body), dict[Buffer, tuple[int, int]]()
        for buffer in dict.fromkeys((*self.inputs, *self.makers, *self.readers, *self.outputs)):
            if buffer.role in (CONSTANT, EXTERNAL, STREAM):
                continue
            made = min(self.makers.get(buffer, [-1])) if buffer not in self.inputs else -1
            last = max((*self.readers.get(buffer, []), *self.makers.get(buffer, []), made))
            found[buffer] = made, end if buffer in self.lasting else last
        return found

    @cached_property
    def alive(self) -> list[list[Buffer]]:
        """What was made before each item and is read by it or later."""
        found: list[list[Buffer]] = [[] for _ in range(len(self.program.body) + 1)]
        for buffer, (made, last) in self.lives.items():
            for time in range(made + 1, min(last, len(self.program.body)) + 1):
                found[time].append(buffer)
        return found

    def made(self, first: int, last: int) -> list[Buffer]:
        """What items make that somebody reads after them."""
        return [buffer for buffer in self.alive[last + 1] if first <= self.lives[buffer][0] <= last]

    def ends_within(self, buffer: Buffer, last: int) -> bool:
        return self.lives[buffer][1] <= last

    def only_read_within(self, buffer: Buffer, first: int, last: int) -> bool:
        return buffer in self.lives and first <= self.lives[buffer][0] and self.ends_within(buffer, last)

    @cached_property
    def may_be_far(self) -> frozenset[Buffer]:
        """Those of known sizes that only calls at the top touch, and that do not go on from run to run."""
        kept = set(self.program.kept) | {*self.program.states, *self.program.states.values()}
        held = {buffer for name, buffer in self.program.inputs if name in kept}
        held |= {view.buffer for name, view in self.program.outputs if name in kept}
        held |= {buffer.overlap.base for buffer in self.program.buffers() if buffer.overlap}
        for item in self.program.body:
            if not isinstance(item, Call):
                held |= touched([item])
            elif item.workers == 1:
                views = (*item.ins, *item.outs)
                held |= {v.buffer for v in views if not v.is_static or not isinstance(v.offset, int)}
        return frozenset(b for b in self.lives if b not in held and self._is_plain(b))

    def _is_plain(self, buffer: Buffer) -> bool:
        plain = buffer.type.is_static and buffer.dtype is not string and buffer.dtype.bits % 8 == 0
        made = buffer.role == INPUT or buffer in self.makers
        known = buffer.role in (TEMPORARY, INPUT) and buffer.overlap is None and buffer.max_bytes > 0
        return plain and made and known


def touched(items: Iterable[Item]) -> set[Buffer]:
    """All that items name."""
    found: set[Buffer] = set()
    for inner in walk(items):
        views: tuple[View, ...] = (*reads(inner), *writes(inner))
        found |= {view.buffer for view in views} | {*scratches(inner)}
    return found
