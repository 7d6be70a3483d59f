"""Loop nests over strided views, for portable kernels: which loops are left, and C text for the index of an element.

Invariant: merging and dropping axes never changes the order in which elements are visited.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dims import Dim, bounds, upper
from ..base.marked import marked_name, summed
from ..base.records import dataclass
from ..expr.code import Code
from ..expr.dims_c import offset_c, size_c, stride_c
from ..program.ir import View


@dataclass(frozen=True)
class Loop:
    """`extent` is how often it runs, at most that where `size` is known only at run time; `limit` is the C of it."""

    counter: str
    extent: int
    size: Dim = -1

    @property
    def limit(self) -> str:
        return size_c(self.count)

    @property
    def count(self) -> Dim:
        return self.extent if isinstance(self.size, int) else self.size


@dataclass(frozen=True)
class Nest:
    loops: tuple[Loop, ...]  # outermost first
    strides: tuple[tuple[Dim, ...], ...]  # per operand, per loop
    axes: tuple[str, ...]  # C text of the index along each original axis (needs keep_axes for merged ones)

    def index(self, operand: int) -> str:
        return index_c(self.strides[operand], [loop.counter for loop in self.loops])

    def side_by_side(self, operand: int, least: int) -> int | None:
        """Which loop, of at least so many turns, an operand's elements lie side by side along."""
        loops = zip(self.loops, self.strides[operand], strict=True)
        return next((n for n, (loop, step) in enumerate(loops) if step == 1 and loop.extent >= least), None)


def nest(shape: Sequence[Dim], views: Sequence[View], keep_axes: bool = False, prefix: str = "i") -> Nest:
    """The loops that visit `shape` in row-major order; neighbouring axes are merged where every view allows it. With
    `keep_axes` nothing is merged, so the position along each axis stays known."""
    extents: list[Dim] = []
    strides: list[list[Dim]] = [[] for _ in views]
    origin: list[int] = []
    for axis, extent in enumerate(shape):
        steps = [view.strides[axis] for view in views]
        if extent == 1:
            continue
        fits = extents and not keep_axes
        if fits and all(have[-1] == step * extent for have, step in zip(strides, steps, strict=True)):
            extents[-1] = extents[-1] * extent
            for have, step in zip(strides, steps, strict=True):
                have[-1] = step
        else:
            extents.append(extent)
            origin.append(axis)
            for have, step in zip(strides, steps, strict=True):
                have.append(step)
    loops = tuple(Loop(f"{prefix}{number}", upper(extent), extent) for number, extent in enumerate(extents))
    axes = ["0"] * len(shape)
    for loop, axis in zip(loops, origin, strict=True):
        axes[axis] = loop.counter
    return Nest(loops, tuple(tuple(s) for s in strides), tuple(axes))


def beside(axis: int, out: View, x: View) -> Nest:
    """The loops over all other axes of a result and an operand."""
    kept = [other for other in range(len(out.shape)) if other != axis]
    return nest([out.shape[other] for other in kept], [out.permuted(kept), x.permuted(kept)])


def memory_order(view: View) -> tuple[int, ...]:
    """The axes of a view, so that elements are visited in the order in which they lie, as far as strides are known.

    Kernels whose elements do not depend on each other permute shape and views by it: channels-last stays fast."""
    return tuple(sorted(range(len(view.shape)), key=lambda axis: -abs(upper(view.strides[axis]))))


def size_name(dim: Dim) -> str:
    """A size as part of a function's name."""
    return str(dim) if isinstance(dim, int) else "n"


def magnitude(stride: Dim) -> int:
    """How far apart neighbours may lie, for choosing which loop goes inside."""
    return max(abs(bound) for bound in bounds(stride))


def index_c(strides: Sequence[Dim], counters: Sequence[str | Code], constant: Dim = 0) -> str:
    """`i0 * 36 + i1`: an element index as C text. Counters may be any C; texts need no brackets, and
    names are marked."""
    parts = []
    for stride, counter in zip(strides, counters, strict=True):
        code = counter if isinstance(counter, Code) else Code(marked_name(counter))
        if stride == 0 or code.text == "0":
            continue
        parts.append(code.text if stride == 1 else f"{code.operand} * {stride_c(stride)}")
    if constant != 0 or not parts:
        parts.append(offset_c(constant))
    return summed(parts)
