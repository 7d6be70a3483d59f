"""select_kernels: every call gets the best kernel that supports it on this target, or the one that choose_kernels has
chosen; operands are copied into the form that the kernel needs.

Calls that no kernel takes are collected and reported together, each with the reasons of all kernels of its kind.
"""

from __future__ import annotations

import math

from ...base.dims import Dim, Symbol, symbol, upper
from ...base.dtypes import u8
from ...base.errors import Problem, UnsupportedModel, raise_all
from ...base.names import Names
from ...base.provenance import show
from ...base.records import replace
from ...expr.ir import operand
from ...kernels.api import Needs, static_views
from ...kinds.api import Box
from ...kinds.map import Map
from ...ops.rules.known_shapes import FIX_DIMENSIONS
from ...program.ir import CONSTANT, Buffer, Call, Item, Loop, Program, View, bodies
from ...program.taken_names import taken_names
from ..api import Context, Explanation

SLICED = 1.05  # a loop over slices takes that much longer than its calls


def select_kernels(program: Program, context: Context) -> None:
    names = taken_names(program)
    selector = _Select(context, names)
    selector.body(program.body)
    raise_all(UnsupportedModel, selector.problems)


class _Select:
    def __init__(self, context: Context, names: Names) -> None:
        self.registry, self.target, self.names = context.registry, context.target, names
        self.explanations = context.explanations
        self.problems: list[Problem] = []
        self.slices = 0

    def body(self, body: list[Item]) -> None:
        result: list[Item] = []
        for item in body:
            if not isinstance(item, Call):
                for inner in bodies(item):
                    self.body(inner)
                result.append(item)
            else:
                result += self.items(item)
        body[:] = result

    def items(self, call: Call) -> list[Item]:
        """The call with its copies; in a loop over slices, where no kernel takes sizes known only at run time, or one
        that does not is quicker."""
        if any(not isinstance(dim, int) for view in call.outs for dim in view.shape):
            loop = over_slices(call, f"slice{self.slices}")
            if loop is not None and self.time_of(loop) * SLICED < self.time(call):
                self.slices += 1
                self.body(loop.body)
                return [loop]
        before, after = self.call(call)
        return [*before, call, *after]

    def time(self, call: Call) -> float:
        """What the best kernel takes for it, slice by slice if need be."""
        found = self.registry.choose(call, self.target).candidates
        if found:
            return found[0].cost.time
        loop = over_slices(call, "slice")
        return self.time_of(loop) if loop is not None else math.inf

    def time_of(self, slices: Loop) -> float:
        (call,) = (item for item in slices.body if isinstance(item, Call))
        return self.time(call) * (slices.counter.high + 1)

    def call(self, call: Call, is_copy: bool = False) -> tuple[list[Call], list[Call]]:
        """Chooses for one call; gives the copies to run before and after it. A copy itself is made without others."""
        choice = self.registry.choose(call, self.target)
        if is_copy:
            choice = replace(choice, candidates=tuple(c for c in choice.candidates if not _needs_copies(call, c.needs)))
        if not choice.candidates:
            why = (
                "\n".join(f"{stem}: {reason}" for stem, reason in choice.refusals)
                or "no kernel of this kind is installed"
            )
            where = ", ".join(f'node "{name}"' for name in call.provenance) or f"call of {call.kind.name}"
            fix = "change the model, or bring a kernel of your own with --kernels"
            if static_views(call):
                fix = f"{FIX_DIMENSIONS}, or bring a kernel of your own with --kernels"
            self.problems.append(
                Problem(f"no kernel for {call.kind.name} on target {self.target.name}", where, why, fix)
            )
            return [], []
        best = next((c for c in choice.candidates if c.kernel.id == call.kernel), choice.candidates[0])
        choice = replace(choice, candidates=(best, *(c for c in choice.candidates if c is not best)))
        self.explanations.append(Explanation(call.provenance, call.kind.name, choice, replace(call)))
        call.kernel, call.blocks = best.kernel.id, best.needs.blocks
        before, after = self.meet(call, best.needs)
        if best.needs.scratch:
            name = self.names.take(f"scratch_{show(call.provenance, 1) or call.kind.name}")
            call.scratch = Buffer(name, u8, (best.needs.scratch,), provenance=call.provenance)
            call.scratch.storage = replace(call.scratch.storage, align=best.needs.scratch_align)
        return before, after

    def meet(self, call: Call, needs: Needs) -> tuple[list[Call], list[Call]]:
        """Copies for what has to be dense; alignment and slack where buffers are our own."""
        before: list[Call] = []
        after: list[Call] = []
        ins, outs = list(call.ins), list(call.outs)
        for index, view in enumerate(ins):
            if _needs_copy(index, view, needs):
                ins[index] = self.fresh(view).whole()
                before += self.copy(view, ins[index], call)
        for index, view in enumerate(outs):
            if index in needs.dense_outs and not view.is_dense:
                outs[index] = self.fresh(view).whole()
                after += self.copy(outs[index], view, call)
        call.ins, call.outs = tuple(ins), tuple(outs)
        for views, aligns in ((ins, needs.align), (outs, needs.align_outs)):
            for index, align in aligns.items():
                buffer = views[index].buffer
                buffer.storage = replace(buffer.storage, align=max(buffer.storage.align, align))
        for index, slack in needs.slack.items():
            buffer = ins[index].buffer
            buffer.storage = replace(buffer.storage, slack=max(buffer.storage.slack, slack))
        return before, after

    def fresh(self, view: View) -> Buffer:
        return Buffer(
            self.names.take(f"{view.buffer.name}_copy"),
            view.buffer.dtype,
            view.shape,
            provenance=view.buffer.provenance,
        )

    def copy(self, source: View, target: View, call: Call) -> list[Call]:
        copy = Call(Map(operand(0, source.buffer.dtype)), (source,), (target,), call.provenance)
        before, after = self.call(copy, is_copy=True)
        return [*before, copy, *after]


def _needs_copies(call: Call, needs: Needs) -> bool:
    apart = any(not view.is_dense for index, view in enumerate(call.outs) if index in needs.dense_outs)
    return apart or any(_needs_copy(index, view, needs) for index, view in enumerate(call.ins))


def _needs_copy(index: int, view: View, needs: Needs) -> bool:
    """Does an operand not lie as a kernel needs it?"""
    if index in needs.dense and not view.is_dense:
        return True
    return index in needs.align and not _is_aligned(view, needs.align[index])


def _is_aligned(view: View, align: int) -> bool:
    """Constants and buffers start aligned; a view into the middle may not."""
    offset = view.offset
    return view.buffer.role == CONSTANT or (
        isinstance(offset, int) and offset * view.buffer.dtype.bits // 8 % align == 0
    )


def over_slices(call: Call, name: str) -> Loop | None:
    """The call for one position at a time along an axis whose size is known only at run time, if each position of the
    results needs only that position of the operands."""
    for axis, dim in enumerate(call.outs[0].shape):
        if isinstance(dim, int) or any(len(out.shape) <= axis or out.shape[axis] != dim for out in call.outs):
            continue
        if call.kind.counts_places(axis):  # a slice starts at position 0 of its own
            continue
        counter = Symbol(name, 0, upper(dim) - 1)
        position = symbol(name, 0, upper(dim) - 1)
        box = tuple((position, position + 1) if a == axis else (0, d) for a, d in enumerate(call.outs[0].shape))
        boxes = call.kind.access([v.shape for v in call.ins], [v.shape for v in call.outs], box)
        ins = [_slice(view, needed, position) for view, needed in zip(call.ins, boxes, strict=True)]
        found = [view for view in ins if view is not None]
        if len(found) != len(ins):
            continue
        outs = tuple(_at(view, axis, position) for view in call.outs)
        if not all(map(_stays_inside, (*found, *outs))):
            continue
        inner = replace(call, ins=tuple(found), outs=outs)
        if not call.kind.check([v.type for v in found], [v.type for v in outs]):
            return Loop(counter, dim, [], None, [inner], call.provenance)
    return None


def _stays_inside(view: View) -> bool:
    """Is that seen of one position? Where a view begins may depend on how many positions there are, and then its
    bounds say less than those of all positions together."""
    return view.last_element < upper(view.buffer.type.count)


def _slice(view: View, box: Box, position: Dim) -> View | None:
    """What one position needs of an operand; None where that is neither all of an axis nor just the position."""
    for axis, (low, high) in enumerate(box):
        if (low, high) == (position, position + 1) and view.shape[axis] != 1:
            view = _at(view, axis, position)
        elif (low, high) != (0, view.shape[axis]):
            return None
    return view


def _at(view: View, axis: int, position: Dim) -> View:
    """One position of an axis; where its stride is not known, it does not matter any more."""
    found = view.sliced(axis, position, 1)
    if isinstance(found.strides[axis], int):
        return found
    return replace(found, strides=(*found.strides[:axis], 1, *found.strides[axis + 1 :]))
