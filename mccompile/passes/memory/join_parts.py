"""Concat and constant Pad without copies: operands are written directly to their place in the result. Part of
bufferize.

An operand that lies in one piece of the result gets an `Overlap` (its own life, the result's bytes). One that lies
between other elements is relocated: all views of its buffer become strided views of the result's, if kernels take
those.

Invariant: a step either succeeds altogether or leaves the program as it was.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence, Set

from ...base.dims import static
from ...base.errors import InternalError
from ...base.records import dataclass, replace
from ...base.tensor import dense_strides
from ...expr.ir import literal, operand
from ...kernels.api import Needs
from ...kernels.registry import Registry
from ...kinds.concat import Concat
from ...kinds.map import Map
from ...kinds.pad import Pad
from ...program.ir import CONSTANT, TEMPORARY, Buffer, Call, Item, Loop, Overlap, Program, View, reads, walk, writes
from ...program.ir import bodies as inner_bodies
from ...program.relocate import Move, covers_in_any_order
from ...targets.api import Prefer, Target

# How much of a concat is made in place: nothing; operands that lie in one piece of the result; all, between other
# elements if need be; all, with the result laid out such that each operand lies in one piece.
COPY, PIECES, STRIDED, PLANES = "copy", "pieces", "strided", "planes"


def candidates(program: Program) -> list[Call]:
    """The calls that may be made in place, those nearest the end first: a result inside of another one has to know
    where it lies itself."""
    handed_on = {carry.next for item in walk(program.body) if isinstance(item, Loop) for carry in item.carries}
    return [
        call
        for call in walk(program.body)
        if isinstance(call, Call)
        and can_join(call)
        and call.outs[0].buffer not in handed_on
        and isinstance(call.outs[0].offset, int)
        and all(view.is_static for view in (*call.ins, *call.outs))
    ][::-1]


def can_join(call: Call) -> bool:
    return isinstance(call.kind, Concat) or (isinstance(call.kind, Pad) and call.kind.mode == "constant")


def may_take_longer(target: Target) -> bool:
    """May a call get another kernel, so that a copy goes? Where speed comes first, the models of both have to be right:
    they count instructions of cores without caches."""
    return target.prefer == Prefer.RAM or (target.prefer == Prefer.TIME and not target.hosted)


@dataclass
class Joiner:
    program: Program
    registry: Registry
    target: Target
    longer: float = 0.0  # what calls take longer in other kernels, less the copies that go

    def __post_init__(self) -> None:
        self.outputs = {view.buffer for _, view in self.program.outputs}
        given, made = dict(self.program.inputs), dict(self.program.outputs)
        self.states = {given[before]: made[after] for before, after in self.program.states.items()}
        self.bases = {buffer.overlap.base for buffer in self.program.buffers() if buffer.overlap}
        self.users: dict[Buffer, dict[int, Item]] = {}  # who reads or writes a buffer, kept up to date
        top = {id(item) for item in self.program.body}
        self.nested: set[int] = set()  # items inside of regions
        self.outcome: list[tuple[str, frozenset[int]] | None] = []  # of every `join`: equal ones make equal programs
        for item in walk(self.program.body):
            self.note(item)
            if id(item) not in top:
                self.nested.add(id(item))

    def note(self, item: Item) -> None:
        for view in (*reads(item), *writes(item)):
            self.users.setdefault(view.buffer, {})[id(item)] = item

    def join(self, call: Call, mode: str) -> None:
        """Makes what can be made in place, and copies the rest."""
        out = call.outs[0]
        joined = frozenset[int]() if mode == COPY else self.joined(call, mode)
        has_moved = call.outs[0] is not out
        self.outcome.append((mode, joined) if joined or has_moved else None)

    def joined(self, call: Call, mode: str) -> frozenset[int]:
        """Operands that are made in place from now on; the call copies the rest."""
        body = next(body for body in bodies(self.program.body) if any(item is call for item in body))
        if mode == STRIDED:
            self.follow_layout(call)
        elif mode == PLANES and isinstance(call.kind, Concat):
            self.lay_in_planes(call, call.kind.axis)
        often = {buffer for buffer, count in Counter(view.buffer for view in call.ins).items() if count > 1}
        inside = None if body is self.program.body else {id(item) for item in body}
        joined = frozenset(
            index
            for index, part in self.parts(call)
            if call.ins[index].buffer not in often and self.place(call, index, part, inside, mode)
        )
        if not joined:
            return joined
        rest = self.rest(call, joined)
        self.longer += sum(map(self.time, rest)) - self.time(call)
        position = next(number for number, item in enumerate(body) if item is call)
        body[position : position + 1] = rest
        for view in (*call.ins, *call.outs):
            self.users.get(view.buffer, {}).pop(id(call), None)
        for item in rest:
            self.note(item)
        return joined

    def parts(self, call: Call) -> list[tuple[int, View]]:
        """Operands, and the parts of the result that they become."""
        out = call.outs[0]
        if isinstance(call.kind, Pad):
            inner = out
            for axis, before in enumerate(call.kind.before):
                inner = inner.sliced(axis, before, call.ins[0].shape[axis])
            return [(0, inner)]
        found, position = [], 0
        for index, view in enumerate(call.ins):
            size = static(view.shape[call.of(Concat).axis])
            if call.of(Concat).in_turns:
                found.append((index, out.sliced(call.of(Concat).axis, index, size, len(call.ins))))
            else:
                found.append((index, out.sliced(call.of(Concat).axis, position, size)))
            position += size
        return found

    def place(self, call: Call, index: int, part: View, inside: set[int] | None, mode: str) -> bool:
        """Makes an operand where the result wants it; `inside`: the items of the region that the call is in, if any."""
        view = call.ins[index]
        buffer = view.buffer
        bits = buffer.dtype.bits
        if buffer in self.states:
            return inside is None and self.place_state(call, view, part)
        if (
            buffer.role != TEMPORARY
            or buffer.overlap is not None
            or buffer.dtype.is_packed
            or buffer in self.outputs
            or (buffer in self.bases and mode in (STRIDED, PLANES) and not (view.covers_buffer and part.is_dense))
        ):
            return False
        users = self.users.get(buffer, {}).values()
        writers = [item for item in users if any(v.buffer is buffer for v in writes(item))]
        if not writers:
            return False
        if inside is not None:
            if any(id(item) not in inside for item in writers):
                return False
        elif any(id(item) in self.nested for item in writers):
            return False
        start = static(part.offset) * bits // 8
        if _in_one_piece(part) and start % max(buffer.storage.align, 1) == 0:
            if len(writers) > 1 or not covers_in_any_order(view):
                return False  # what the result does not show of the buffer would lie over other parts
            if any(
                have != want for dim, have, want in zip(part.shape, view.strides, part.strides, strict=True) if dim != 1
            ):
                if mode != PLANES or not covers_in_any_order(view):
                    return False
                buffer = replace(buffer, shape=(static(view.type.count),))
                call.ins = (*call.ins[:index], turned := View(buffer, part.shape, part.strides), *call.ins[index + 1 :])
                if not self.relocate(view, turned, {id(call)}):
                    call.ins = (*call.ins[:index], view, *call.ins[index + 1 :])
                    return False
            buffer.overlap = Overlap(part.buffer, start, part=True)
            self.bases.add(part.buffer)
            return True
        return mode == STRIDED and self.relocate(view, part, {id(call)})

    def place_state(self, call: Call, view: View, part: View) -> bool:
        """Has what the run before left lie in the result for good, where that is what the next run gets a part of: the
        end of a run moves it up there."""
        buffer, whole = view.buffer, call.outs[0].buffer
        start = static(part.offset) * buffer.dtype.bits // 8
        if (
            buffer.overlap is not None
            or buffer.dtype.is_packed
            or [given.buffer for _, given in self.program.outputs].count(whole) != 1
            or self.states[buffer].buffer is not whole
            or not (_in_one_piece(part) and covers_in_any_order(view))
            or start % max(buffer.storage.align, 1)
            or any(a != b for dim, a, b in zip(part.shape, view.strides, part.strides, strict=True) if dim != 1)
        ):
            return False
        buffer.overlap = Overlap(whole, start, part=True)
        self.bases.add(whole)
        return True

    # -- between other elements

    def relocate(self, old: View, new: View, without: set[int]) -> bool:
        """Moves all views of a buffer (but those of the calls `without`) over `new`, if every kernel still takes its
        call."""
        if not covers_in_any_order(old):
            return False
        move = Move(old, new)
        changes: list[tuple[Call, Call]] = []
        storage = new.buffer.storage
        for item in list(self.users.get(old.buffer, {}).values()):
            views = (*reads(item), *writes(item))
            if id(item) in without or not any(view.buffer is old.buffer for view in views):
                continue
            if not isinstance(item, Call):
                return False
            moved = [self.moved(view, old.buffer, move) for view in views]
            if any(view is None for view in moved):
                return False
            present = [view for view in moved if view is not None]
            draft = replace(item, ins=tuple(present[: len(item.ins)]), outs=tuple(present[len(item.ins) :]))
            if not self.serve(draft):
                return False
            changes.append((item, draft))
        for item, draft in changes:
            if draft.kernel != item.kernel:
                self.longer += self.time(draft) - self.time(item)
            item.ins, item.outs, item.kernel, item.blocks, item.scratch = (
                draft.ins,
                draft.outs,
                draft.kernel,
                draft.blocks,
                draft.scratch,
            )
            self.note(item)
        named = ((name, self.moved(view, old.buffer, move)) for name, view in self.program.values)
        self.program.values = [(name, view) for name, view in named if view is not None]
        slack, align = max(storage.slack, old.buffer.storage.slack), max(storage.align, old.buffer.storage.align)
        new.buffer.storage = replace(storage, slack=slack, align=align)
        return True

    def moved(self, view: View, buffer: Buffer, move: Move) -> View | None:
        return move.apply(view) if view.buffer is buffer else view

    def serve(self, call: Call) -> bool:
        """Gives the call a kernel that takes it as it lies; the one it has, if that does."""
        choice = self.registry.choose(call, self.target)
        for candidate in sorted(choice.candidates, key=lambda c: c.kernel.id != call.kernel):
            needs = candidate.needs
            if candidate.kernel.id != call.kernel and not may_take_longer(self.target):
                return False
            if not _meets(call, needs):
                continue
            if needs.scratch > (call.scratch.max_bytes if call.scratch else 0):
                continue
            if not needs.scratch:
                call.scratch = None
            call.kernel, call.blocks = candidate.kernel.id, needs.blocks
            return True
        return False

    def time(self, call: Call) -> float:
        return self.registry.cost(self.registry[call.kernel], call, self.target).time

    def follow_layout(self, call: Call) -> None:
        """Gives the result the order of axes of its largest operand, so that this one is still written in long runs."""
        operands = call.ins[:1] if isinstance(call.kind, Pad) else call.ins  # not the number that fills
        parts = [view for view in operands if view.buffer.role != CONSTANT and covers_in_any_order(view)]
        if parts:
            largest = max(parts, key=lambda view: static(view.type.count))
            self.lay_out(call, sorted(range(len(largest.shape)), key=lambda a: -static(largest.strides[a])))

    def lay_in_planes(self, call: Call, axis: int) -> None:
        """Makes the axis of a concat the outermost one."""
        out = call.outs[0]
        others = sorted((a for a in range(len(out.shape)) if a != axis), key=lambda a: -static(out.strides[a]))
        self.lay_out(call, [axis, *others])

    def lay_out(self, call: Call, order: Sequence[int]) -> None:
        """Gives the result this order of axes, outermost first."""
        out = call.outs[0]
        if not covers_in_any_order(out) or out.buffer in self.outputs:
            return
        if out.buffer in self.bases or out.buffer.overlap:
            return
        shape = tuple(out.shape[a] for a in order)
        strides = dict(zip(order, dense_strides(shape), strict=True))
        turned = View(replace(out.buffer, shape=shape), out.shape, tuple(strides[a] for a in range(len(order))))
        if turned.strides != out.strides and self.relocate(out, turned, {id(call)}):
            call.outs = (turned,)

    # -- what is left of the call

    def rest(self, call: Call, joined: Set[int]) -> list[Call]:
        drafts = list(self.fills(call, call.kind) if isinstance(call.kind, Pad) else self.copies(call, joined))
        for draft in drafts:
            choice = self.registry.choose(draft, self.target)
            served = [c for c in choice.candidates if _meets(draft, c.needs) and not c.needs.scratch]
            if not served:
                raise InternalError(f"no kernel for what is left of {call.kind.name} from {call.provenance}")
            draft.kernel, draft.blocks = served[0].kernel.id, served[0].needs.blocks
        return drafts

    def copies(self, call: Call, joined: Set[int]) -> Iterator[Call]:
        """Neighbouring operands that still have to be copied, as smaller concats into slices of the result."""
        axis = call.of(Concat).axis
        if call.of(Concat).in_turns:
            for index, part in self.parts(call):
                if index not in joined and part.type.count:
                    yield Call(Map(operand(0, part.buffer.dtype)), (call.ins[index],), (part,), call.provenance)
            return
        runs: list[list[int]] = []
        for index in range(len(call.ins)):
            if index in joined or call.ins[index].type.count == 0:
                continue
            if runs and runs[-1][-1] == index - 1:
                runs[-1].append(index)
            else:
                runs.append([index])
        ends = list(itertools.accumulate(static(view.shape[axis]) for view in call.ins))
        for run in runs:
            start = ends[run[0]] - static(call.ins[run[0]].shape[axis])
            out = call.outs[0].sliced(axis, start, ends[run[-1]] - start)
            yield Call(call.of(Concat), tuple(call.ins[index] for index in run), (out,), call.provenance)

    def fills(self, call: Call, kind: Pad) -> Iterator[Call]:
        """The frame around the operand of a Pad, one slab after the other."""
        inner, dtype = call.outs[0], call.outs[0].buffer.dtype
        for axis, (before, after) in enumerate(zip(kind.before, kind.after, strict=True)):
            size = static(call.ins[0].shape[axis])
            for start, count in ((0, before), (before + size, after)):
                if count:
                    slab = inner.sliced(axis, start, count)
                    if len(call.ins) > 1:
                        yield Call(
                            Map(operand(0, dtype)), (call.ins[1].broadcast_to(slab.shape),), (slab,), call.provenance
                        )
                    else:
                        yield Call(Map(literal(0, dtype)), (), (slab,), call.provenance)
            inner = inner.sliced(axis, before, size)


def _in_one_piece(view: View) -> bool:
    return covers_in_any_order(replace(view, buffer=Buffer("", view.buffer.dtype, view.shape), offset=0))


def bodies(body: list[Item]) -> Iterator[list[Item]]:
    yield body
    for item in body:
        for inner in inner_bodies(item):
            yield from bodies(inner)


def _meets(call: Call, needs: Needs) -> bool:
    """Do the operands lie as the kernel wants them, without any copy?"""

    def aligned(view: View, align: int) -> bool:
        return view.buffer.role == CONSTANT or static(view.offset) * view.buffer.dtype.bits // 8 % align == 0

    return (
        all(view.is_dense for index, view in enumerate(call.ins) if index in needs.dense)
        and all(view.is_dense for index, view in enumerate(call.outs) if index in needs.dense_outs)
        and all(aligned(call.ins[index], align) for index, align in needs.align.items())
        and all(aligned(call.outs[index], align) for index, align in needs.align_outs.items())
    )
