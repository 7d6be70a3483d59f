"""A copy of a program to try decisions on: own calls and buffers, the same constants."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..base.records import replace
from .ir import CONSTANT, Await, Buffer, Call, Carry, Copy, If, Item, Loop, Measure, Program, Rows, Stop, View


def clone(program: Program, instead: Mapping[Buffer, Buffer] = MappingProxyType({})) -> Program:
    """`instead`: buffers that are there already, and take the place of some."""
    buffers, copies = dict(instead), dict[Copy, Copy]()

    def buffer(old: Buffer) -> Buffer:
        if old.role == CONSTANT and not old.overlap:
            return buffers.get(old, old)
        if old not in buffers:
            buffers[old] = replace(old)
            if old.overlap:
                buffers[old].overlap = replace(old.overlap, base=buffer(old.overlap.base))
        return buffers[old]

    def view(old: View) -> View:
        if old.buffer.role == CONSTANT and not old.buffer.overlap and old.buffer not in buffers:
            return old
        return View(buffer(old.buffer), old.shape, old.strides, old.offset, old.lines)

    def item(old: Item) -> Item:
        if isinstance(old, If):
            return If(
                view(old.condition), [item(i) for i in old.then], [item(i) for i in old.otherwise], old.provenance
            )
        if isinstance(old, Stop):
            return old
        if isinstance(old, Copy):
            copies[old] = Copy(tuple(map(buffer, old.parts)), buffer(old.to), old.provenance)
            return copies[old]
        if isinstance(old, Await):
            return Await(copies[old.copy])
        if isinstance(old, Measure):
            return Measure(old.symbol, view(old.source), old.provenance)
        if isinstance(old, Loop):
            return Loop(
                old.counter,
                view(old.trips) if isinstance(old.trips, View) else old.trips,
                [Carry(buffer(c.now), buffer(c.next), buffer(c.last)) for c in old.carries],
                view(old.condition) if old.condition is not None else None,
                [item(i) for i in old.body],
                old.provenance,
            )
        if isinstance(old, Rows):
            return Rows(
                [replace(stage, call=call(stage.call)) for stage in old.stages],
                tuple(map(buffer, old.over)),
                tuple((buffer(b), nbytes) for b, nbytes in old.before),
                old.provenance,
            )
        return call(old)

    def call(old: Call) -> Call:
        scratch = buffer(old.scratch) if old.scratch is not None else None
        return replace(old, ins=tuple(map(view, old.ins)), outs=tuple(map(view, old.outs)), scratch=scratch)

    return Program(
        program.name,
        [(name, buffer(b)) for name, b in program.inputs],
        [(name, view(v)) for name, v in program.outputs],
        [item(i) for i in program.body],
        dict(program.assumptions),
        dict(program.not_negative),
        program.call_by_call,
        program.copied_bound,
        dict(program.states),
        dict(program.initial),
        [*program.phases],
    )
