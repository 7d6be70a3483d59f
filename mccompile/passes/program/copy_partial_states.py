"""copy_partial_states: a state that is the smaller part of a tensor is copied out of it at once, so that the tensor
need not stay alive.

A larger part stays where it is, and bufferize may have it lie there for good.
"""

from __future__ import annotations

from ...expr.ir import operand
from ...kinds.map import Map
from ...program.ir import TEMPORARY, Buffer, Call, Program, View, walk, writes
from ...program.taken_names import taken_names
from ..api import Context


def copy_partial_states(program: Program, context: Context) -> None:
    names = taken_names(program)
    for position, (name, view) in enumerate(program.outputs):
        if name in program.states.values() and _is_small_part(program, view):
            buffer = view.buffer
            made = Buffer(names.take(f"{buffer.name}_kept"), buffer.dtype, view.shape, provenance=buffer.provenance)
            copy = Call(Map(operand(0, buffer.dtype)), (view,), (made.whole(),), buffer.provenance)
            program.body.insert(_last_write(program, buffer) + 1, copy)
            program.outputs[position] = name, made.whole()


def _is_small_part(program: Program, view: View) -> bool:
    buffer = view.buffer
    alone = sum(other.buffer is buffer for _, other in program.outputs) == 1
    small = view.is_static and buffer.type.is_static and 2 * view.type.max_bytes < buffer.type.max_bytes
    return buffer.role == TEMPORARY and buffer.overlap is None and alone and small


def _last_write(program: Program, buffer: Buffer) -> int:
    return max(
        number
        for number, item in enumerate(program.body)
        if any(view.buffer is buffer for inner in walk([item]) for view in writes(inner))
    )
