"""eliminate_dead_calls: removes calls whose results nobody reads, and carried values of a loop that only the loop
itself reads.

Lowering turns sizes and positions into views where they are known, so the arithmetic that computed them is often not
needed any more.
"""

from __future__ import annotations

from ...program.ir import Buffer, Call, If, Item, Loop, Program, View, bodies, reads, walk
from ..api import Context


def eliminate_dead_calls(program: Program, context: Context) -> None:
    live = _live(program)
    program.body = _kept(program.body, live)


def _live(program: Program) -> set[Buffer]:
    """Buffers that somebody reads whose own results are needed."""
    live = {view.buffer for _, view in program.outputs}
    before = -1
    while before != len(live):
        before = len(live)
        for item in reversed(list(walk(program.body))):
            match item:
                case Call():
                    if any(view.buffer in live for view in item.outs):
                        live |= {view.buffer for view in item.ins}
                case If():
                    if _matters(item, live):
                        live.add(item.condition.buffer)
                case Loop():
                    for carry in item.carries:
                        if live & {carry.now, carry.next, carry.last}:
                            live |= {carry.now, carry.next}
                    if _matters(item, live):
                        live |= {view.buffer for view in (item.trips, item.condition) if isinstance(view, View)}
                case _:
                    live |= {view.buffer for view in reads(item)}
    return live


def _matters(item: Item, live: set[Buffer]) -> bool:
    """Does anything in a region write what is needed, or may it stop the run?"""
    for inner in walk([item]):
        if isinstance(inner, Call) and any(view.buffer in live for view in inner.outs):
            return True
        if not isinstance(inner, Call) and not bodies(inner):
            return True
    return False


def _kept(body: list[Item], live: set[Buffer]) -> list[Item]:
    kept: list[Item] = []
    for item in body:
        if isinstance(item, Call):
            if any(view.buffer in live for view in item.outs):
                kept.append(item)
            continue
        if bodies(item) and not _matters(item, live):
            continue
        if isinstance(item, Loop):
            item.carries = [carry for carry in item.carries if carry.now in live]
        for inner in bodies(item):
            inner[:] = _kept(inner, live)
        kept.append(item)
    return kept
