"""Joins programs that share inputs and kept values into one program of several phases.

Each has been through all passes by itself. Invariant: nothing goes from one phase to another but through what is kept,
so each is right wherever the plan puts the others; constants that are equal and packed alike are there once, but what
kept values begin with is there for each of them, as another blob may have other weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...base.errors import InternalError
from ...base.names import Names
from ...program.clone import clone
from ...program.ir import CONSTANT, Buffer, Program, Storage
from ...program.phases import Phase


def join_phases(name: str, parts: Sequence[tuple[Phase, Program]]) -> Program:
    """`parts`: what each phase is called and handed, and its program."""
    joined = Program(name)
    known: dict[tuple[str, ...], Buffer] = {}  # inputs by name, constants by packing and contents
    names = Names()
    for phase, program in parts:
        given, instead = dict(program.inputs), dict[Buffer, Buffer]()
        if any(buffer.overlap for buffer in given.values()):
            raise InternalError(f"phase {phase.name} has an input that lies in another tensor")
        shared = {("input", own): buffer for own, buffer in given.items()}
        first = {n: b for n, b in program.initial.items() if b is not None}
        begins = {b: ("initial", n) for n, b in first.items()}  # equal ones differ in a device's blob
        held = [b for b in dict.fromkeys((*program.buffers(), *first.values())) if b.constant is not None]
        keyed = [*shared.items(), *((begins.get(b, ("constant", b.packing, _digest(b))), b) for b in held)]
        for key, buffer in keyed:
            if key not in known:
                known[key] = replace(buffer, name=names.take(buffer.name))
            instead[buffer] = _fitting(known[key], buffer)
        own = clone(program, instead)
        _name(own, set(known.values()), names)
        joined.inputs += [(n, b) for n, b in own.inputs if n not in dict(joined.inputs)]
        end = "" if phase.outputs else f"/{phase.name}"
        joined.outputs += [(f"{n}{end}", view) for n, view in own.outputs]
        states = {before: f"{after}{end}" for before, after in own.states.items()}
        joined.states |= states
        joined.initial |= {n: None for n in program.initial if n not in joined.initial}
        joined.initial |= {n: instead[b] for n, b in first.items()}
        joined.assumptions |= own.assumptions
        joined.not_negative |= own.not_negative
        inputs = tuple(n for n in given if n not in own.kept and n not in phase.arguments)
        joined.phases.append(replace(phase, items=len(own.body), states=states, inputs=inputs))
        joined.body += own.body
    return joined


def _digest(buffer: Buffer) -> str:
    assert buffer.constant is not None
    return buffer.constant.digest


def _fitting(shared: Buffer, other: Buffer) -> Buffer:
    """Whose memory suits both."""
    if shared.type != other.type or shared.role != other.role:
        raise InternalError(f"{shared} is {shared.role} {shared.type}, and {other.role} {other.type} in another phase")
    align = max(shared.storage.align, other.storage.align)
    shared.storage = Storage(align, max(shared.storage.slack, other.storage.slack))
    return shared


def _name(program: Program, shared: set[Buffer], names: Names) -> None:
    """Names of its own for every buffer that is not shared."""
    for buffer in program.buffers():
        if buffer not in shared and buffer.role != CONSTANT:
            buffer.name = names.take(buffer.name)
