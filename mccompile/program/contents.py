"""What a program consists of, to tell whether a pass has changed it."""

from __future__ import annotations

from collections.abc import Iterable

from . import ir


def contents(program: ir.Program) -> list[object]:
    """All that `verify` looks at, in order: a program whose contents are the same objects as before is as right as
    before. To be compared by identity, and as long as the list keeps them alive."""
    found: list[object] = [program]
    buffers: dict[ir.Buffer, None] = {}
    for name, buffer in program.inputs:
        found += (name, buffer)
        buffers[buffer] = None
    _body(program.body, found, buffers)
    for name, view in program.outputs:
        found += (name, view)
        buffers[view.buffer] = None
    for buffer in list(buffers):
        while buffer.overlap is not None and buffer.overlap.base not in buffers:
            buffer = buffer.overlap.base
            buffers[buffer] = None
    for buffer in buffers:
        found += vars(buffer).values()
    return found


def _body(body: Iterable[ir.Item], found: list[object], buffers: dict[ir.Buffer, None]) -> None:
    for item in body:
        found.append(item)
        if isinstance(item, ir.Call):
            _call(item, found, buffers)
        elif not isinstance(item, ir.Stop):  # which nobody changes
            found += vars(item).values()
            for view in (*ir.reads(item), *ir.writes(item)):
                buffers[view.buffer] = None
            for stage in item.stages if isinstance(item, ir.Rows) else ():
                found += (stage, *vars(stage).values())
                _call(stage.call, found, buffers)
            for inner in ir.bodies(item):
                found.append(len(inner))
                _body(inner, found, buffers)


def _call(call: ir.Call, found: list[object], buffers: dict[ir.Buffer, None]) -> None:
    found += vars(call).values()
    for view in call.ins:
        buffers[view.buffer] = None
    for view in call.outs:
        buffers[view.buffer] = None
    if call.scratch is not None:
        buffers[call.scratch] = None
