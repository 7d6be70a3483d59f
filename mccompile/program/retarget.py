"""How views over one shape are re-expressed over another, where both shapes look at the same elements of a buffer.

A consumer sees the result of a producer through a view: transposed, reshaped, sliced, broadcast. `Retarget` takes
operands of the consumer to the producer's shape (or both to a finer shape that each of them can be cut into);
`through` takes operands of the producer to the consumer's view. Where strides cannot say it the answer is None.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from ..base.dims import Dim, static, upper
from ..base.records import dataclass
from ..base.tensor import Shape, dense_strides
from .ir import View

Atom = tuple[int, int]  # size and stride in the shared buffer
Change = Callable[[View], View | None]


def same_elements(view: View, out: View) -> bool:
    """Could each be a reordering of the other?"""
    return view.offset == out.offset and view.type.count == out.type.count


def to_shape_of(view: View, out: View) -> Change | None:
    """Takes views over `view.shape` to `out.shape`; `out` is a whole buffer."""
    if view.shape == out.shape and view.strides == out.strides and view.offset == out.offset:
        return lambda other: other
    order = _axis_order(view, out)
    if order is not None:
        inverse = sorted(range(len(order)), key=lambda axis: order[axis])
        return lambda other: other.permuted(inverse)
    if view.is_dense and view.offset == 0 and out.is_dense and view.type.count == out.type.count:
        return lambda other: other.reshaped(out.shape)
    common = Common.of(view, out)
    if common is None:
        return None
    return lambda other: common.first(other).permuted(common.order).reshaped(out.shape)


def through(view: View, out: View, source: View) -> View | None:
    """`source`, an operand over `out.shape`, as seen by somebody who looks at the result `out` through `view`."""
    order = _axis_order(view, out)
    if order is not None:
        return source.permuted(order)
    if view.is_dense and view.offset == 0 and out.is_dense and view.type.count == out.type.count:
        found = source.reshaped(view.shape)
        if found is not None:
            return found
    return _sliced(view, out.shape, source) if out.is_dense else None


@dataclass(frozen=True)
class Common:
    """A shape into which the shapes of two views of the same elements can be cut, in the order of the first."""

    firsts: tuple[tuple[Atom, ...], ...]  # per axis of the first view, outermost first
    seconds: tuple[tuple[Atom, ...], ...]

    @staticmethod
    def of(first: View, second: View) -> Common | None:
        if not same_elements(first, second):
            return None
        sizes = [*first.shape, *second.shape]
        strides = [*first.strides, *second.strides]
        if not all(isinstance(n, int) for n in (*sizes, *strides)) or 0 in sizes:
            return None
        axes = [(static(n), static(s)) for n, s in zip(sizes, strides, strict=True)]
        cuts = sorted({cut for n, s in axes if n > 1 for cut in (s, s * n)})
        parts = [_cut(n, s, cuts) for n, s in axes]
        if any(part is None for part in parts):
            return None
        found = tuple(part for part in parts if part is not None)
        firsts, seconds = found[: len(first.shape)], found[len(first.shape) :]
        flat = [sorted(atom for part in half for atom in part) for half in (firsts, seconds)]
        if flat[0] != flat[1] or len({stride for _, stride in flat[0]}) != len(flat[0]):
            return None
        return Common(firsts, seconds)

    @property
    def order(self) -> list[int]:
        """Where each axis of the second view's cut stands in that of the first."""
        mine = [atom for part in self.firsts for atom in part]
        return [mine.index(atom) for part in self.seconds for atom in part]

    def first(self, view: View) -> View:
        """A view over the first shape, cut."""
        return _cut_view(view, self.firsts)

    def second(self, view: View) -> View:
        """A view over the second shape, cut, its axes in the order of the first."""
        order = self.order
        return _cut_view(view, self.seconds).permuted([order.index(axis) for axis in range(len(order))])


@dataclass(frozen=True)
class Alignment:
    """How two views of the same elements come to look alike: what each is over is brought to one shape."""

    common: Common | None  # both are cut
    order: tuple[int, ...] = ()  # or the axes of the second are put in the order of the first

    @property
    def cuts(self) -> bool:
        return self.common is not None

    @property
    def same(self) -> bool:
        """Does every axis stay what it is?"""
        return self.order == tuple(range(len(self.order))) and not self.cuts

    @property
    def pieces(self) -> list[int]:
        """Into how many axes each of the first is cut."""
        return [len(part) for part in self.common.firsts] if self.common else [1] * len(self.order)

    def first(self, view: View) -> View:
        return self.common.first(view) if self.common else view

    def second(self, view: View) -> View:
        return self.common.second(view) if self.common else view.permuted(self.order)


def aligned(first: View, second: View) -> Alignment | None:
    order = _axis_order(first, second)
    if order is not None:
        return Alignment(None, tuple(order))
    common = Common.of(first, second)
    return None if common is None else Alignment(common)


def _cut(size: int, stride: int, cuts: Sequence[int]) -> tuple[Atom, ...] | None:
    """An axis cut wherever another axis begins or ends; None where it cannot be."""
    if size == 1:
        return ()
    if stride <= 0:
        return None
    inside = [cut for cut in cuts if stride <= cut <= stride * size]
    atoms = []
    for low, high in itertools.pairwise(inside):
        if high % low:
            return None
        atoms.append((high // low, low))
    return tuple(reversed(atoms))


def _cut_view(view: View, parts: Sequence[tuple[Atom, ...]]) -> View:
    shape: list[Dim] = []
    strides: list[Dim] = []
    for stride, part in zip(view.strides, parts, strict=True):
        for position, (size, _) in enumerate(part):
            inner = 1
            for further, _ in part[position + 1 :]:
                inner *= further
            shape.append(size)
            strides.append(stride * inner)
    return View(view.buffer, tuple(shape), tuple(strides), view.offset)


def _axis_order(view: View, out: View) -> list[int] | None:
    """Which axis of `out` each axis of `view` runs along, if one is a transposition of the other."""
    if len(view.shape) != len(out.shape) or view.offset != out.offset:
        return None
    free = list(range(len(out.shape)))
    order: list[int] = []
    for dim, stride in zip(view.shape, view.strides, strict=True):
        fits = [a for a in free if out.shape[a] == dim and (dim == 1 or out.strides[a] == stride)]
        if not fits:
            return None
        order.append(fits[0])
        free.remove(fits[0])
    return order


def _sliced(view: View, shape: Shape, source: View) -> View | None:
    """A slice (with steps) of the producer's result, taken of its operand instead; axes keep their order."""
    if len(view.shape) != len(shape) or not all(
        isinstance(d, int) for d in (*shape, *view.shape, *view.strides, view.offset)
    ):
        return None
    offset: Dim = source.offset
    rest = static(view.offset)
    strides: list[Dim] = []
    for axis, (size, stride) in enumerate(zip(shape, dense_strides(shape), strict=True)):
        unit, step = static(stride), static(view.strides[axis])
        start, rest = divmod(rest, unit) if unit else (0, rest)
        count = static(view.shape[axis])
        steps = step // unit if count > 1 and unit else 0
        if (count > 1 and (not unit or step % unit)) or not 0 <= start + (count - 1) * steps < static(size):
            return None
        offset = offset + source.strides[axis] * start
        strides.append(source.strides[axis] * steps)
    if rest:
        return None
    return View(source.buffer, view.shape, tuple(strides), offset)


def repeats(view: View) -> bool:
    """Does the view show elements of its buffer more than once?"""
    return upper(view.type.count) > upper(view.buffer.type.count)


def fills(out: View) -> bool:
    """Does the view touch every element of its buffer, in whatever order of axes?"""
    return out.offset == 0 and out.type.count == out.buffer.type.count
