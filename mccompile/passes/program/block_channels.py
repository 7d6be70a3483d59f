"""block_channels: a convolution and the global pool of its result run by blocks of channels, so that only a block of
the tensor between them exists at a time.

A channel of the pool needs nothing but the same channel of the convolution, so nothing is computed twice. The results
are joined, which bufferize has them written in place for. Which pairs, and how many blocks, driver/recomputing.py
decides, and tile_columns notes it.

Invariant: every element is computed as before, from the same operands in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dims import static
from ...base.names import Names
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...kinds.pool import Pool
from ...program.ir import TEMPORARY, Buffer, Call, Program, View, reads, walk
from ...program.relocate import covers_in_any_order
from ...program.taken_names import taken_names
from ..api import Context
from ..channel_parts import cut, like


def block_channels(program: Program, context: Context) -> None:
    if not context.channel_blocks:
        return
    names = taken_names(program)
    readers: dict[Buffer, int] = {}
    for view in (*(view for item in walk(program.body) for view in reads(item)), *(v for _, v in program.outputs)):
        readers[view.buffer] = readers.get(view.buffer, 0) + 1
    made = {item.outs[0].buffer: item for item in program.body if isinstance(item, Call)}
    for pool in list(program.body):
        if not isinstance(pool, Call) or not isinstance(pool.kind, Pool):
            continue
        count = next((n for nodes, n in context.channel_blocks.items() if nodes <= set(pool.provenance)), 1)
        conv = made.get(pool.ins[0].buffer)
        if conv is None or readers[conv.outs[0].buffer] != 1 or not _is_pair(conv, pool):
            continue
        channels = static(pool.outs[0].shape[1])
        if count > 1 and channels % count == 0:
            place = program.body.index(pool)
            program.body[place : place + 1] = _blocks(conv, pool, channels // count, names)
            program.body.remove(conv)
            program.values = [(name, view) for name, view in program.values if view.buffer is not conv.outs[0].buffer]


def _is_pair(conv: Call, pool: Call) -> bool:
    """Does a channel of the pool need no other than the same one of a convolution that makes each from all of x?"""
    x = pool.ins[0]
    if not isinstance(conv.kind, Conv) or conv.kind.group != 1 or conv.outs[0] != x or x.buffer.overlap is not None:
        return False
    views = (*conv.ins, *conv.outs, *pool.ins, *pool.outs)
    whole = x.buffer.role == TEMPORARY and covers_in_any_order(x) and pool.outs[0].covers_buffer
    return whole and all(view.is_static and isinstance(view.offset, int) for view in views)


def _blocks(conv: Call, pool: Call, size: int, names: Names) -> list[Call]:
    kind, found, parts = conv.of(Conv), list[Call](), list[View]()
    for start in range(0, static(pool.outs[0].shape[1]), size):
        fixed = [conv.ins[0], cut(conv.ins[1], 0, start, size, names)]
        fixed += [*conv.ins[2 : 2 + kind.x_zero]]
        fixed += [cut(view, 0, start, size, names) for view in conv.ins[2 + kind.x_zero : kind.fixed]]
        extras = [cut(view, 1, start, size, names) for view in conv.ins[kind.fixed :]]
        between = like(conv.outs[0], 1, size, names)
        others = [cut(view, 1, start, size, names) for view in pool.ins[1:]]
        parts.append(like(pool.outs[0], 1, size, names))
        found.append(replace(conv, ins=(*fixed, *extras), outs=(between,)))
        found.append(replace(pool, ins=(between, *others), outs=(parts[-1],)))
    return [*found, Call(Concat(1), tuple(parts), pool.outs, pool.provenance)]
