"""Loops that add up many floats without losing accuracy: blocks are summed on their own, and so are blocks of blocks.

Invariant: no accumulator takes more than `BLOCK` terms of one loop, so the error grows with the logarithm of the count.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.records import dataclass
from ..expr.code import Code
from ..kinds.reduce import Reduce
from ..program.ir import Call, View
from .loops import Loop, Nest, magnitude, nest

BLOCK = 128


@dataclass(frozen=True)
class Level:
    """One loop of a sum: `counter` from `first` up to `end` by `step`; it adds to accumulator `depth`."""

    counter: str
    first: str
    end: Code
    step: int
    depth: int
    opens: bool  # the accumulator begins at this loop; at its end it is added to the one before

    @property
    def limit(self) -> str:
        return self.end.operand

    @property
    def advance(self) -> str:
        return f"++{self.counter}" if self.step == 1 else f"{self.counter} += {self.step}"


def grouped(
    axes: Sequence[int], views: Sequence[View], order: View, keep_axes: bool = False
) -> tuple[tuple[int, ...], Nest, Nest]:
    """The loops over groups of elements that differ in `axes` only, and those inside of one, in the order in which a
    view has them in memory; first the axes in that order."""
    inside = sorted(axes, key=lambda axis: (-magnitude(order.strides[axis]), axis))
    kept = [axis for axis in range(len(order.shape)) if axis not in axes]
    outer, inner = (
        nest([order.shape[axis] for axis in part], [view.permuted(part) for view in views], keep_axes, prefix)
        for part, prefix in ((kept, "i"), (inside, "r"))
    )
    return (*kept, *inside), outer, inner


def reduced_nests(call: Call) -> tuple[Nest, Nest]:
    """Loops over the results of a reduction, of result and all operands, and over the elements of one, of the operands
    that are combined, in the order in which they lie."""
    kind, x, y = call.of(Reduce), call.ins[0], call.outs[0]
    inside = sorted(kind.axes, key=lambda axis: (-magnitude(x.strides[axis]), axis))
    kept = [axis for axis in range(len(y.shape)) if axis not in kind.axes]
    outer = nest([y.shape[axis] for axis in kept], [view.permuted(kept) for view in (y, *call.ins)])
    full = [view.permuted(inside) for view in call.ins[: kind.operands]]
    return outer, nest([x.shape[axis] for axis in inside], full, prefix="r")


def levels(loops: Sequence[Loop], blocked: bool, passes: int = 0) -> list[Level]:
    """The loops of a sum, outermost first; without `blocked` all share one accumulator. `passes`: the outermost loop
    goes over so many steps of what would be it at a time."""
    count = 1
    for loop in loops:
        count *= loop.extent
    blocked = blocked and count > BLOCK
    found: list[Level] = []

    def add(counter: str, first: str, limit: Code, step: int) -> None:
        depth = len(found) if blocked else 0
        found.append(Level(counter, first, limit, step, depth, opens=blocked and bool(found)))

    for number, loop in enumerate(loops):
        outermost = [passes] if passes and not number else []
        extent = min([loop.extent, *outermost])
        steps = [BLOCK**power for power in range(1, 9) if blocked and BLOCK**power < extent]
        first, limit = "0", Code(loop.limit)
        for step in (*outermost, *reversed(steps)):
            counter = f"{loop.counter}_{step}"
            add(counter, first, limit, step)
            end, whole = f"{counter} + {step}", loop.count % step == 0
            limit = Code(end if whole else f"{end} < {loop.limit} ? {end} : {loop.limit}", loose=not whole)
            first = counter
        add(loop.counter, first, limit, 1)
    return found
