"""recast_convolutions: a convolution whose layout the faster kernels do not support is rewritten to a form that they
support, where that takes less time, copies included.

- Channels-last: operand and result are copied, so that kernels find channels side by side.
- By groups: each group is a convolution of its own, over channels of the same operand.
- Volumes as pictures: the depths that a window meets become channels side by side, so windows are flat.
- As a product: where a window is one pixel and pictures lie planar, weights times pixels, which lie side by side.
- As a product of windows: the elements under each window are copied beside each other first. For doubles.
- With the rounding of its result to 16-bit floats in a step of its own: kernels of few targets store these.
- As products of single weights of a window, which are shifted and added up: for few results, which fill no vector.

Invariant: the same sums of the same terms, but for terms that are zero; the epilogue runs once per result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import DType, f32, f64
from ...base.names import Names
from ...base.tensor import Shape, dense_strides
from ...codegen.traffic import has_traffic
from ...expr.ir import Cast, Index, operand, walk
from ...kernels.api import viewed
from ...kinds.concat import Concat
from ...kinds.conv import Conv
from ...kinds.gemm import Gemm
from ...kinds.map import Map
from ...kinds.pad import Pad
from ...kinds.reduce import Reduce
from ...program.ir import CONSTANT, Buffer, Call, Program, View
from ...program.ir import walk as walk_items
from ...program.planar import planar
from ...program.replace_calls import replace_calls
from ...program.taken_names import taken_names
from ...targets.api import Prefer
from ..api import Context
from ..channel_parts import cut
from ..efforts import effort_of

CALLS = 1.05  # several calls take that much longer than one that does the same
MOST_GROUPS = 64
MOST_COPIED = 1 << 21  # elements under windows
FEW = 8  # results of a group
MOST_TERMS = 1 << 19  # that wait to be added up: what caches hold


def recast_convolutions(program: Program, context: Context) -> None:
    calls = (item for item in walk_items(program.body) if isinstance(item, Call))
    names, among = taken_names(program), interleaved(calls)

    def replacement(call: Call) -> list[Call]:
        if not isinstance(call.kind, Conv) or not _is_known(call):
            return [call]
        return _quickest(call, call.outs[0].buffer in among, context, names)

    if _runs(context):
        replace_calls(program.body, replacement)


def _runs(context: Context) -> bool:
    return has_traffic(context.target) and context.target.prefer == Prefer.TIME


def interleaved(calls: Iterable[Call]) -> set[Buffer]:
    """What becomes part of the rows of a picture, where no stride joins its own."""
    joins = (call for call in calls if isinstance(call.kind, Concat) and call.kind.axis > 1)
    return {view.buffer for call in joins for view in call.ins}


def _is_known(call: Call) -> bool:
    views, weights = (*call.ins, *call.outs), call.ins[1].buffer
    known = weights.role == CONSTANT and not weights.dtype.is_packed
    return known and all(view.is_static and 0 not in view.shape for view in views)


def _quickest(call: Call, interleaved: bool, context: Context, names: Names) -> list[Call]:
    chosen, least = [call], effort_of([call], context) / CALLS
    for way in recast(call, names, interleaved):
        takes = effort_of(way, context)
        if takes < least:
            chosen, least = way, takes
    return chosen


def effort_recast(call: Call, interleaved: bool, context: Context) -> float:
    """What a call takes at least in another form, if this pass is to run; else it takes forever."""
    if not _runs(context) or not isinstance(call.kind, Conv) or not _is_known(call):
        return math.inf
    return min((effort_of(way, context) for way in recast(call, Names(), interleaved)), default=math.inf)


def recast(call: Call, names: Names, interleaved: bool = False) -> Iterator[list[Call]]:
    """Calls that do the same, in every way that applies."""
    yield from _recast(call, names, interleaved)
    narrowed = _narrowed_behind(call, names)
    if narrowed:
        wide, cut_off = narrowed
        yield narrowed
        for way in _recast(wide, names, interleaved=False):
            yield [*way, cut_off]


def _narrowed_behind(call: Call, names: Names) -> list[Call]:
    """A convolution whose result is rounded to floats of fewer bits, and that in a step of its own."""
    kind, y = call.of(Conv), call.outs[0]
    if not isinstance(kind.epilogue, Cast) or not y.buffer.dtype.is_narrow_float:
        return []
    sums = kind.epilogue.argument
    made = _new(y, y.shape, "wide", names, sums.dtype)
    rounded = Map(replace(kind.epilogue, argument=operand(0, sums.dtype)))
    return [
        replace(call, kind=replace(kind, epilogue=sums), outs=(made,)),
        Call(rounded, (made,), (y,), call.provenance),
    ]


def _recast(call: Call, names: Names, interleaved: bool) -> Iterator[list[Call]]:
    w = call.ins[1]
    product = None if interleaved else _as_product(call)
    windows = None if interleaved or product is not None else _as_product_of_windows(call, names)
    if product is not None:
        yield [product]
    if windows is not None:
        yield windows
    if product is None:
        yield from _as_sums_of_products(call, names)
    if _lies_apart(call.ins[0]) or _lies_apart(call.outs[0]):
        yield _around(call, names)
    inputs = static(w.shape[1])
    grouped = 1 < call.of(Conv).group <= MOST_GROUPS and inputs > 1
    if grouped:
        yield _around(call, names, split=True)
    if len(call.of(Conv).strides) == 3 and (inputs > 1 or call.of(Conv).group == 1):
        yield _around(call, names, flat=True)
        if grouped:
            yield _around(call, names, flat=True, split=True)


def _lies_apart(view: View) -> bool:
    return view.shape[1] != 1 and view.strides[1] != 1


def _around(call: Call, names: Names, flat: bool = False, split: bool = False) -> list[Call]:
    """With copies of what does not lie channels-last; over pictures, or by groups."""
    before, after = list[Call](), list[Call]()
    x, y = call.ins[0], call.outs[0]
    if _lies_apart(x):
        made = _last(x, x.shape, names)
        before.append(Call(Map(operand(0, x.buffer.dtype)), (x,), (made,), call.provenance))
        x = made
    if _lies_apart(y):
        made = _last(y, y.shape, names)
        after.append(Call(Map(operand(0, y.buffer.dtype)), (made,), (y,), call.provenance))
        y = made
    calls = [replace(call, ins=(x, *call.ins[1:]), outs=(y,))]
    if flat:
        calls = _as_pictures(calls[0], names)
    if split:
        calls[-1:] = _by_group(calls[-1], names)
    return [*before, *calls, *after]


def _as_product(call: Call) -> Call | None:
    """[batch, group, results of one, inputs of one] x [.., inputs of one, pixels]."""
    kind, (x, w), y = call.of(Conv), call.ins[:2], call.outs[0]
    pointwise = all(size == 1 for size in w.shape[2:]) and not any(kind.pads)
    placed = any(isinstance(node, Index) for node in walk(kind.epilogue or operand(0, kind.accumulator)))
    if not pointwise or placed or kind.fixed > 2 or not (_lies_apart(x) and _lies_apart(y)):
        return None
    batch, results, pixels = y.shape[0], static(y.shape[1]) // kind.group, math.prod(map(static, y.shape[2:]))
    for axis, stride in enumerate(kind.strides, 2):
        x = x.sliced(axis, 0, y.shape[axis], stride)

    def matrices(view: View, rows: int) -> View | None:
        return view.reshaped((batch, kind.group, rows, pixels))

    weights = w.reshaped((1, kind.group, results, static(w.shape[1])))
    b, to, extras = matrices(x, static(w.shape[1])), matrices(y, results), [matrices(v, results) for v in call.ins[2:]]
    known = [view for view in extras if view is not None]
    if weights is None or b is None or to is None or len(known) < len(extras):
        return None
    a = weights.broadcast_to((batch, *weights.shape[1:]))
    gemm = Gemm(kind.accumulator, kind.epilogue, rounding=kind.rounding)
    return replace(call, kind=gemm, ins=(a, b, *known), outs=(to,))


def _as_product_of_windows(call: Call, names: Names) -> list[Call] | None:
    kind, (x, w), y = call.of(Conv), call.ins[:2], call.outs[0]
    rank, taps = len(kind.strides), math.prod(map(static, w.shape[2:]))
    copied = static(y.type.count) // static(w.shape[0]) * kind.group * static(w.shape[1]) * taps
    if kind.accumulator is not f64 or kind.fixed > 2 or copied > MOST_COPIED:
        return None
    calls = list[Call]()
    if min(kind.pads) < 0:
        return None
    if any(kind.pads):
        calls.append(_with_zeros(call, names))
        (x,) = calls[0].outs
    inputs, places = static(w.shape[1]), y.shape[2:]
    shape = (y.shape[0], kind.group, inputs, *w.shape[2:], *places)
    batch, channel, *along = map(static, x.strides)
    taken, moved = ([a * b for a, b in zip(along, steps, strict=True)] for steps in (kind.dilations, kind.strides))
    steps = (batch, inputs * channel, channel, *taken, *moved)
    windows = _new(x, shape, "windows", names)
    copy = Map(operand(0, x.buffer.dtype))
    calls.append(Call(copy, (replace(x, shape=shape, strides=steps),), (windows,), call.provenance))
    depth, ones = inputs * taps, (1,) * rank
    b = windows.reshaped((y.shape[0], kind.group * depth, *places))
    weights = w.reshaped((static(w.shape[0]), depth, *ones))
    if b is None or weights is None:
        return None
    flat = replace(kind, strides=ones, dilations=ones, pads=(0,) * 2 * rank)
    product = _as_product(replace(call, kind=flat, ins=(b, weights, *call.ins[2:])))
    return None if product is None else [*calls, product]


def _as_sums_of_products(call: Call, names: Names) -> Iterator[list[Call]]:
    """Of weights that meet an element and all elements: [results x taps, inputs] x [inputs, elements]."""
    kind, (x, w), y, calls = call.of(Conv), call.ins[:2], call.outs[0], list[Call]()
    rank, of_one, depth = len(kind.strides), static(w.shape[0]) // kind.group, static(w.shape[1])
    window, taps = map(static, w.shape[2:]), math.prod(map(static, w.shape[2:]))
    if kind.accumulator is not f32 or kind.fixed > 2 or min(kind.pads) < 0 or of_one > FEW or min(taps, depth) == 1:
        return
    if any(kind.pads):
        calls.append(_with_zeros(call, names))
        (x,) = calls[0].outs
    batch, places = static(x.shape[0]), x.type.static_shape[2:]
    pixels, rows = math.prod(places), of_one * taps
    b = x.reshaped((batch, kind.group, depth, pixels))
    if b is None or batch * kind.group * rows * pixels > MOST_TERMS:
        return
    assert w.buffer.constant is not None
    array = viewed(w, w.buffer.constant).reshape(kind.group, of_one, depth, taps).swapaxes(2, 3)
    a = _constant(w.buffer, array.reshape(1, kind.group, rows, depth), names).broadcast_to(
        (batch, kind.group, rows, depth)
    )
    terms = _new(y, (batch, kind.group, rows, pixels), "terms", names, f32)
    calls.append(Call(Gemm(f32, rounding=kind.rounding), (a, b), (terms,), call.provenance))
    along = dense_strides((*window, *places))
    lines = along[rank:]
    steps = [step + dilation * line for step, dilation, line in zip(along, kind.dilations, lines, strict=False)]
    steps += [stride * line for stride, line in zip(kind.strides, lines, strict=True)]
    shape = (batch, static(w.shape[0]), *w.shape[2:], *y.shape[2:])
    shifted = replace(terms, shape=shape, strides=(static(w.shape[0]) * taps * pixels, taps * pixels, *steps))
    axes = tuple(range(2, 2 + rank))
    out, *extras = (_with_ones(view, rank) for view in (y, *call.ins[2:]))
    total = Reduce(axes, "add", f32, operand(0, f32), kind.epilogue)
    yield [*calls, replace(call, kind=total, ins=(shifted, *extras), outs=(out,))]


def _with_ones(view: View, rank: int) -> View:
    """So many axes of one element in front of the places."""
    shape, strides = view.shape, view.strides
    return replace(
        view, shape=(*shape[:2], *(1,) * rank, *shape[2:]), strides=(*strides[:2], *(0,) * rank, *strides[2:])
    )


def _with_zeros(call: Call, names: Names) -> Call:
    """The operand with what its windows meet around it."""
    x, pads, rank = call.ins[0], call.of(Conv).pads, len(call.of(Conv).strides)
    before, after = (0, 0, *pads[:rank]), (0, 0, *pads[rank:])
    wide = tuple(b + static(dim) + a for b, dim, a in zip(before, x.shape, after, strict=True))
    made = _new(x, wide, "padded", names) if _lies_apart(x) else _last(x, wide, names)
    return Call(Pad(before, after), (x,), (made,), call.provenance)


def _new(like: View, shape: Shape, what: str, names: Names, dtype: DType | None = None) -> View:
    name = names.take(f"{like.buffer.name}_{what}")
    return Buffer(name, dtype or like.buffer.dtype, shape, provenance=like.buffer.provenance).whole()


def _last(like: View, shape: Shape, names: Names) -> View:
    """A new tensor of that shape, channels-last."""
    old, rank = like.buffer, len(shape)
    stored = (shape[0], *shape[2:], shape[1])
    made = Buffer(names.take(f"{old.name}_last"), old.dtype, stored, provenance=old.provenance)
    return made.whole().permuted((0, rank - 1, *range(1, rank - 1)))


def _by_group(call: Call, names: Names) -> list[Call]:
    kind, (x, w), y = call.of(Conv), call.ins[:2], call.outs[0]
    inputs, outputs = static(w.shape[1]), static(w.shape[0]) // kind.group
    found, parts = list[Call](), list[View]()
    for group in range(kind.group):
        first = group * outputs
        ins = [x.sliced(1, group * inputs, inputs), cut(w, 0, first, outputs, names)]
        ins += call.ins[2 : 2 + kind.x_zero]
        ins += [cut(view, 0, first, outputs, names) for view in call.ins[2 + kind.x_zero : kind.fixed]]
        ins += [cut(view, 1, first, outputs, names) for view in call.ins[kind.fixed :]]
        parts.append(_last(y, (y.shape[0], outputs, *y.shape[2:]), names))
        found.append(replace(call, kind=replace(kind, group=1), ins=tuple(ins), outs=(parts[-1],)))
    return [*found, Call(Concat(1), tuple(parts), (y,), call.provenance)]


def _as_pictures(call: Call, names: Names) -> list[Call]:
    """The depths under a window, side by side as channels of their group, and a convolution over pictures."""
    kind, (x, w) = call.of(Conv), call.ins[:2]
    inputs, taps = static(w.shape[1]), static(w.shape[2])
    x, calls = _padded(call, names)
    depths = static(call.outs[0].shape[2])
    parts = [
        x.sliced(1, group * inputs, inputs).sliced(2, tap * kind.dilations[0], depths, kind.strides[0])
        for group in range(kind.group)
        for tap in range(taps)
    ]
    wide = _last(x, (x.shape[0], static(x.shape[1]) * taps, depths, *x.shape[3:]), names)
    calls.append(Call(Concat(1), tuple(parts), (wide,), call.provenance))
    assert w.buffer.constant is not None
    array = viewed(w, w.buffer.constant).swapaxes(1, 2)
    weights = _constant(w.buffer, array.reshape(array.shape[0], taps * inputs, 1, *array.shape[3:]), names)
    pads = (0, *kind.pads[1:3], 0, *kind.pads[4:])
    flat = replace(kind, strides=(1, *kind.strides[1:]), dilations=(1, *kind.dilations[1:]), pads=pads)
    return [*calls, planar(replace(call, kind=flat, ins=(wide, weights, *call.ins[2:])))]


def _padded(call: Call, names: Names) -> tuple[View, list[Call]]:
    """x with what stands around it along the depth, and how it comes to be."""
    kind, x = call.of(Conv), call.ins[0]
    around = kind.pads[0], kind.pads[3]
    if not any(around):
        return x, []
    none = call.ins[2] if kind.x_zero else _constant(x.buffer, np.zeros((), x.buffer.dtype.numpy), names)
    before, after = ([none.broadcast_to((*x.shape[:2], pad, *x.shape[3:]))] if pad else [] for pad in around)
    made = _last(x, (*x.shape[:2], static(x.shape[2]) + sum(around), *x.shape[3:]), names)
    return made, [Call(Concat(2), (*before, x, *after), (made,), call.provenance)]


def _constant(like: Buffer, array: np.ndarray, names: Names) -> View:
    value = Constant.of(np.ascontiguousarray(array))
    name = names.take(f"{like.name}_flat")
    return Buffer(name, like.dtype, value.type.static_shape, CONSTANT, value, like.provenance).whole()
