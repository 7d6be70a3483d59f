"""split_weights: convolutions and products whose weights are too large for a window run by blocks of output channels,
so that the weights of one block are copied while the block before it is computed.

Invariant: every element is computed as before, from the same operands in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dims import static
from ...base.names import Names
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...program.ir import CONSTANT, TEMPORARY, Call, Program, View
from ...program.relocate import covers_in_any_order
from ...program.taken_names import taken_names
from ..api import Context
from ..channel_parts import cut, like

_WHOLE = 16, 8, 4, 1  # a block has a multiple of the first of these that fits: tiles of kernels stay full


def split_weights(program: Program, context: Context) -> None:
    if not context.memory.window:
        return
    names = taken_names(program)
    half = context.memory.window // 2  # two blocks are there at a time
    room = half * 7 // 8  # for one, which packing may make larger
    for call in [item for item in program.body if isinstance(item, Call)]:
        weights = sum(buffer.max_bytes for buffer in {v.buffer for v in call.ins if v.buffer.role == CONSTANT})
        axis = _axis(call)
        if weights <= half or axis is None:
            continue
        channels = static(call.outs[0].shape[axis])
        most = max(channels * room // weights, 1)
        size = next(most // unit * unit for unit in _WHOLE if most >= unit)
        if size < channels:
            place = program.body.index(call)
            program.body[place : place + 1] = _blocks(call, axis, size, names)


def _axis(call: Call) -> int | None:
    """Of the channels of a result, each of which needs weights of its own; None: it has none such."""
    if not isinstance(call.kind, Conv | Gemm) or (isinstance(call.kind, Conv) and call.kind.group != 1):
        return None
    out, weights = call.outs[0], call.ins[1].buffer
    known = all(view.is_static and isinstance(view.offset, int) for view in (*call.ins, out))
    whole = out.buffer.role == TEMPORARY and out.buffer.overlap is None and covers_in_any_order(out)
    if not known or not whole or weights.role != CONSTANT or weights.dtype.is_packed or out.buffer.dtype.is_packed:
        return None
    return 1 if isinstance(call.kind, Conv) else len(out.shape) - 1


def _blocks(call: Call, axis: int, size: int, names: Names) -> list[Call]:
    found, parts, total = list[Call](), list[View](), static(call.outs[0].shape[axis])
    for start in range(0, total, size):
        count = min(size, total - start)
        parts.append(like(call.outs[0], axis, count, names))
        ins = tuple(_part(call, index, axis, start, count, names) for index in range(len(call.ins)))
        found.append(replace(call, ins=ins, outs=(parts[-1],)))
    return [*found, Call(Concat(axis), tuple(parts), call.outs, call.provenance)]


def _part(call: Call, index: int, axis: int, start: int, count: int, names: Names) -> View:
    """What a block reads of an operand: all of what is multiplied with weights, and of its zero point."""
    kind, view = call.kind, call.ins[index]
    assert isinstance(kind, Conv | Gemm)
    of_x = kind.x_zero if isinstance(kind, Conv) else kind.a_zero
    if index == 0 or (of_x and index == 2):
        return view
    along = axis if index >= kind.fixed else 0 if isinstance(kind, Conv) else len(view.shape) - 1
    return cut(view, along, start, count, names)
