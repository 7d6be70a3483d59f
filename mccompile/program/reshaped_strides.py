"""Reshapes without a copy: which strides, if any, show the elements of a view in another shape."""

from __future__ import annotations

import itertools

from ..base.dims import Dim, product, static
from ..base.tensor import Shape


def reshaped_strides(old: Shape, old_strides: Shape, shape: Shape) -> Shape | None:
    """Strides that show the same elements in another shape; None where a copy is needed.

    Merges axes into runs that lie evenly in memory, then cuts the runs into the new axes.
    """
    if not all(isinstance(dim, int) for dim in (*old, *shape)):
        return _symbolic(old, old_strides, shape)
    if 0 in old:
        return None
    runs: list[tuple[int, Dim]] = []  # (elements, stride of the innermost), outermost first
    for dim, stride in zip(old, old_strides, strict=True):
        if dim == 1:
            continue
        if runs and runs[-1][1] == stride * dim:
            runs[-1] = (runs[-1][0] * static(dim), stride)
        else:
            runs.append((static(dim), stride))
    strides: list[Dim] = []
    left = 1
    step: Dim = 0
    for dim in reversed(shape):
        if dim == 1:
            strides.append(0)
            continue
        if left == 1:
            left, step = runs.pop()
        if left % static(dim):
            return None
        strides.append(step)
        left, step = left // static(dim), step * dim
    return tuple(reversed(strides))


def _symbolic(old_shape: Shape, old_strides: Shape, shape: Shape) -> Shape | None:
    """The same where sizes are known only at run time: axes of both shapes that surely have as many elements together
    are one run."""
    old = [(dim, stride) for dim, stride in zip(old_shape, old_strides, strict=True) if dim != 1]
    new = [axis for axis, dim in enumerate(shape) if dim != 1]
    strides: list[Dim] = [0] * len(shape)
    while old and new:
        ends = [(i + j, i, j) for i in range(1, len(old) + 1) for j in range(1, len(new) + 1)]
        before, after = [dim for dim, _ in old], [shape[axis] for axis in new]
        alike = [(i, j) for _, i, j in sorted(ends) if product(before[:i]) == product(after[:j])]
        i, j = alike[0] if alike else (0, 0)
        run = old[:i]
        if not run or any(a[1] != b[0] * b[1] for a, b in itertools.pairwise(run)):
            return None
        step = run[-1][1]
        for axis in reversed(new[:j]):
            strides[axis], step = step, step * shape[axis]
        old, new = old[i:], new[j:]
    return None if old or new else tuple(strides)
