"""select_kernels: every call gets the best kernel that takes it on this target; operands are copied into the form it
needs.

Calls that no kernel takes are collected and reported together, each with the reasons of all kernels of its kind.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dtypes import u8
from ...base.errors import Problem, UnsupportedModel, raise_all
from ...base.names import Names
from ...base.provenance import show
from ...expr.ir import operand
from ...kernels.api import Needs
from ...kernels.registry import Registry
from ...kinds.map import Map
from ...program.ir import CONSTANT, Buffer, Call, Item, Program, View, bodies
from ...targets.api import Target
from ..api import Context


def select_kernels(program: Program, context: Context) -> None:
    names = Names()
    for buffer in program.buffers():
        names.take(buffer.name)
    selector = _Select(context.registry, context.target, names)
    selector.body(program.body)
    raise_all(UnsupportedModel, selector.problems)


class _Select:
    def __init__(self, registry: Registry, target: Target, names: Names) -> None:
        self.registry, self.target, self.names = registry, target, names
        self.problems: list[Problem] = []

    def body(self, body: list[Item]) -> None:
        result: list[Item] = []
        for item in body:
            if not isinstance(item, Call):
                for inner in bodies(item):
                    self.body(inner)
                result.append(item)
            else:
                before, after = self.call(item)
                result += [*before, item, *after]
        body[:] = result

    def call(self, call: Call) -> tuple[list[Call], list[Call]]:
        """Chooses for one call; gives the copies to run before and after it."""
        choice = self.registry.choose(call, self.target)
        if not choice.candidates:
            why = (
                "\n".join(f"{stem}: {reason}" for stem, reason in choice.refusals)
                or "no kernel of this kind is installed"
            )
            where = ", ".join(f'node "{name}"' for name in call.provenance) or f"call of {call.kind.name}"
            fix = "change the model, or bring a kernel of your own with --kernels"
            self.problems.append(
                Problem(f"no kernel for {call.kind.name} on target {self.target.name}", where, why, fix)
            )
            return [], []
        best = choice.candidates[0]
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
            if (index in needs.dense and not view.is_dense) or (
                index in needs.align and not _is_aligned(view, needs.align[index])
            ):
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
        before, after = self.call(copy)
        return [*before, copy, *after]


def _is_aligned(view: View, align: int) -> bool:
    """Constants and buffers start aligned; a view into the middle may not."""
    offset = view.offset
    return view.buffer.role == CONSTANT or (
        isinstance(offset, int) and offset * view.buffer.dtype.bits // 8 % align == 0
    )
