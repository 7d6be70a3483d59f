"""How much rounding errors of a program's calls change its outputs: a forward pass over the calls estimates the
distribution of elements and how much of an error each call passes on; a backward pass estimates how much of it arrives
at an output.

Invariant: it follows from types and weights alone.
"""

from __future__ import annotations

from ....program.ir import Program
from .rules import made_by
from .spreads import Spreads, Step


def steps(program: Program) -> list[Step]:
    outputs = [view for _, view in program.outputs if view.buffer.dtype.is_float]
    spreads, found = Spreads(frozenset(view.buffer for view in outputs)), []
    for call in program.calls():
        step, made = made_by(call, spreads)
        spreads.record(call, made)
        found.append(step)
    arriving = {view.buffer: 1 / spreads.square(view) for view in outputs}
    for step in reversed(found):
        step.arrives = max((arriving.get(view.buffer, 0.0) for view in step.call.outs), default=0.0)
        for buffer, kept in step.kept.items():
            arriving[buffer] = arriving.get(buffer, 0.0) + kept * step.arrives
    return found
