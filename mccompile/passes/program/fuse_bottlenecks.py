"""fuse_bottlenecks: a 1x1 convolution, a depthwise convolution and a 1x1 convolution become one call, which keeps only
the part of the intermediate tensor that is under a window, and recomputes rows that are under several windows.

Which ones, driver/recomputing.py decides, and tile_columns notes it.

Invariant: every element is computed as before; sums are integers, so their order does not matter.
"""

from __future__ import annotations

from ...base.provenance import merge
from ...kinds.bottleneck import Bottleneck
from ...kinds.conv import Conv
from ...program.ir import CONSTANT, TEMPORARY, Buffer, Call, Program, reads, walk
from ..api import Context


def fuse_bottlenecks(program: Program, context: Context) -> None:
    if not context.bottlenecks:
        return
    readers: dict[Buffer, int] = {}
    for view in (*(view for item in walk(program.body) for view in reads(item)), *(v for _, v in program.outputs)):
        readers[view.buffer] = readers.get(view.buffer, 0) + 1
    made = {item.outs[0].buffer: item for item in program.body if isinstance(item, Call)}
    gone: set[Call] = set()
    for number, last in enumerate(program.body):
        slide = _maker(last, made, readers) if isinstance(last, Call) else None
        widen = _maker(slide, made, readers) if slide is not None else None
        if not isinstance(last, Call) or slide is None or widen is None:
            continue
        rows = next((n for names, n in context.bottlenecks.items() if names <= set(slide.provenance)), 0)
        fused = _fused(widen, slide, last, rows) if rows else None
        if fused is not None and context.registry.choose(fused, context.target).candidates:
            program.body[number] = made[fused.outs[0].buffer] = fused
            gone |= {widen, slide}
    program.body = [item for item in program.body if not isinstance(item, Call) or item not in gone]
    lost = {call.outs[0].buffer for call in gone}
    program.values = [(name, view) for name, view in program.values if view.buffer not in lost]


def _maker(call: Call, made: dict[Buffer, Call], readers: dict[Buffer, int]) -> Call | None:
    """The call whose result this convolution alone reads, as its picture."""
    x = call.ins[0] if isinstance(call.kind, Conv) else None
    before = made.get(x.buffer) if x is not None else None
    if x is None or before is None or not isinstance(before.kind, Conv) or before.outs[0] != x:
        return None
    alone = readers[x.buffer] == 1 and x.buffer.role == TEMPORARY and x.buffer.overlap is None
    constant = all(view.buffer.role == CONSTANT for view in before.ins[1:])
    return before if alone and constant and before.kind.accumulator.is_integer else None


def _fused(widen: Call, slide: Call, narrow: Call, rows: int) -> Call | None:
    kinds = widen.of(Conv), slide.of(Conv), narrow.of(Conv)
    views = (*widen.ins, *slide.ins[1:], *narrow.ins[1:])
    known = all(view.is_static for view in (*views, *narrow.outs)) and len(narrow.outs[0].shape) == 4
    if not known or not kinds[2].accumulator.is_integer:
        return None
    kind = Bottleneck(*kinds, (len(widen.ins) - 1, len(slide.ins) - 1), rows)
    if kind.check([view.type for view in views], [view.type for view in narrow.outs]):
        return None
    return Call(kind, views, narrow.outs, merge(merge(widen.provenance, slide.provenance), narrow.provenance))
