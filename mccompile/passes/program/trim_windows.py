"""trim_windows: removes taps at the ends of the windows of convolutions that only meet padding.

A window of 3x3x3 over a single frame multiplies two thirds of its weights with zeros, as does one whose dilation is
larger than the picture. Both, and weights that are never used, are left out where sizes are known.

Invariant: results are the same sums, without terms that are zero. After `narrow_weights`: weights have the type in
which they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.names import Names
from ...kernels.api import viewed
from ...kinds.conv import Conv
from ...program.ir import CONSTANT, Buffer, Call, Program, View
from ...program.replace_calls import replace_calls
from ...program.taken_names import taken_names
from ..api import Context


def trim_windows(program: Program, context: Context) -> None:
    names = taken_names(program)

    def replacement(call: Call) -> list[Call]:
        return [trimmed(call, call.kind, names) if isinstance(call.kind, Conv) else call]

    replace_calls(program.body, replacement)


def trimmed(call: Call, kind: Conv, names: Names) -> Call:
    """The call, without taps that never meet an input."""
    x, w, y = *call.ins[:2], call.outs[0]
    if not (x.is_static and w.is_static and y.is_static):
        return call
    axes = len(kind.strides)
    before, after = list(kind.pads[:axes]), list(kind.pads[axes:])
    kept = []
    for axis, (stride, dilation) in enumerate(zip(kind.strides, kind.dilations, strict=True)):
        size, taps, results = (static(view.shape[axis + 2]) for view in (x, w, y))
        meets = [_meets(tap * dilation - before[axis], stride, results, size) for tap in range(taps)]
        first, last = min(_dead(meets), before[axis] // dilation), min(_dead(meets[::-1]), after[axis] // dilation)
        first, last = (first, last) if any(meets) else (0, 0)
        kept.append(range(first, taps - last))
        before[axis] -= first * dilation
        after[axis] -= last * dilation
    if [len(taps) for taps in kept] == list(w.shape[2:]):
        return call
    ins = (x, _weights(w, kept, names), *call.ins[2:])
    return replace(call, kind=replace(kind, pads=(*before, *after)), ins=ins)


def _meets(start: int, stride: int, results: int, size: int) -> bool:
    """Is one of start, start + stride ... an input?"""
    first = start if start >= 0 else start % stride
    return first < size and first <= start + (results - 1) * stride


def _dead(meets: Sequence[bool]) -> int:
    """Taps in front of the first that meets an input."""
    return meets.index(True) if any(meets) else 0


def _weights(w: View, kept: Sequence[range], names: Names) -> View:
    if w.buffer.role != CONSTANT or w.buffer.constant is None:
        for axis, taps in enumerate(kept, 2):
            w = w.sliced(axis, taps.start, len(taps))
        return w
    array = viewed(w, w.buffer.constant)
    for axis, taps in enumerate(kept, 2):
        array = array.take(taps, axis)
    value = Constant.of(np.ascontiguousarray(array))
    name = names.take(f"{w.buffer.name}_window")
    return Buffer(name, w.buffer.dtype, value.type.static_shape, CONSTANT, value, w.buffer.provenance).whole()
