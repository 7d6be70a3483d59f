"""A sequence of calls that works in one memory while some of its operands, or its result, are in the other: adds calls
that copy them, by rows where all calls run row by row."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dims import static
from ...base.provenance import Provenance
from ...base.records import dataclass, replace
from ...base.tensor import Shape
from ...kernels.api import Needs
from ...kinds.transfer import Transfer
from ...memory.interval import align_up
from ...program.ir import CONSTANT, EXTERNAL, STREAM, Buffer, Call, Item, Program, View, reads
from ...program.relocate import covers_in_any_order
from ..api import Context
from ..program.fuse_line_buffers import Rings
from ..rows.row_call import RowCall, operand_axis
from ..rows.row_chains import Chain, Chains
from ..rows.row_play import Window
from .tensors import Tensors, touched


@dataclass(frozen=True)
class Segment:
    """Items in place of some of the program's: what brings operands, a run of calls, what takes results away."""

    before: tuple[Call, ...]  # operands that come as a whole
    body: tuple[Item, ...]
    rows: tuple[RowCall, ...]  # the same, where they run row by row
    after: tuple[Call, ...]
    chain: Chain | None
    near: int  # bytes of rings, workspaces and copies, besides what lives longer
    rings: int  # the same without workspaces, and without what may lie over an operand
    copied: int  # bytes
    copies: int  # as many as there are if rows come one at a time
    twins: tuple[tuple[Buffer, Buffer], ...]  # near buffers of far ones

    @property
    def items(self) -> tuple[Item, ...]:
        return *self.before, *self.body, *self.after


class Segments:
    """Of one program."""

    def __init__(self, tensors: Tensors, calls: Sequence[RowCall | None], context: Context) -> None:
        self.tensors, self.calls, self.context = tensors, calls, context
        self.found: dict[tuple[int, int, frozenset[Buffer], bool], Segment | None] = {}
        self.taken: dict[tuple[Buffer, frozenset[Buffer]], bool] = {}  # rings by kernels
        self.least: dict[tuple[int, int], int] = {}  # bytes of rings and copies of a run by rows, without workspaces

    def get(self, first: int, last: int, far: frozenset[Buffer], by_rows: bool) -> Segment | None:
        """`far`: operands and results that lie in the other memory. None where that cannot be."""
        key = first, last, far, by_rows
        if key not in self.found:
            self.found[key] = made = self._by_rows(first, last, far) if by_rows else self._whole(first, far)
            if made is not None and by_rows:
                self.least[first, last] = min(made.rings, self.least.get((first, last), made.rings))
        return self.found[key]

    def _whole(self, at: int, far: frozenset[Buffer]) -> Segment | None:
        """One item, for which all is there as a whole."""
        item = self.tensors.program.body[at]
        maker = _Copies(self.context)
        if not isinstance(item, Call):
            return None if far else self._segment(maker, (item,), (), None, at)
        maker.provenance = item.provenance
        ins = tuple(maker.bring_whole(view) if view.buffer in far else view for view in item.ins)
        outs = tuple(maker.take_whole(view) if view.buffer in far else view for view in item.outs)
        return self._segment(maker, (replace(item, ins=ins, outs=outs) if far else item,), (), None, at)

    def _by_rows(self, first: int, last: int, far: frozenset[Buffer]) -> Segment | None:
        calls = [call for call in self.calls[first : last + 1] if call is not None]
        inside = {call.call.outs[0].buffer for call in calls[:-1]}
        if len(calls) != last + 1 - first or not all(self._only_here(b, first, last) for b in inside):
            return None
        maker, moved = _Copies(self.context), list[RowCall]()
        for call in calls:
            windows = {window.operand for window in call.windows}
            ins, maker.provenance = list[View](), call.call.provenance
            for number, view in enumerate(call.call.ins):
                if view.buffer not in far or view.buffer in inside:
                    ins.append(view)
                else:
                    axis = operand_axis(call, next((w for w in call.windows if w.operand == number), Window(0)))
                    ins.append(maker.bring(view, axis if number in windows else None))
            moved.append(replace(call, call=replace(call.call, ins=tuple(ins))))
        result, final = moved[-1].call.outs[0], list[RowCall]()
        if result.buffer in far:
            taken = maker.take_whole(result) if moved[-1].takes_all else maker.take_rows(result, moved[-1], final)
            moved[-1] = replace(moved[-1], call=replace(moved[-1].call, outs=(taken,)))
        rows = [*maker.rows, *moved, *final]
        program = Program("segment", body=[row.call for row in rows])
        chain = Chains(program, rows).play(0, len(rows) - 1, 1, True)
        if chain is None or not self._rings(program, rows, chain, far):
            return None
        return self._segment(maker, tuple(row.call for row in rows), tuple(rows), chain)

    def _rings(self, program: Program, rows: Sequence[RowCall], chain: Chain, far: frozenset[Buffer]) -> bool:
        """Do kernels take rings? What was answered for the same calls over the same far tensors is remembered."""
        rings, keys = Rings(program, list(rows), self.context), dict[Buffer, tuple[Buffer, frozenset[Buffer]]]()
        for buffer in (b for b in chain.lines if b in self.tensors.lives):
            users = {*self.tensors.readers.get(buffer, ()), *self.tensors.makers[buffer]}
            near = {view.buffer for user in users for view in reads(self.tensors.program.body[user])}
            keys[buffer] = buffer, far & near
            if keys[buffer] in self.taken:
                rings.known[buffer] = self.taken[keys[buffer]]
        possible = rings.possible(chain)
        self.taken |= {key: rings.known[buffer] for buffer, key in keys.items() if buffer in rings.known}
        return possible

    def _only_here(self, buffer: Buffer, first: int, last: int) -> bool:
        return buffer not in self.tensors.outputs and self.tensors.only_read_within(buffer, first, last)

    def _segment(
        self, maker: _Copies, body: tuple[Item, ...], rows: tuple[RowCall, ...], chain: Chain | None, at: int = 0
    ) -> Segment:
        held, rings = [buffer.max_bytes for buffer in maker.whole], 0
        if chain is not None:
            held += chain.ring_bytes.values()
            rings = sum(align_up(size, self.tensors.align) for size in held)
            held.append(chain.scratch)
        else:  # workspaces, and what exists only inside of a region
            longer = {*self.tensors.alive[at], *self.tensors.made(at, at), *maker.whole}
            others = (CONSTANT, EXTERNAL, STREAM)
            held += [b.max_bytes for b in touched(body) - longer if b.role not in others]
        near = sum(align_up(size, self.tensors.align) for size in held)
        before, after, made = tuple(maker.before), tuple(maker.after), tuple(maker.made)
        return Segment(before, body, rows, after, chain, near, rings, maker.copied, maker.copies, made)


class _Copies:
    """Twins of far tensors in the memory where steps work, and the calls that copy."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.before: list[Call] = []
        self.after: list[Call] = []
        self.rows: list[RowCall] = []
        self.whole: list[Buffer] = []  # twins that exist as a whole
        self.twins: dict[object, View] = {}
        self.made: list[tuple[Buffer, Buffer]] = []
        self.copied = self.copies = 0
        self.provenance: Provenance = ()  # of the call that copies are made for

    def bring(self, view: View, axis: int | None) -> View:
        """What an operand becomes that comes by rows along an axis, or as a whole where it cannot."""
        if axis is None or not _goes_by_rows(view, axis):
            return self.bring_whole(view)
        key = view.buffer, view.shape, view.strides, view.offset, axis
        if key not in self.twins:
            self.twins[key] = twin = self._dense(view)
            self.rows.append(self._row_call(view, twin, axis))
        return self.twins[key]

    def bring_whole(self, view: View) -> View:
        buffer = view.buffer
        if buffer not in self.twins:
            self.twins[buffer] = twin = self._twin(buffer, buffer.shape).whole()
            self.whole.append(twin.buffer)
            self.before.append(self._whole(buffer.whole(), twin))
        return replace(view, buffer=self.twins[buffer].buffer)

    def take_whole(self, view: View) -> View:
        near = self._alike(view)
        self.whole.append(near.buffer)
        self.after.append(self._whole(near, view))
        return near

    def take_rows(self, view: View, maker: RowCall, final: list[RowCall]) -> View:
        near = self._alike(view)
        final.append(self._row_call(near, view, maker.axis))
        return near

    def _alike(self, view: View) -> View:
        """A tensor of its own for a result, which may be a part of a larger one."""
        if covers_in_any_order(view):
            return replace(view, buffer=self._twin(view.buffer, view.buffer.shape))
        return self._dense(view)

    def _dense(self, view: View) -> View:
        """A tensor of its own with the elements that a view shows, in the same order of axes."""
        order = sorted(range(len(view.shape)), key=lambda a: (-static(view.strides[a]), a))
        twin = self._twin(view.buffer, tuple(view.shape[a] for a in order))
        return twin.whole().permuted([order.index(a) for a in range(len(order))])

    def _twin(self, buffer: Buffer, shape: Shape) -> Buffer:
        twin = Buffer(f"{buffer.name}_near", buffer.dtype, shape, provenance=self.provenance, storage=buffer.storage)
        self.made.append((twin, buffer))
        return twin

    def _row_call(self, source: View, to: View, axis: int) -> RowCall:
        call = self._transfer(source, to, axis)
        height = static(source.shape[axis])
        self.copies += height * self.context.registry[call.kernel].moves(call, 0, 1)
        return RowCall(call, axis, height, (Window(0),), call.kernel, (0, 1), frozenset(), 0.0)

    def _whole(self, source: View, to: View) -> Call:
        call = self._transfer(source, to, 0)
        self.copies += self.context.registry[call.kernel].moves(call, 0, static(call.ins[0].shape[0]))
        return call

    def _transfer(self, source: View, to: View, axis: int) -> Call:
        if not source.shape:
            source, to = (View(view.buffer, (1,), (1,), view.offset) for view in (source, to))
        self.copied += source.type.max_bytes
        call = Call(Transfer(axis), (source,), (to,), self.provenance)
        choice = self.context.registry.choose(call, self.context.target)
        call.kernel = choice.candidates[0].kernel.id
        needs = self.context.registry[call.kernel].match(call, self.context.target)
        assert isinstance(needs, Needs)
        call.blocks = needs.blocks
        return call


def _goes_by_rows(view: View, axis: int) -> bool:
    """Does it show every element once, and along the axis more than one?"""
    axes = [a for a in range(len(view.shape)) if static(view.shape[a]) > 1]
    reach = 0
    for a in sorted(axes, key=lambda a: static(view.strides[a])):
        if static(view.strides[a]) <= reach:
            return False
        reach += (static(view.shape[a]) - 1) * static(view.strides[a])
    return axis in axes
