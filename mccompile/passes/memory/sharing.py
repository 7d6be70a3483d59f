"""The verifier of shared memory: which call writes a byte last, and which one reads it after that.

It plays a placed program with the name of its owner in every byte of the arenas: a write makes bytes its buffer's, a
read must find them so. It ends with what a user does: states are brought to their places, outputs (and inputs that are
kept) are read. It knows nothing of the passes that decide what shares memory; of kernels it asks what a result may lie
over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import gcd

import numpy as np

from ...base.dims import Dim, evaluate, symbols
from ...kernels.api import Needs
from ...kernels.registry import Registry
from ...program import ir
from ...program.offsets import offsets_along
from ...program.phases import Phase
from ...targets.api import Target

Places = Mapping[ir.Buffer, tuple[str, int]]  # base and offset of every buffer of the arenas
_NOBODY = 0  # bytes that nobody has written, or that one branch of two leaves to another owner
_LARGEST = 1 << 26  # units of memory that are played; a program with more is placed all the same
_DEEP = 2  # loops around one that is not played again where it begins as it did before
_MOST_TRIPS = 3  # of a loop that are played: both ways round of what changes places, and what the second finds


def sharing_problems(
    program: ir.Program, places: Places, registry: Registry, target: Target, keep_inputs: bool
) -> list[str]:
    """Every read of what somebody else has overwritten, at the largest sizes; an empty list is a proof for these, as
    far as memory is not too large to be played."""
    player = _Player(program, places, registry, target)
    if player.fits:
        player.run(keep_inputs)
    return player.problems


class _Player:
    def __init__(self, program: ir.Program, places: Places, registry: Registry, target: Target) -> None:
        self.program, self.places, self.registry, self.target = program, places, registry, target
        self.problems: list[str] = []
        self.names: dict[ir.Buffer, int] = {}
        self.moved: dict[ir.Buffer, tuple[str, int]] = {}  # where what a loop carries lies in this trip
        self.trips: dict[str, int] = {}  # counters of the loops around, and their last values
        self.known: dict[int, list[ir.Buffer]] = {}
        self.coming: set[ir.Buffer] = set()  # what copies bring that nobody has awaited
        self.ends: dict[object, Sequence[np.ndarray]] = {}  # how loops ended, by how they began
        sizes = [size for buffer, (_, offset) in places.items() for size in (offset, buffer.max_bytes)]
        widths = [max(1, buffer.dtype.bits // 8) for buffer in places]
        self.unit = gcd(*sizes, *widths) or 1  # bytes that always go together
        ends: dict[str, int] = {}
        for buffer, (base, offset) in places.items():
            ends[base] = max(ends.get(base, 0), offset + buffer.max_bytes)
        units = {base: -(-end // self.unit) for base, end in ends.items()}
        self.fits = sum(units.values()) <= _LARGEST
        owners = np.uint16 if len(program.buffers()) < 1 << 16 else np.uint32
        self.memory = {base: np.zeros(count, owners) for base, count in units.items()} if self.fits else {}

    def run(self, keep_inputs: bool) -> None:
        for phase, body in self.program.runs():
            self.phase(phase, body, keep_inputs)

    def phase(self, phase: Phase, body: Sequence[ir.Item], keep_inputs: bool) -> None:
        """One call: it finds inputs as the program has just given them, and what is kept as the call before left it."""
        program = self.program
        inputs, outputs, lasting = dict(program.inputs), dict(program.outputs), program.lasting_inputs(keep_inputs)
        found = [b for name, b in inputs.items() if not program.phases or b in lasting or phase.takes(name)]
        for buffer in found:
            self.write(buffer.whole())
        for buffer in found:
            self.read(buffer.whole(), "a run", "finds")
        self.body(body)
        for after in phase.states.values():
            self.read(outputs[after], f"state {after!r}", "keeps")
        for before, after in phase.states.items():
            self.bring(inputs[before], outputs[after])
        for before, after in phase.states.items():
            self.owned(inputs[before], outputs[after].buffer, before)
        for name in phase.outputs:
            self.read(outputs[name], f"output {name!r}", "is read from")
        for buffer in lasting:
            if not any(buffer is inputs[before] for before in phase.states):
                self.read(buffer.whole(), f"input {buffer.name!r}", "keeps")

    def body(self, body: Sequence[ir.Item]) -> None:
        for item in body:
            match item:
                case ir.Call():
                    self.call(item)
                case ir.Rows():
                    self.rows(item)
                case ir.If():
                    self.read(item.condition, "a condition", "reads")
                    self.branches(item)
                case ir.Loop():
                    self.loop(item)
                case ir.Measure():
                    self.read(item.source, f"size {item.symbol}", "reads")
                case ir.Copy():
                    self.write(item.to.whole())
                    self.coming.add(item.to)
                case ir.Await():
                    self.coming.discard(item.copy.to)
                    self.read(item.copy.to.whole(), "a copy", "has come to")

    def call(self, call: ir.Call) -> None:
        what = f"{call.kind.name} from {call.provenance}"
        for view in call.ins:
            self.read(view, what, "reads")
        for scratch in ir.scratches(call):
            self.write(scratch.whole())
            for view in call.ins:
                self.read(view, what, "has its workspace over")
        touched = {base for base in (self.place(view.buffer)[0] for view in call.outs) if base}
        for result, out in enumerate(call.outs):
            near = [n for n, view in enumerate(call.ins) if self.place(view.buffer)[0] in touched and self.holds(view)]
            self.write(out)
            for index in near:
                if not self.holds(call.ins[index]):
                    self.may_lie_over(call, what, result, index)
        for view in (*call.outs, *(scratch.whole() for scratch in ir.scratches(call))):
            self.read(view, what, "writes twice")

    def may_lie_over(self, call: ir.Call, what: str, result: int, index: int) -> None:
        """Its kernel must allow a result where it has overwritten an operand."""
        needs = self.registry[call.kernel].match(call, self.target)
        reach = needs.alias.get((result, index)) if isinstance(needs, Needs) else None
        out, view = call.outs[result], call.ins[index]
        if self.owner(out.buffer) == self.owner(view.buffer):
            return
        before = self.first(view) - self.first(out)
        if reach is None or not 0 <= before <= reach:
            self.problems.append(f"{what} writes {out.buffer} over {view.buffer}, which its kernel does not allow")

    def rows(self, region: ir.Rows) -> None:
        """All that a region reads from outside is in use as long as it runs."""
        what = f"rows from {region.provenance}"
        made = {view.buffer for view in ir.writes(region)}
        outside = [view for view in ir.reads(region) if view.buffer not in made]
        for view in outside:
            self.read(view, what, "reads")
        shared = {stage.call.ins[stage.over].buffer for stage in region.stages if stage.over is not None}
        inside = [view for stage in region.stages[:-1] for view in stage.call.outs]
        spaces = [scratch.whole() for scratch in ir.scratches(region)]
        for view in (*inside, *spaces):
            self.write(view)
        for view in outside:
            self.read(view, what, "has its rows over")
        last = region.stages[-1].call
        needs = self.registry[last.kernel].match(last, self.target)
        allowed = {*region.over, *(buffer for buffer, _ in region.before)}
        kept = [*inside, *(view for view in outside if view.buffer not in allowed)]
        if isinstance(needs, Needs) and needs.at_end:  # by then all others have been read
            kept = [view for view in inside if any(view.buffer is operand.buffer for operand in last.ins)]
        for view in last.outs:
            self.write(view)
        for view in kept:
            if view.buffer not in shared:
                self.read(view, what, "has its result over")
        for view in ir.writes(region)[-1:]:
            self.read(view, what, "writes twice")

    def branches(self, region: ir.If) -> None:
        before = {base: tags.copy() for base, tags in self.memory.items()}
        self.body(region.then)
        after, self.memory = self.memory, before
        self.body(region.otherwise)
        if region.otherwise and isinstance(region.otherwise[-1], ir.Stop):
            self.memory = after
        elif not (region.then and isinstance(region.then[-1], ir.Stop)):
            for base, tags in self.memory.items():
                tags[tags != after[base]] = _NOBODY

    def loop(self, loop: ir.Loop) -> None:
        """Loops in loops begin the same way time and again: the time does not grow with the power of their depth."""
        if len(self.trips) < _DEEP:
            self.trips_of(loop)
            return
        touched = self.touched(loop)
        key = (id(loop), *self.trips.items(), *map(self.place, touched))
        key = (*key, blake2b(b"".join(tags.tobytes() for tags in self.parts(touched))).digest())
        if key in self.ends:
            for now, end in zip(self.parts(touched), self.ends[key], strict=True):
                now[...] = end
            return
        self.trips_of(loop)
        self.ends[key] = [tags.copy() for tags in self.parts(touched)]

    def touched(self, loop: ir.Loop) -> list[ir.Buffer]:
        """All that a loop reads and writes."""
        if id(loop) not in self.known:
            found: dict[ir.Buffer, None] = {}
            for item in ir.walk([loop]):
                found |= dict.fromkeys(view.buffer for view in (*ir.reads(item), *ir.writes(item)))
                found |= dict.fromkeys(ir.scratches(item))
                if isinstance(item, ir.Loop):
                    found |= dict.fromkeys(buffer for c in item.carries for buffer in (c.now, c.next, c.last))
            self.known[id(loop)] = list(found)
        return self.known[id(loop)]

    def parts(self, buffers: Sequence[ir.Buffer]) -> list[np.ndarray]:
        """The owners of their bytes."""
        found = []
        for buffer in buffers:
            base, begin = self.place(buffer)
            if base in self.memory:
                end = begin + ir.root(buffer)[0].max_bytes
                found.append(self.memory[base][begin // self.unit : -(-end // self.unit)])
        return found

    def trips_of(self, loop: ir.Loop) -> None:
        what = f"loop {loop.counter}"
        for view in ir.reads(loop):
            self.read(view, what, "starts with")
        known = loop.trips if isinstance(loop.trips, int) and loop.condition is None else _MOST_TRIPS - 1
        trips = known if known <= _MOST_TRIPS else _MOST_TRIPS - 1 + (known - _MOST_TRIPS + 1) % 2
        outside = dict(self.moved)
        for carry in loop.carries:
            self.moved |= {buffer: self.place(buffer) for buffer in (carry.now, carry.next)}
        self.trips[loop.counter.name] = loop.counter.high
        for _ in range(trips):
            if loop.condition is not None:
                self.read(loop.condition, what, "goes on by")
            self.body(loop.body)
            for carry in loop.carries:
                self.read(carry.next.whole(), what, "hands on")
            for carry in loop.carries:
                self.hand_on(carry)
        del self.trips[loop.counter.name]
        for carry in loop.carries:
            self.read(carry.now.whole(), what, "ends with")
        self.moved = outside
        for carry in loop.carries:
            self.write(carry.last.whole())

    def hand_on(self, carry: ir.Carry) -> None:
        cells = self.cells(carry.next.whole())
        if cells is not None:
            cells[...] = self.owner(carry.now)
        self.moved[carry.now], self.moved[carry.next] = self.moved[carry.next], self.moved[carry.now]

    def bring(self, kept: ir.Buffer, made: ir.View) -> None:
        """What a state becomes, at its place."""
        if self.place(kept) == (self.place(made.buffer)[0], self.first(made)):
            return
        cells = self.cells(kept.whole())
        if cells is not None:
            cells[...] = self.owner(made.buffer)

    def owned(self, kept: ir.Buffer, made: ir.Buffer, name: str) -> None:
        cells = self.cells(kept.whole())
        if cells is not None and not (cells == self.owner(made)).all():
            self.problems.append(f"state {name!r} is overwritten before the next run")

    def read(self, view: ir.View, what: str, how: str) -> None:
        if not self.holds(view):
            self.problems.append(f"{what} {how} {view.buffer}, which is overwritten")
        if self.coming and ir.root(view.buffer)[0] in self.coming:
            self.problems.append(f"{what} {how} {view.buffer}, which has not come yet")

    def holds(self, view: ir.View) -> bool:
        cells = self.cells(view)
        return cells is None or bool((cells == self.owner(view.buffer)).all())

    def write(self, view: ir.View) -> None:
        cells = self.cells(view)
        if cells is not None:
            cells[...] = self.owner(view.buffer)

    def owner(self, buffer: ir.Buffer) -> int:
        """Parts of a buffer are its own."""
        while buffer.overlap and buffer.overlap.part:
            buffer = buffer.overlap.base
        return self.names.setdefault(buffer, len(self.names) + 1)

    def place(self, buffer: ir.Buffer) -> tuple[str, int]:
        shift, base = 0, buffer
        while base not in self.moved and base.overlap:
            shift += base.overlap.offset
            base = base.overlap.base
        if base in self.moved:
            return self.moved[base][0], self.moved[base][1] + shift
        return self.places.get(buffer, ("", 0))

    def first(self, view: ir.View) -> int:
        """The byte of a view's first element."""
        return self.place(view.buffer)[1] + self.size(view.offset) * view.buffer.dtype.bits // 8

    def size(self, dim: Dim) -> int:
        return evaluate(dim, {s.name: s.high for s in symbols(dim)} | self.zero(dim))

    def zero(self, dim: Dim) -> dict[str, int]:
        return {s.name: 0 for s in symbols(dim) if s.name in self.trips}

    def cells(self, view: ir.View) -> np.ndarray | None:
        """The owners of the bytes that a view shows in any trip of the loops around; None where it shows none of an
        arena."""
        base, begin = self.place(view.buffer)
        outside = view.buffer.role in (ir.STREAM, ir.EXTERNAL) or ir.root(view.buffer)[0].role == ir.CONSTANT
        if outside or base not in self.memory:
            return None
        bits, memory = view.buffer.dtype.bits, self.memory[base]
        shape = [self.size(dim) for dim in view.shape]
        if any(dim <= 0 for dim in shape):
            return None
        if view.lines or bits % 8:
            low, high = view.byte_range
            return memory[(begin + low) // self.unit : -(-(begin + high) // self.unit)]
        step = bits // 8 // self.unit
        axes = [(dim, self.size(stride) * step) for dim, stride in zip(shape, view.strides, strict=True)]
        first, along_trips = offsets_along(view.offset, self.trips)
        axes += [(count, stride * step) for count, stride in along_trips]
        axes = [(dim, stride) for dim, stride in (*axes, (step, 1)) if dim > 1 and stride]
        start = begin // self.unit + first * step
        low = start + sum(min(0, (dim - 1) * stride) for dim, stride in axes)
        high = start + sum(max(0, (dim - 1) * stride) for dim, stride in axes)
        if not 0 <= low <= high < len(memory):
            self.problems.append(f"{view.buffer} leaves {base}")
            return None
        strides = [stride * memory.itemsize for _, stride in axes]
        return np.lib.stride_tricks.as_strided(memory[start:], [dim for dim, _ in axes], strides)
