"""lay_over_operands: a result is stored in the order of an operand, where it can be written over that operand only so.

Only for networks that learn in little memory: an activation and its gradient take one piece of memory then. The buffer
lies so for all calls that read and write it; none of them may become slower, or lose an operand that its result could
be written over.

Invariant: every element is computed as before; only where it lies changes.
"""

from __future__ import annotations

from dataclasses import replace

from ...program.ir import TEMPORARY, Buffer, Call, Program, View, walk
from ...program.relocate import covers_in_any_order
from ...program.taken_names import taken_names
from ..api import Context
from .lay_channels_last import Layouts


def lay_over_operands(program: Program, context: Context) -> None:
    if context.memory.again <= 1:
        return
    layouts, names = Layouts(program, context, copies=False), taken_names(program)
    for item in list(walk(program.body)):
        if not isinstance(item, Call) or len(item.outs) != 1:
            continue
        out, now = item.outs[0], layouts.best(item)
        if now is None or any(item.ins[operand].buffer.role == TEMPORARY for _, operand in now.needs.alias):
            continue
        for number, view in enumerate(item.ins):
            if not _is_in_another_order(view, out):
                continue
            made = replace(view.buffer, name=names.take(out.buffer.name), provenance=out.buffer.provenance)
            if _lie(item, number, made, layouts):
                break


def _lie(call: Call, operand: int, made: Buffer, layouts: Layouts) -> bool:
    """The result of a call lies in `made` as that operand does in its buffer, if this gains."""
    out, to = call.outs[0], replace(call.ins[operand], buffer=made)
    turned = replace(call, outs=(to,))
    best = layouts.best(turned)
    if best is None or (0, operand) not in best.needs.alias:
        return False
    way = layouts.moved(call, out, to)
    if layouts.effort(turned) + way.effort > layouts.effort(call):
        return False
    call.outs = turned.outs
    way.run()
    return True


def _is_in_another_order(view: View, out: View) -> bool:
    return (
        view.buffer.role == TEMPORARY
        and view.buffer is not out.buffer
        and view.buffer.dtype is out.buffer.dtype
        and view.shape == out.shape
        and view.strides != out.strides
        and covers_in_any_order(view)
    )
