"""split_phases: a transposed convolution becomes ordinary convolutions where their kernels are faster.

With stride s, results o, o + s, o + 2s ... along an axis meet the same taps at neighbouring inputs: such a phase is a
convolution of stride 1 with every so-manieth tap. The phases along all axes are computed one after the other, each by
the best kernel for convolutions that the target has, and take turns in the result (`Concat.in_turns`), where
bufferize has them written in place. So all that is known about convolutions (SIMD, Winograd's method, int8
dot products, 16-bit floats, threads) serves transposed ones as well, and nothing is multiplied with the zeros
between inputs. Results that no tap reaches, with a stride beyond the window, are what the epilogue makes of nothing.
Small pictures, of which edges are a large part, and few results may be quicker as folded products (folded_products.py).

Planar pictures are copied to lie channels-last around them where kernels for these gain more than the copies take.

Along the last axis, all phases may be one convolution with more channels where results lie channels-last: few channels
do not fill vectors. Windows become as wide as all phases together need then.

A call that has to run row by row, because what it reads and writes does not fit the memory that steps work in, stays:
one that takes turns in its result has no rows.

Invariant: a call is replaced as a whole or stays; the epilogue runs once per result, over the same operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...base.budgets import budgets
from ...base.constant import Constant
from ...base.dims import static
from ...base.names import Names
from ...base.records import dataclass
from ...codegen.traffic import has_traffic
from ...expr.ir import Expr, Operand, literal, operand, rebuild
from ...kernels.api import viewed
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...kinds.conv_transpose import ConvTranspose
from ...kinds.map import Map
from ...program.ir import CONSTANT, Buffer, Call, Program, View
from ...program.replace_calls import replace_calls
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from ..efforts import effort_of
from .folded_products import folded_products
from .lay_channels_last import channels_last, is_planar
from .recast_convolutions import effort_recast, interleaved
from .split_groups import effort_of_groups

SAVED = 0.02  # of the effort, at least, where pictures are copied: costs are estimates
CALLS = 1.05  # several calls take that much longer than one that does the same
JOINED = 1.25  # so much has to be gained where a result cannot be written between others' channels any more


@dataclass(frozen=True)
class Window:
    """Convolved along an axis: `count` results, of which the first meets inputs start, start + dilation ..."""

    count: int
    start: int
    length: int
    dilation: int

    @property
    def end(self) -> int:
        """Of what the first result meets."""
        return self.start + (self.length - 1) * self.dilation + 1

    def inside(self, size: int) -> tuple[int, int, int, int]:
        """Which of so many inputs are met (first and count), and the pads before and after them."""
        first, end = max(self.start, 0), self.end + self.count - 1
        return first, min(end, size) - first, max(-self.start, 0), max(end - size, 0)


@dataclass(frozen=True)
class Phase:
    """Positions `first`, `first + stride` ... along an axis, and the taps that they meet, from the last to the
    first."""

    first: int
    taps: tuple[int, ...]
    window: Window


def split_phases(program: Program, context: Context) -> None:
    names = taken_names(program)

    def replacement(call: Call) -> list[Call]:
        may_split = isinstance(call.kind, ConvTranspose) and _may_split(call, call.kind, context)
        return _quickest(call, call.of(ConvTranspose), context, names) if may_split else [call]

    replace_calls(program.body, replacement)


def _are_few(kind: ConvTranspose) -> bool:
    return math.prod(kind.strides) <= budgets().phases


def _may_split(call: Call, kind: ConvTranspose, context: Context) -> bool:
    near = context.memory.near if context.memory.copied else None
    sizes = [view.type.max_bytes for view in (*call.ins, *call.outs) if view.buffer.role != CONSTANT]
    return _are_few(kind) and (near is None or sum(sizes) <= near)


def as_convolutions(call: Call) -> list[Call]:
    """What a transposed convolution may become, to be judged by; else the call."""
    if not isinstance(call.kind, ConvTranspose) or not _are_few(call.kind):
        return [call]
    return split(call, call.kind, Names(), joined=False, in_place=True) or [call]


def _quickest(call: Call, kind: ConvTranspose, context: Context, names: Names) -> list[Call]:
    """The call, or those that it becomes, between copies of planar pictures that lie channels-last where that is
    quicker; or a product that is folded."""
    least, way = _best(call, kind, context)
    copied = False
    if context.target.prefer != Prefer.RAM:
        *around, turned = _over_copies(call, Names())
        effort, turned_way = _best(turned, kind, context)
        effort += _effort(around, context) if around else math.inf
        if effort < least * (1 - SAVED):
            least, way, copied = effort, turned_way, True
    if has_traffic(context.target) and context.target.prefer == Prefer.TIME:
        folded = min(folded_products(call, names), key=lambda calls: effort_of(calls, context), default=[])
        if folded and effort_of(folded, context) < least * (1 - SAVED):
            return folded
    if not copied:
        return _made(call, kind, way, names)
    before, behind, turned = _over_copies(call, names)
    return [before, *_made(turned, kind, way, names), behind]


def _made(call: Call, kind: ConvTranspose, joined: bool | None, names: Names) -> list[Call]:
    return [call] if joined is None else split(call, kind, names, joined)


def _over_copies(call: Call, names: Names) -> list[Call]:
    """Copies of planar pictures, if both are, and the call over these."""
    x, y = call.ins[0], call.outs[0]
    if not is_planar(x) or not is_planar(y):
        return [call]
    last, made = channels_last(x, names), channels_last(y, names)

    def copy(source: View, to: View) -> Call:
        return Call(Map(operand(0, source.buffer.dtype)), (source,), (to,), call.provenance)

    return [copy(x, last), copy(made, y), replace(call, ins=(last, *call.ins[1:]), outs=(made,))]


def _best(call: Call, kind: ConvTranspose, context: Context) -> tuple[float, bool | None]:
    """What the best way takes: None is the call as it is, else whether phases along the last axis are joined. Where
    memory comes first, results are written in place whatever kernel that takes; elsewhere the better kernel and a copy
    may be quicker."""
    efforts: dict[bool | None, float] = {None: _effort([call], context) / CALLS}
    for joined in (False, True):
        ways = [split(call, kind, Names(), joined, in_place=True)]
        if context.target.prefer != Prefer.RAM:
            ways.append(split(call, kind, Names(), joined))
        efforts[joined] = min(_effort(way, context) for way in ways) * (JOINED if joined else 1)
    best = min(efforts, key=lambda joined: efforts[joined])
    return efforts[best], best


def _effort(calls: Sequence[Call], context: Context) -> float:
    """Of the best kernels for all of them, in the forms that they take later."""
    among = interleaved(calls)
    found = (
        min(effort_of_groups(call, context), effort_recast(call, call.outs[0].buffer in among, context))
        for call in calls
    )
    return sum(found) if calls else math.inf


def split(call: Call, kind: ConvTranspose, names: Names, joined: bool, in_place: bool = False) -> list[Call]:
    """Convolutions that make the result of a call, phase by phase; those along the last axis in one if `joined`. They
    write to the result itself if `in_place`, which no pass before bufferize may leave so. None where that cannot be
    said."""
    w = call.ins[1]
    if w.buffer.role != CONSTANT or not all(v.is_static for v in (*call.ins, *call.outs)) or 0 in call.outs[0].shape:
        return []
    axes = [
        phases(static(size), static(kernel), stride, dilation, pad)
        for size, kernel, stride, dilation, pad in zip(
            kind.space, w.shape[2:], kind.strides, kind.dilations, kind.pads, strict=True
        )
    ]
    for axis, size in zip(axes, call.ins[0].shape[2:], strict=True):
        if any(phase.taps and phase.window.inside(static(size))[1] < 1 for phase in axis):
            return []  # no input lies under some windows
    extras = call.ins[kind.fixed :]
    found = _Split(call, kind, axes, names, joined, in_place, extras)
    if joined:
        beside = [found.beside(view) for view in (call.outs[0], *extras)]
        wide = tuple(view for view in beside if view is not None)
        union = _union([phase.window for phase in axes[-1]])
        bare = any(not phase.taps for axis in axes for phase in axis)
        if bare or kind.group != 1 or len(axes[-1]) == 1 or union is None or len(wide) < len(beside):
            return []
        found = replace(found, extras=wide[1:])
    return list(found.made((), call.outs[0]))


def phases(size: int, kernel: int, stride: int, dilation: int, pad: int) -> list[Phase]:
    """Of results 0 .. size - 1 along an axis, to which input i and tap t give where i * stride + t * dilation - pad is
    their position."""
    found = []
    step = dilation // math.gcd(stride, dilation)
    for first in range(min(stride, size)):
        taps = tuple(tap for tap in range(kernel) if (first + pad - tap * dilation) % stride == 0)[::-1]
        start = (first + pad - taps[0] * dilation) // stride if taps else 0
        found.append(Phase(first, taps, Window(-(-(size - first) // stride), start, len(taps), step)))
    return found


def _union(windows: Sequence[Window]) -> Window | None:
    """What one convolution meets that makes the results of all."""
    first, start, end = windows[0], min(w.start for w in windows), max(w.end for w in windows)
    if any(w.count != first.count or (w.start - start) % first.dilation for w in windows):
        return None
    return replace(first, start=start, length=(end - 1 - start) // first.dilation + 1)


@dataclass(frozen=True)
class _Split:
    call: Call
    kind: ConvTranspose
    axes: list[list[Phase]]
    names: Names
    joined: bool  # phases along the last axis
    in_place: bool
    extras: tuple[View, ...]  # operands of the epilogue, as wide as the convolutions

    def made(self, chosen: tuple[Phase, ...], out: View) -> Iterator[Call]:
        """Calls that make the part of the result in which the phases along the first axes are those chosen."""
        axis, parts = len(chosen) + 2, []
        if len(chosen) == len(self.axes):
            reached = all(phase.taps for phase in chosen)
            yield self.convolution([[phase] for phase in chosen], out) if reached else self.nothing(chosen, out)
            return
        if self.joined and len(chosen) == len(self.axes) - 1:
            yield self.convolution([*([phase] for phase in chosen), self.axes[-1]], out)
            return
        for phase in self.axes[len(chosen)]:
            part = out
            if self.in_place:
                part = out.sliced(axis, phase.first, phase.window.count, len(self.axes[len(chosen)]))
            elif len(self.axes[len(chosen)]) > 1:
                shape = (*out.shape[:axis], phase.window.count, *out.shape[axis + 1 :])
                order = sorted(range(len(shape)), key=lambda a: -static(out.strides[a]))  # as the result lies
                name = self.names.take(f"{self.call.outs[0].buffer.name}_phase")
                made = Buffer(name, out.buffer.dtype, tuple(shape[a] for a in order), provenance=self.call.provenance)
                part = made.whole().permuted([order.index(a) for a in range(len(shape))])
                parts.append(part)
            yield from self.made((*chosen, phase), part)
        if parts:
            yield Call(Concat(axis, in_turns=True), tuple(parts), (out,), self.call.provenance)

    def nothing(self, chosen: tuple[Phase, ...], out: View) -> Call:
        """What the epilogue makes of empty sums."""
        none, extras = literal(0, self.kind.accumulator), list(self.extras)
        for axis, phase in enumerate(chosen, 2):
            step = self.kind.strides[axis - 2]
            extras = [view.sliced(axis, phase.first, phase.window.count, step) for view in extras]

        def without_sums(node: Expr) -> Expr | None:
            if not isinstance(node, Operand):
                return None
            return operand(node.index - 1, node.dtype) if node.index else none

        expr = rebuild(self.kind.epilogue or operand(0, self.kind.accumulator), without_sums)
        return Call(Map(expr), tuple(extras), (out,), self.call.provenance)

    def convolution(self, chosen: list[list[Phase]], out: View) -> Call:
        """One for these phases along each axis."""
        kind, (x, w) = self.kind, self.call.ins[:2]
        extras = list(self.extras)
        windows, before, after = [], [], []
        for axis, several in enumerate(chosen, 2):
            window = _union([phase.window for phase in several])
            assert window is not None
            first, count, pad_before, pad_after = window.inside(static(x.shape[axis]))
            x = x.sliced(axis, first, count)
            windows.append(window)
            before.append(pad_before)
            after.append(pad_after)
            if len(several) == 1:
                step = kind.strides[axis - 2]
                extras = [view.sliced(axis, several[0].first, window.count, step) for view in extras]
        wide = self.beside(out) if self.joined else out
        assert wide is not None
        steps = tuple(window.dilation for window in windows)
        conv = Conv(
            (1,) * len(steps), steps, (*before, *after), kind.group, kind.accumulator, kind.epilogue, kind.x_zero
        )
        ins = (x, self.weights(w, chosen, windows), *self.call.ins[2 : kind.fixed], *extras)
        return Call(conv, ins, (wide,), self.call.provenance)

    def beside(self, view: View) -> View | None:
        """A view of the result's width with phases of the last axis as channels beside each other; constants are
        repeated for it."""
        count, channels, across, along = len(self.axes[-1]), static(view.shape[1]), view.strides[1], view.strides[-1]
        shape = (view.shape[0], count * channels, *view.shape[2:-1], self.axes[-1][0].window.count)
        if channels == 1 or along == across * channels:
            step = along if channels == 1 else across
            return replace(view, shape=shape, strides=(view.strides[0], step, *view.strides[2:-1], along * count))
        constant = view.buffer.constant
        if constant is None or any(view.strides[a] for a in range(len(shape)) if a != 1):
            return None
        numbers = np.tile(viewed(view, constant)[0].reshape(channels, -1)[:, 0], count)
        return self.constant(view.buffer, numbers.reshape(-1, *(1 for _ in shape[2:]))).broadcast_to(shape)

    def weights(self, w: View, chosen: list[list[Phase]], windows: list[Window]) -> View:
        """[C, O / group, taps] as a convolution has them: [O, C / group, taps]."""
        assert w.buffer.constant is not None
        array = viewed(w, w.buffer.constant)
        for axis, (several, window) in enumerate(zip(chosen, windows, strict=True), 2):
            parts = []
            for phase in several:
                before = (phase.window.start - window.start) // window.dilation
                around = [(0, 0)] * array.ndim
                around[axis] = (before, window.length - before - len(phase.taps))
                parts.append(np.pad(array.take(phase.taps, axis), around))
            array = np.concatenate(parts, 1)
        group, inputs, outputs = self.kind.group, array.shape[0], array.shape[1]
        array = array.reshape(group, inputs // group, *array.shape[1:]).swapaxes(1, 2)
        return self.constant(w.buffer, array.reshape(group * outputs, inputs // group, *array.shape[3:]))

    def constant(self, like: Buffer, array: np.ndarray) -> View:
        value = Constant.of(np.ascontiguousarray(array))
        name, shape = self.names.take(f"{like.name}_phase"), value.type.static_shape
        return Buffer(name, like.dtype, shape, CONSTANT, value, like.provenance).whole()
