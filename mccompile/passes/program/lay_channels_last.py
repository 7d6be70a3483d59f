"""lay_channels_last: planar operands and results of convolutions, pools and GridSample become channels-last where this
pays, if the planar form is supported only by a portable kernel, or by one that multiplies channels of other groups
by 0. Grouped convolutions count as the convolutions that split_groups turns them into.

assign_layout has laid out what lies between such operators. Left are inputs and outputs of the model, and tensors that
others make or read in the order of ONNX. Two ways lead there, and what the registry says of all calls around decides:

- the buffer itself lies channels-last, and its other calls read or write it so;
- a copy before the call or behind it, which several readers share; where memory comes before time, only if plans made
  on trial are better with them.

Invariant: every element is computed as before, from the same operands; only where it lies changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from ...base.dims import static
from ...base.names import Names
from ...base.records import dataclass
from ...expr.ir import operand
from ...kernels.registry import PORTABLE, Candidate
from ...kinds.conv import Conv
from ...kinds.grid_sample import GridSample
from ...kinds.map import Map
from ...program.clone import clone
from ...program.ir import TEMPORARY, Buffer, Call, Item, Program, View, bodies, reads, walk, writes
from ...program.planar import Windows
from ...program.relocate import Move, covers_in_any_order
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from ..graph.assign_layout import first_order, last_order
from .choose_kernels.scored import is_better
from .split_groups import effort_of_groups, split_wherever_faster

SAVED = 0.02  # of the effort of the calls, at least, where costs are estimates: cores without caches are counted


def lay_channels_last(program: Program, context: Context) -> None:
    copies = context.target.prefer != Prefer.RAM or _are_worth_it(program, context)
    Layouts(program, context, copies).body(program.body)


def _are_worth_it(program: Program, context: Context) -> bool:
    """Is a plan with copies the better one, with groups as split_groups will split them?"""
    draft, before = clone(program), clone(program)
    Layouts(draft, context, True).body(draft.body)
    if len(draft.body) == len(program.body):
        return False
    for each in (draft, before):
        split_wherever_faster(each, context)
    return is_better(draft, before, context)


@dataclass(frozen=True)
class _Relayout:
    """How a view of a call comes to lie channels-last: what that takes, and what does it."""

    effort: float
    run: Callable[[], None]


NO_WAY = _Relayout(math.inf, lambda: None)


class Layouts:
    def __init__(self, program: Program, context: Context, copies: bool) -> None:
        self.program, self.registry, self.target = program, context.registry, context.target
        self.context = context
        self.names = taken_names(program)
        self.copies = copies

    def body(self, body: list[Item]) -> None:
        copies: dict[View, View] = {}  # made for calls in front
        for item in list(body):
            for inner in bodies(item):
                self.body(inner)
            if isinstance(item, Call) and isinstance(item.kind, (*Windows, GridSample)):
                self.call(item, body, copies)

    def call(self, call: Call, body: list[Item], copies: dict[View, View]) -> None:
        pictures = [view for view in (call.ins[0], call.outs[0]) if is_planar(view)]
        before = self.best(call) if pictures else None
        if before is None or not (before.kernel.isa == PORTABLE or _may_gain(call)):
            return
        least, best = self.effort(call) * (1 - SAVED * self.target.hosted), None
        for views in (some for count in (1, 2) for some in combinations(pictures, count)):
            turned = {view: copies.get(view) or channels_last(view, self.names) for view in views}
            total = self.effort(_with(call, turned))
            if total >= least:
                continue
            ways = [self.way(call, view, last, body, copies) for view, last in turned.items()]
            total += sum(way.effort for way in ways)
            if total < least:
                least, best = total, (turned, ways)
        if best is None:
            return
        turned, ways = best
        call.ins, call.outs = (made := _with(call, turned)).ins, made.outs
        for way in ways:
            way.run()

    def way(self, call: Call, view: View, last: View, body: list[Item], copies: dict[View, View]) -> _Relayout:
        """The better one for a view of a call."""
        if last is copies.get(view):
            return _Relayout(0, lambda: None)
        ways = [self.moved(call, view, last), self.copied(call, view, last, body, copies)]
        return min(ways, key=lambda way: way.effort)

    def copied(self, call: Call, view: View, last: View, body: list[Item], copies: dict[View, View]) -> _Relayout:
        if not self.copies:
            return NO_WAY
        source, to = (view, last) if view is call.ins[0] else (last, view)
        copy = Call(Map(operand(0, view.buffer.dtype)), (source,), (to,), call.provenance)

        def run() -> None:
            body.insert(body.index(call) + (to is view), copy)
            if source is view:
                copies[view] = last

        return _Relayout(self.effort(copy), run)

    def moved(self, call: Call, view: View, last: View) -> _Relayout:
        """The buffer lies as `last` does, for all that read and write it."""
        old = view.buffer
        if (
            old.role != TEMPORARY
            or not covers_in_any_order(view)
            or any(v.buffer is old for _, v in self.program.outputs)
        ):
            return NO_WAY
        others = [item for item in walk(self.program.body) if item is not call and _touches(item, old)]
        move = Move(view, last)
        found: list[tuple[Call, Call]] = []
        for item in others:
            made = _moved(item, old, move)
            if made is None or not isinstance(item, Call) or self.spreads(item, made):
                return NO_WAY
            found.append((item, made))

        def run() -> None:
            for item, _ in found:  # another buffer of an item may have been moved since
                made = _moved(item, old, move)
                assert made is not None
                item.ins, item.outs = made.ins, made.outs
            values = [(name, move.apply(v) if v.buffer is old else v) for name, v in self.program.values]
            self.program.values = [(name, v) for name, v in values if v is not None]

        return _Relayout(sum(self.effort(made) - self.effort(item) for item, made in found), run)

    def spreads(self, old: Call, new: Call) -> bool:
        """May the result no longer be written over an operand?"""
        before, after = self.best(old), self.best(new)
        return before is None or after is None or not before.needs.alias.keys() <= after.needs.alias.keys()

    def best(self, call: Call) -> Candidate | None:
        return next(iter(self.registry.choose(call, self.target).candidates), None)

    def effort(self, call: Call) -> float:
        return effort_of_groups(call, self.context)


def channels_last(view: View, names: Names) -> View:
    """The same elements in a buffer of their own, channels-last."""
    old, rank = view.buffer, len(view.shape)
    shape = tuple(view.shape[axis] for axis in last_order(rank))
    made = Buffer(names.take(f"{old.name}_last"), old.dtype, shape, provenance=old.provenance)
    return made.whole().permuted(first_order(rank))


def is_planar(view: View) -> bool:
    """Do channels lie apart, and would they not in another order?"""
    if not view.is_static or not isinstance(view.offset, int) or 0 in view.shape:
        return False
    return view.shape[1] != 1 and any(size != 1 for size in view.shape[2:]) and static(view.strides[1]) != 1


def _may_gain(call: Call) -> bool:
    """Though there are vectors of another kind."""
    return isinstance(call.kind, GridSample) or (isinstance(call.kind, Conv) and call.kind.group > 1)


def _with(call: Call, turned: dict[View, View]) -> Call:
    ins = (turned.get(call.ins[0], call.ins[0]), *call.ins[1:])
    return replace(call, ins=ins, outs=(turned.get(call.outs[0], call.outs[0]), *call.outs[1:]))


def _touches(item: Item, buffer: Buffer) -> bool:
    return any(view.buffer is buffer for view in _views(item))


def _views(item: Item) -> Iterator[View]:
    yield from reads(item)
    yield from writes(item)


def _moved(item: Item, old: Buffer, move: Move) -> Call | None:
    """A call with its views of a buffer where that lies now; None where strides cannot say it, or it is not a call."""
    if not isinstance(item, Call):
        return None

    def places(views: Sequence[View]) -> list[View]:
        found = [move.apply(view) if view.buffer is old else view for view in views]
        return [view for view in found if view is not None]

    ins, outs = places(item.ins), places(item.outs)
    if len(ins) + len(outs) < len(item.ins) + len(item.outs):
        return None
    return replace(item, ins=tuple(ins), outs=tuple(outs))
