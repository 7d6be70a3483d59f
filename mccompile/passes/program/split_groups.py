"""split_groups: a grouped convolution becomes dense ones over some of the channels, where these have better kernels; a
convolution of floats only if it has none but a portable kernel.

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
from ...kernels.registry import PORTABLE, effort
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...program.clone import clone
from ...program.ir import CONSTANT, Buffer, Call, Program, View, walk
from ...program.replace_calls import replace_calls
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from ..channel_parts import cut, like
from .choose_kernels.scored import is_better

CALLS = 1.05  # several calls take that much longer than one that does the same
MOST = 16  # calls in place of one
# What a position of a call takes, a run of its window that is laid out, one that is not whole words, and each of its
# elements, over a short product
POSITION, RUN, BYTES, ELEMENT = 30, 8, 38, 1
AT_ONCE = 4  # channels of a word, and of results
PORTABLE_RUN = 2.5  # what each run of a window takes in portable C besides its products, over one of these


def split_groups(program: Program, context: Context) -> None:
    if context.target.prefer == Prefer.RAM:
        draft = clone(program)
        if not split_wherever_faster(draft, context) or not is_better(draft, program, context):
            return
    split_wherever_faster(program, context)


def split_wherever_faster(program: Program, context: Context) -> bool:
    """Whatever memory that takes; True if anything was split."""
    names, before = taken_names(program), [*walk(program.body)]

    def replacement(call: Call) -> list[Call]:
        is_grouped = isinstance(call.kind, Conv) and _is_grouped(call, call.kind)
        return _quickest(call, call.of(Conv), context, names) if is_grouped else [call]

    replace_calls(program.body, replacement)
    after = [*walk(program.body)]
    return len(after) > len(before) or any(new is not old for new, old in zip(after, before, strict=True))


def effort_of_groups(call: Call, context: Context) -> float:
    """What a call takes at least: as it is, or, where it has groups, as dense ones."""
    whole = _whole(call, context)
    if isinstance(call.kind, Conv) and _is_grouped(call, call.kind):
        return min(whole, _best(call, call.kind, context)[1])
    return whole


def _whole(call: Call, context: Context) -> float:
    """What a call takes as it is."""
    found = context.registry.choose(call, context.target).candidates
    if not found:
        return math.inf
    cost = found[0].cost
    if _is_portable(call, context) and isinstance(call.kind, Conv) and _is_grouped(call, call.kind):
        runs = static(call.outs[0].type.count) * math.prod(call.ins[1].type.static_shape[2:])
        cost = replace(cost, time=cost.time + runs * PORTABLE_RUN * context.target.machine.mac)
    return effort(cost, context.target)


def _is_portable(call: Call, context: Context) -> bool:
    found = context.registry.choose(call, context.target).candidates
    return bool(found) and found[0].kernel.isa == PORTABLE


def _is_grouped(call: Call, kind: Conv) -> bool:
    w, known = call.ins[1], all(view.is_static and isinstance(view.offset, int) for view in (*call.ins, *call.outs))
    is_computed = w.buffer.role != CONSTANT or kind.w_zero or 0 in call.outs[0].shape
    is_depthwise = w.shape[1] == 1 and kind.group == w.shape[0]
    return kind.group > 1 and not is_depthwise and known and not is_computed


def _quickest(call: Call, kind: Conv, context: Context, names: Names) -> list[Call]:
    best, least = _best(call, kind, context)
    if not best or least >= _whole(call, context):
        return [call]
    parts = _blocks(call, kind, best, names, best == kind.group)
    if len(parts) == 1:
        return parts
    return [*parts, Call(Concat(1), tuple(part.outs[0] for part in parts), call.outs, call.provenance)]


def _best(call: Call, kind: Conv, context: Context) -> tuple[int, float]:
    """Of how many groups each dense convolution is best, and what they all take; 0 where nothing has better kernels."""
    if not kind.accumulator.is_integer and not _is_portable(call, context):
        return 0, math.inf
    integers = kind.accumulator.is_integer and not call.ins[1].buffer.dtype.is_packed
    counts = [n for n in range(1, kind.group + 1 if integers else 2) if kind.group % n == 0 and kind.group // n <= MOST]
    efforts = {n: _effort(_blocks(call, kind, n, Names(), True), context) * CALLS for n in counts}
    best = min(efforts, key=lambda count: efforts[count], default=0)
    return (best, efforts[best]) if best and efforts[best] < math.inf else (0, math.inf)


def _effort(calls: list[Call], context: Context) -> float:
    """Of calls that differ in their channels only."""
    first, target = calls[0], context.target
    found = context.registry.choose(first, target).candidates
    if not found or found[0].kernel.isa == PORTABLE:
        return math.inf
    channels, *window = first.ins[1].type.static_shape[1:]
    outs = static(first.outs[0].shape[1])
    points = static(first.outs[0].type.count) // outs
    laid_out = POSITION + math.prod(window) * ((BYTES if channels % AT_ONCE else RUN) + ELEMENT * channels)
    cost = found[0].cost
    time = cost.time * (outs + -outs % AT_ONCE) / outs + points * laid_out * target.machine.short_mac
    whole = replace(cost, time=time * len(calls), blob=cost.blob * len(calls) + _added(calls))
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
