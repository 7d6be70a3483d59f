"""Views of one buffer re-expressed over another one that holds the same elements elsewhere: between other elements,
or in another order.

`Move(old, new)` says where the elements went: old covers its buffer, in any order of axes, and element by element new
is its new place. Invariant: a relocated view shows the same elements in the same shape. Where strides cannot say that
the answer is None.
"""

from __future__ import annotations

import itertools

from ..base.dims import Dim, static
from ..base.records import dataclass, replace
from .ir import View


@dataclass(frozen=True)
class _Run:
    """Axes that lie evenly one in the other, before and after: `count` steps of `old`, which became steps of `new`."""

    count: int
    old: int
    new: int


class Move:
    def __init__(self, old: View, new: View) -> None:
        self.old, self.new = old, new
        axes = sorted(range(len(old.shape)), key=lambda a: -static(old.strides[a]))
        runs: list[_Run] = []
        for axis in axes:
            count, before, after = static(old.shape[axis]), static(old.strides[axis]), static(new.strides[axis])
            if count == 1:
                continue
            if runs and runs[-1].new == after * count:
                runs[-1] = _Run(runs[-1].count * count, before, after)
            else:
                runs.append(_Run(count, before, after))
        self.runs = runs

    def apply(self, view: View) -> View | None:
        """Where a view of the old buffer lies now."""
        if 0 in view.shape or not view.is_static or not isinstance(view.offset, int):
            return None
        rest = view.offset
        offset: Dim = self.new.offset
        lows: list[int] = []  # per run, the coordinates that the view touches
        for run in self.runs:
            at, rest = divmod(rest, run.old)
            lows.append(at)
            offset = offset + at * run.new
        if rest or any(at >= run.count for at, run in zip(lows, self.runs, strict=True)):
            return None
        highs = list(lows)
        strides: list[Dim] = []
        for dim, stride in zip(view.shape, view.strides, strict=True):
            step = static(stride)
            if dim == 1 or step == 0:
                strides.append(0)
                continue
            number = next((n for n, run in enumerate(self.runs) if run.old <= abs(step)), None)
            if number is None or step % self.runs[number].old:
                return None
            steps = step // self.runs[number].old
            reach = steps * (static(dim) - 1)
            lows[number], highs[number] = lows[number] + min(reach, 0), highs[number] + max(reach, 0)
            strides.append(steps * self.runs[number].new)
        if any(low < 0 or high >= run.count for low, high, run in zip(lows, highs, self.runs, strict=True)):
            return None
        return replace(view, buffer=self.new.buffer, strides=tuple(strides), offset=offset)


def covers_in_any_order(view: View) -> bool:
    """Does the view show each element of its buffer once, with axes in any order and none backwards?"""
    if not view.is_static or view.offset != 0 or 0 in view.shape:
        return False
    count = 1
    for stride, dim in sorted((static(s), static(d)) for d, s in zip(view.shape, view.strides, strict=True) if d != 1):
        if stride != count:
            return False
        count *= dim
    return count == view.buffer.type.count


def covers(view: View) -> bool:
    """Does the view show the whole buffer, in whatever order?"""
    return view.covers_buffer or covers_in_any_order(view)


def disjoint(a: View, b: View) -> bool:
    """Surely no common element? Told for views that are boxes of one grid: equal strides, some axis on which they do
    not meet."""
    if a.buffer is not b.buffer or len(a.shape) != len(b.shape) or 0 in (*a.shape, *b.shape):
        return False
    dims = [d for view in (a, b) for d in (*view.shape, *view.strides, view.offset)]
    if not all(isinstance(d, int) for d in dims):
        return False
    grid = sorted(
        {static(s) for view in (a, b) for dim, s in zip(view.shape, view.strides, strict=True) if dim != 1},
        reverse=True,
    )
    if not grid or grid[-1] < 1 or any(big % small for big, small in itertools.pairwise(grid)):
        return False
    boxes = []
    for view in (a, b):
        box = []
        rest = static(view.offset)
        for step in [*grid, 1] if grid[-1] != 1 else grid:
            at, rest = divmod(rest, step)
            counts = [static(d) for d, s in zip(view.shape, view.strides, strict=True) if s == step and d != 1]
            if len(counts) > 1:
                return False
            box.append((at, at + (counts[0] if counts else 1)))
        boxes.append(box)
    outer = [*grid, 1] if grid[-1] != 1 else grid
    for box in boxes:  # a box that runs over the edge of the next larger step is not one of this grid
        for number in range(1, len(outer)):
            if box[number][1] > outer[number - 1] // outer[number]:
                return False
    return any(x[1] <= y[0] or y[1] <= x[0] for x, y in zip(*boxes, strict=True))
