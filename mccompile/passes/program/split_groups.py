"""split_groups: a grouped convolution that has only a portable kernel becomes dense ones over some of the channels,
where these have better kernels.

Each dense convolution makes the channels of one group, or of several: integers of other groups are multiplied with
weights of 0 then, which is worth it where a window has few channels. The parts are joined by a Concat, in whose place
bufferize has them written.

Invariant: a call is replaced as a whole or stays; every element is the same sum of the same products, and of zeros only
where these are integers.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.names import Names
from ...kernels.api import viewed
from ...kernels.registry import effort
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...program.clone import clone
from ...program.ir import CONSTANT, Buffer, Call, Item, Program, View, bodies
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from ..channel_parts import cut, like
from .choose_kernels.scored import is_better
from .fuse import PORTABLE

CALLS = 1.05  # several calls take that much longer than one that does the same
MOST = 16  # calls in place of one
RUN, ELEMENT = 8, 1  # what a run of a window takes that is laid out, and each of its elements, over a short product


def split_groups(program: Program, context: Context) -> None:
    if context.target.prefer == Prefer.RAM:
        draft = clone(program)
        if not _body(draft.body, context, taken_names(draft)) or not is_better(draft, program, context):
            return
    _body(program.body, context, taken_names(program))


def _body(body: list[Item], context: Context, names: Names) -> bool:
    result: list[Item] = []
    for item in body:
        if any([_body(inner, context, names) for inner in bodies(item)]):
            result.append(item)
        elif isinstance(item, Call) and isinstance(item.kind, Conv) and _is_grouped(item, item.kind):
            result += _quickest(item, item.kind, context, names)
        else:
            result.append(item)
    changed = len(result) > len(body)
    body[:] = result
    return changed


def _is_grouped(call: Call, kind: Conv) -> bool:
    w, known = call.ins[1], all(view.is_static and isinstance(view.offset, int) for view in (*call.ins, *call.outs))
    return 1 < kind.group < static(w.shape[0]) and known and w.buffer.role == CONSTANT and not kind.w_zero


def _quickest(call: Call, kind: Conv, context: Context, names: Names) -> list[Call]:
    found = context.registry.choose(call, context.target).candidates
    if not found or found[0].kernel.isa != PORTABLE or 0 in call.outs[0].shape:
        return [call]
    integers = kind.accumulator.is_integer and not call.ins[1].buffer.dtype.is_packed
    counts = [n for n in range(1, kind.group if integers else 2) if kind.group % n == 0 and kind.group // n <= MOST]
    efforts = {count: _effort(_blocks(call, kind, count, Names(), True), context) for count in counts}
    best = min(efforts, key=lambda count: efforts[count], default=0)
    if not best or efforts[best] * CALLS >= effort(found[0].cost, context.target):
        return [call]
    parts = _blocks(call, kind, best, names, False)
    return [*parts, Call(Concat(1), tuple(part.outs[0] for part in parts), call.outs, call.provenance)]


def _effort(calls: list[Call], context: Context) -> float:
    """Of calls that differ in their channels only."""
    first, target = calls[0], context.target
    found = context.registry.choose(first, target).candidates
    if not found or found[0].kernel.isa == PORTABLE:
        return math.inf
    channels, *window = first.ins[1].type.static_shape[1:]
    points = static(first.outs[0].type.count) // static(first.outs[0].shape[1])
    laid_out = points * math.prod(window) * (RUN + ELEMENT * channels) * target.machine.short_mac
    cost = found[0].cost
    whole = replace(cost, time=(cost.time + laid_out) * len(calls), blob=cost.blob * len(calls) + _added(calls))
    return effort(whole, target)


def _added(calls: list[Call]) -> int:
    """Bytes of zeros among weights."""
    constants = [call.ins[1].buffer.constant for call in calls]
    return sum(int(np.sum(constant.array == 0)) for constant in constants if constant is not None)


def _blocks(call: Call, kind: Conv, groups: int, names: Names, in_place: bool) -> list[Call]:
    """Dense convolutions, each for so many groups; `in_place`, which no pass before bufferize may leave so, they write
    to the result itself."""
    x, y, found = call.ins[0], call.outs[0], list[Call]()
    inputs, outputs = (static(view.shape[1]) // kind.group * groups for view in (x, y))
    dense = replace(kind, group=1, palette=kind.palette and groups == 1)
    for block in range(kind.group // groups):
        start = block * outputs
        ins = [x.sliced(1, block * inputs, inputs), _dense(call.ins[1], start, outputs, groups, names)]
        ins += [*call.ins[2 : 2 + kind.x_zero]]
        ins += [cut(view, 1, start, outputs, names) for view in call.ins[kind.fixed :]]
        out = y.sliced(1, start, outputs) if in_place else like(y, 1, outputs, names)
        found.append(replace(call, kind=dense, ins=tuple(ins), outs=(out,)))
    return found


def _dense(w: View, start: int, outputs: int, groups: int, names: Names) -> View:
    """Weights [O / group * groups, C / group, taps] of groups as those of a dense convolution."""
    if groups == 1:
        return cut(w, 0, start, outputs, names)
    assert w.buffer.constant is not None
    array = viewed(w.sliced(0, start, outputs), w.buffer.constant)
    inputs, each = array.shape[1], outputs // groups
    wide = np.zeros((outputs, groups * inputs, *array.shape[2:]), array.dtype)
    for group in range(groups):
        rows = slice(group * each, (group + 1) * each)
        wide[rows, group * inputs : (group + 1) * inputs] = array[rows]
    value = Constant.of(wide)
    name = names.take(f"{w.buffer.name}_dense")
    return Buffer(name, w.buffer.dtype, value.type.static_shape, CONSTANT, value, w.buffer.provenance).whole()
