"""Liveness of each buffer of the arena, and the blocks that a planner has to place.

Time runs over the items of the program in textual order; a buffer lives from the call that first writes it (model
inputs: from before the first call) to the last that reads it (model outputs, and what strings may point into: beyond
the last). In a program of several phases an input lives from the begin of each phase that it is given to, to its last
reader there, and is idle in between; an output lives to the end of its phase. Buffers that overlap by decision of
bufferize are one block with a part for each, so the planner slides them together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ...base.records import dataclass
from ...memory.interval import Block, Part, glue
from ...program.ir import (
    CONSTANT,
    EXTERNAL,
    LASTING,
    STREAM,
    Buffer,
    Item,
    Program,
    View,
    reads,
    root,
    scratches,
    walk,
    writes,
)
from ...program.phases import Phase
from ...program.spans import loop_spans


@dataclass
class Span:
    start: int
    end: int  # exclusive
    idle: list[tuple[int, int]] = field(default_factory=list)  # when nobody needs what it holds, in order

    @property
    def alive(self) -> list[tuple[int, int]]:
        """When it holds something, begins and ends in turn."""
        times = [self.start, *(time for idle in self.idle for time in idle), self.end]
        return [(start, end) for start, end in zip(times[::2], times[1::2], strict=True) if start < end]


def liveness(program: Program, keep_inputs: bool = False) -> dict[Buffer, Span]:
    """Time 0 is before the first call, when the inputs are filled."""
    spans: dict[Buffer, Span] = {buffer: Span(0, 1) for _, buffer in program.inputs if buffer.role != EXTERNAL}

    def touch(buffer: Buffer, time: int) -> None:
        if root(buffer)[0].role in (CONSTANT, STREAM, EXTERNAL):  # a constant may be a part of what is copied
            return
        span = spans.setdefault(buffer, Span(time, time + 1))
        span.end = max(span.end, time + 1)

    time, outputs = 0, dict(program.outputs)
    for phase, body in program.runs():
        for item in walk(body):
            time += 1
            views: Iterable[View] = (*reads(item), *writes(item))
            for view in views:
                touch(view.buffer, time)
            for scratch in scratches(item):
                touch(scratch, time)
        last = not program.phases or phase is program.phases[-1]
        for name in (*phase.outputs, *phase.states.values()):
            touch(outputs[name].buffer, time + last)
    for buffer in [b for b in spans if b.role == LASTING]:
        touch(buffer, time + 1)
    for buffer in program.lasting_inputs(keep_inputs):
        touch(buffer, time + 1)
    _hold(program, spans)
    for buffer in [buffer for buffer in spans if buffer.overlap and buffer.overlap.part]:
        base = buffer
        while base.overlap and base.overlap.part:  # a part holds its bytes as long as anybody needs the whole
            base = base.overlap.base
            if base in spans:
                spans[buffer].end = max(spans[buffer].end, spans[base].end)
    _rest(program, keep_inputs, spans)
    return spans


def _rest(program: Program, keep_inputs: bool, spans: dict[Buffer, Span]) -> None:
    """Between phases, what the program gives before each of them holds nothing."""
    kept, outputs = program.lasting_inputs(keep_inputs) if program.phases else [], dict(program.outputs)
    found: dict[Buffer, list[tuple[int, int]]] = {}
    for phase, begin, body in _timed(program) if program.phases else ():
        last = dict.fromkeys((buffer for name, buffer in program.inputs if phase.takes(name)), begin + 1)
        time = begin
        for item in body:
            inner = list(walk([item]))  # a loop's trips read again what was given before it
            time += len(inner)
            last |= {view.buffer: time for i in inner for view in (*reads(i), *writes(i)) if view.buffer in last}
        handed = (outputs[name].buffer for name in (*phase.outputs, *phase.states.values()))
        last |= dict.fromkeys((buffer for buffer in handed if buffer in last), time + 1)
        for buffer, end in last.items():
            found.setdefault(buffer, []).append((begin + 1 if begin else 0, end + 1))
    for buffer, alive in found.items():
        span = spans.get(buffer)
        if span is not None and buffer not in kept and not buffer.overlap:
            span.start, span.end = alive[0][0], max(alive[-1][1], alive[0][0] + 1)
            span.idle = [(end, start) for (_, end), (start, _) in itertools.pairwise(alive)]


def _timed(program: Program) -> Iterator[tuple[Phase, int, Sequence[Item]]]:
    """Phases, the time before each of them, and their items."""
    time = 0
    for phase, body in program.runs():
        yield phase, time, body
        time += sum(1 for _ in walk(body))


def _hold(program: Program, spans: dict[Buffer, Span]) -> None:
    """What lasts longer than a trip of a loop is alive in all of them: what is read there and made before, what is made
    there and read after, be it by who calls a phase, and what is handed on."""
    outputs = dict(program.outputs)
    returned = {outputs[name].buffer for p, _ in program.runs() for name in (*p.outputs, *p.states.values())}
    for loop in loop_spans(program):
        start, end = loop.start + 1, loop.end + 2  # time 0 is before the first call; ends are exclusive
        inside = {view.buffer for item in walk([loop.loop]) for view in (*reads(item), *writes(item))}
        carried = {buffer for carry in loop.loop.carries for buffer in (carry.now, carry.next)}
        for buffer in inside:
            span = spans.get(buffer)
            if span is None:
                continue
            if span.start < start or buffer in carried:
                span.end = max(span.end, end)
            if span.end > end or buffer in carried or buffer in returned:
                span.start = min(span.start, start)


def unshared(program: Program, buffers: Iterable[Buffer], align: int) -> list[Block]:
    """Blocks of buffers that share with nobody; of rings the tensors that would be there without them."""
    rings = {view.buffer: view.type.max_bytes for call in program.calls() for view in call.outs if view.lines}
    return [Block(b.name, (Part(0, 1, 0, rings.get(b, b.max_bytes)),), max(align, b.storage.align)) for b in buffers]


def blocks_of(lives: dict[Buffer, Span], align: int) -> tuple[list[Block], dict[Buffer, tuple[int, int]]]:
    """One block per root, and for every buffer its block and its distance from the block's address."""
    groups: dict[Buffer, list[Buffer]] = {}
    for buffer in lives:
        groups.setdefault(root(buffer)[0], []).append(buffer)
    blocks: list[Block] = []
    owners: dict[Buffer, tuple[int, int]] = {}
    for base, members in groups.items():
        parts = []
        for member in members:
            shift = root(member)[1]
            parts += [Part(start, end, shift, shift + member.max_bytes) for start, end in lives[member].alive]
        needed = max([align, *(m.storage.align for m in members)])
        block, moved = glue(base.name, parts, needed)
        for member in members:
            owners[member] = (len(blocks), root(member)[1] + moved)
        blocks.append(block)
    return blocks, owners
