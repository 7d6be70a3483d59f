"""The names that a program has given to its buffers, so that a pass finds others for its own."""

from __future__ import annotations

from ..base.names import Names
from .ir import Program


def taken_names(program: Program) -> Names:
    names = Names()
    for buffer in program.buffers():
        names.take(buffer.name)
    return names
