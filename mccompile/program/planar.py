"""Windows of other than two spatial dimensions as windows of two: kernels are written for pictures.

A signal is a picture of one row, or of one column. A window of three dimensions that is 1 wide along one of them looks
at pictures side by side, which are a batch, or at pictures whose rows lie one after the other, which are one picture.

Invariant: the same elements of the same buffers are read and written, and each result is made of the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..base.dims import Dim
from ..base.tensor import Shape
from ..kinds.api import Kind
from ..kinds.argmax_pool import ArgmaxPool
from ..kinds.conv import Conv
from ..kinds.conv_transpose import ConvTranspose
from ..kinds.pool import Pool
from ..kinds.resize import Resize
from .ir import Call, View

BATCH, ROWS, COLUMNS = 0, 2, 3  # axes of a picture
Windows = (Conv, ConvTranspose, Pool, ArgmaxPool)


def planar(call: Call) -> Call:
    """The call, over pictures where it can be said so."""
    if not isinstance(call.kind, (*Windows, Resize)):
        return call
    rank = len(call.outs[0].shape)
    if rank == ROWS + 1:
        return _with(call, _widened(call.kind), rank, _as_row)
    return _flattened(call, call.kind) if rank > COLUMNS + 1 and isinstance(call.kind, Conv | Pool) else call


def turned(call: Call) -> Call | None:
    """A call over pictures of one row, as one over pictures of one column: what runs row by row goes along it then.
    None where it is no such call."""
    kind = call.kind
    if not isinstance(kind, (*Windows, Resize)):
        return None
    pictures = (call.ins[0], call.outs[0])
    if any(len(view.shape) != COLUMNS + 1 for view in pictures):
        return None
    if any(view.shape[ROWS] != 1 for view in pictures) or pictures[0].shape[COLUMNS] == 1:
        return None
    order = (0, 1, COLUMNS, ROWS)
    if isinstance(kind, Resize):
        if kind.axes != (COLUMNS,):
            return None
        made: Kind = replace(kind, axes=(ROWS,))
    else:
        made = _changed(kind, lambda sizes: sizes[::-1])
    return _with(call, made, COLUMNS + 1, lambda view: view.permuted(order))


def _with(call: Call, kind: Kind, rank: int, change: Callable[[View], View]) -> Call:
    """Operands and results of that rank are changed; zero points and tables are not."""

    def views(old: tuple[View, ...]) -> tuple[View, ...]:
        return tuple(change(view) if len(view.shape) == rank else view for view in old)

    return replace(call, kind=kind, ins=views(call.ins), outs=views(call.outs))


# -- one dimension


def _as_row(view: View) -> View:
    (batch, channels, size), (far, across, along) = view.shape, view.strides
    return replace(view, shape=(batch, channels, 1, size), strides=(far, across, along * size, along))


def _widened(kind: Kind) -> Kind:
    if isinstance(kind, Resize):
        return replace(kind, axes=tuple(axis + (axis >= ROWS) for axis in kind.axes))
    return _changed(kind, lambda sizes: sizes, front=True)


def _changed(kind: Kind, order: Callable[[Shape], Shape], front: bool = False) -> Kind:
    """The kind with its sizes per axis in another order, or with an axis in front along which nothing slides."""

    def per_axis(sizes: Shape, neutral: int) -> Shape:
        return order((neutral, *sizes) if front else sizes)

    assert isinstance(kind, Windows)
    rank = len(kind.strides)
    halves = [per_axis(kind.pads[at : at + rank], 0) for at in range(0, len(kind.pads), rank)]
    fields: dict[str, Any] = {
        "strides": per_axis(kind.strides, 1),
        "dilations": per_axis(kind.dilations, 1),
        "pads": tuple(pad for half in halves for pad in half),
    }
    fields |= {name: per_axis(getattr(kind, name), 1) for name in ("kernel", "space") if hasattr(kind, name)}
    made: Kind = replace(kind, **fields)
    return made


# -- three and more


def _flattened(call: Call, kind: Conv | Pool) -> Call:
    """With fewer axes, again and again until two are left or nothing more can be said."""
    for axis in range(len(kind.strides)):
        if not _stands_still(call, kind, axis):
            continue
        for into in _others(call, axis):
            fewer = _merged(call, kind, axis, into)
            if fewer is not None:
                return planar(fewer)
    return call


def _others(call: Call, axis: int) -> Iterator[int]:
    """Axes of views that one of space may become part of: first neighbours whose windows stand still as well."""
    assert isinstance(call.kind, Conv | Pool)
    neighbours = (n for n in (axis - 1, axis + 1) if 0 <= n < len(call.kind.strides))
    yield from (n + ROWS for n in neighbours if _stands_still(call, call.kind, n))
    yield BATCH


def _stands_still(call: Call, kind: Conv | Pool, axis: int) -> bool:
    """Is a result made of the elements at its own place along an axis?"""
    rank = len(kind.strides)
    width: Dim = kind.kernel[axis] if isinstance(kind, Pool) else call.ins[1].shape[axis + ROWS]
    return width == kind.strides[axis] == 1 and kind.pads[axis] == kind.pads[axis + rank] == 0


def _merged(call: Call, kind: Conv | Pool, axis: int, into: int) -> Call | None:
    """The axis and another one as one; None where strides cannot say it."""
    place, rank, weights = axis + ROWS, len(call.outs[0].shape), 1 if isinstance(kind, Conv) else None

    def dropped(sizes: tuple[int, ...]) -> tuple[int, ...]:
        return sizes[:axis] + sizes[axis + 1 :]

    def change(number: int, view: View) -> View | None:
        if len(view.shape) != rank:
            return view
        return _without(view, place) if number == weights else _joined(view, place, into)

    views = [change(number, view) for number, view in enumerate((*call.ins, *call.outs))]
    made = tuple(view for view in views if view is not None)
    if len(made) < len(views):
        return None
    half = len(kind.strides)
    sizes: dict[str, Any] = {
        "strides": dropped(kind.strides),
        "dilations": dropped(kind.dilations),
        "pads": dropped(kind.pads[:half]) + dropped(kind.pads[half:]),
    }
    out = made[len(call.ins)]
    if isinstance(kind, Pool):
        sizes |= {"kernel": dropped(kind.kernel), "space": out.shape[ROWS:]}
    count = len(call.ins)
    return replace(call, kind=replace(kind, **sizes), ins=made[:count], outs=made[count:])


def _without(view: View, axis: int) -> View:
    return replace(
        view,
        shape=view.shape[:axis] + view.shape[axis + 1 :],
        strides=view.strides[:axis] + view.strides[axis + 1 :],
    )


def _joined(view: View, axis: int, into: int) -> View | None:
    """Both axes as one, in place of `into`, the earlier of them outside."""
    outer, inner = sorted((axis, into))
    (far, count), (near, size) = ((view.strides[a], view.shape[a]) for a in (outer, inner))
    if count == 1:
        step = near
    elif size == 1:
        step = far
    elif far == near * size:
        step = near
    else:
        return None
    shape, strides = list(view.shape), list(view.strides)
    shape[into], strides[into] = count * size, step
    return _without(replace(view, shape=tuple(shape), strides=tuple(strides)), axis)
