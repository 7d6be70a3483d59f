"""split_dilations: a dilated convolution becomes ones without dilation, each over every so-manieth element, where these
have faster kernels (Winograd's method for bytes).

With dilation d and stride 1, results o, o + d, o + 2d ... along an axis meet inputs that lie d apart. Such phases are
computed one after the other with the same weights, and take turns in the result (`Concat.in_turns`):
for speed, at the price of memory for the phases.

Invariant: a call is replaced as a whole or stays; every element is the same sum of the same products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...base.budgets import budgets
from ...base.dims import static
from ...base.names import Names
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...program.ir import Call, Program
from ...program.replace_calls import replace_calls
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from ..channel_parts import like
from .split_groups import effort_of_groups

CALLS = 1.05  # several calls take that much longer than one that does the same


def split_dilations(program: Program, context: Context) -> None:
    names = taken_names(program)

    def replacement(call: Call) -> list[Call]:
        if not isinstance(call.kind, Conv) or not _may_split(call, call.kind):
            return [call]
        effort = sum(effort_of_groups(each, context) for each in split(call, call.kind, Names())) * CALLS
        return list(split(call, call.kind, names)) if effort < effort_of_groups(call, context) else [call]

    if context.target.prefer == Prefer.TIME:
        replace_calls(program.body, replacement)


def _may_split(call: Call, kind: Conv) -> bool:
    """Are there phases along an axis, few enough, each with results and inputs under its windows?"""
    if not all(view.is_static for view in (*call.ins, *call.outs)) or 0 in (*call.ins[0].shape, *call.outs[0].shape):
        return False
    if {*kind.strides} != {1} or not 1 < math.prod(kind.dilations) <= budgets().phases or min(kind.pads) < 0:
        return False
    if max(kind.pads) > min((static(n) - 1) * d for n, d in zip(call.ins[1].shape[2:], kind.dilations, strict=True)):
        return False  # some windows may lie beside the picture
    sizes = zip(kind.dilations, call.ins[0].shape[2:], call.outs[0].shape[2:], strict=True)
    return all(step <= min(static(size), static(out)) for step, size, out in sizes)


def split(call: Call, kind: Conv, names: Names) -> Iterator[Call]:
    """Convolutions that make the result of a call, phase by phase."""
    axis = next((axis for axis, step in enumerate(kind.dilations) if step != 1), None)
    if axis is None:
        yield call
        return
    parts = []
    for first in range(kind.dilations[axis]):
        phase = _phase(call, kind, axis, first, names)
        assert isinstance(phase.kind, Conv)
        parts.append(phase.outs[0])
        yield from split(phase, phase.kind, names)
    yield Call(Concat(axis + 2, in_turns=True), tuple(parts), call.outs, call.provenance)


def _phase(call: Call, kind: Conv, axis: int, first: int, names: Names) -> Call:
    """Results `first`, `first` + dilation ... along an axis."""
    (x, w), y, step, place = call.ins[:2], call.outs[0], kind.dilations[axis], axis + 2
    count = -(-(static(y.shape[place]) - first) // step)
    start, own = divmod(first - kind.pads[axis], step)  # where the first window begins among the inputs from `own` on
    inputs, end = -(-(static(x.shape[place]) - own) // step), start + count - 1 + static(w.shape[place])
    pads = list(kind.pads)
    pads[axis], pads[axis + len(kind.strides)] = -start, max(end - inputs, 0)
    dilations = (*kind.dilations[:axis], 1, *kind.dilations[axis + 1 :])

    extras = (view.sliced(place, first, count, step) for view in call.ins[kind.fixed :])
    ins = (x.sliced(place, own, min(end, inputs), step), *call.ins[1 : kind.fixed], *extras)
    made = replace(kind, pads=tuple(pads), dilations=dilations)
    return replace(call, kind=made, ins=ins, outs=(like(y, place, count, names),))
