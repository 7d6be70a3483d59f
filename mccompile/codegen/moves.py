"""C text of moving elements that are not computed with: strided copies, and positions read from index operands.

Invariant: elements move as they are stored; a run that lies together on both sides is one memcpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.dims import Dim
from ..base.dtypes import DType
from ..base.marked import including
from ..base.records import dataclass
from ..base.tensor import Shape
from ..expr.dims_c import dim_c, operand_c
from ..expr.scalar_c import load_c, store_c
from ..program.ir import View
from .loops import Loop, index_c, memory_order, nest


@dataclass(frozen=True)
class Copy:
    """Loops, and the statement inside them."""

    loops: tuple[Loop, ...]
    statement: str


def copy(to: View, source: View, target: str, origin: str, start: Dim = 0, prefix: str = "i") -> Copy:
    """Copies all of `source` to the equally shaped `to`, from element `start` of `target` on."""
    order = memory_order(to)
    to, source = to.permuted(order), source.permuted(order)
    loops = nest(source.shape, [to, source], prefix=prefix)
    dtype = to.buffer.dtype
    if loops.loops and all(strides[-1] == 1 for strides in loops.strides) and not dtype.is_packed:
        counters = [loop.counter for loop in loops.loops[:-1]]
        places = [
            place(name, index_c(strides[:-1], counters, first))
            for name, strides, first in ((target, loops.strides[0], start), (origin, loops.strides[1], 0))
        ]
        size = run_bytes_c(dtype, loops.loops[-1].count)
        return Copy(loops.loops[:-1], copied_c(places[0], places[1], size))
    counters = [loop.counter for loop in loops.loops]
    return Copy(loops.loops, move_c(dtype, target, index_c(loops.strides[0], counters, start), origin, loops.index(1)))


def copied_c(target: str, origin: str, size: str) -> str:
    """A C statement that copies so many bytes."""
    return f"{including('string.h')}(void)memcpy({target}, {origin}, {size});"


def run_bytes_c(dtype: DType, count: Dim) -> str:
    """The size of a run of elements."""
    if isinstance(count, int):
        return str(dtype.nbytes(count))
    return f"(size_t)({dim_c(count)}) * {dtype.bits // 8}u"


def move_c(dtype: DType, target: str, to: str, origin: str, at: str) -> str:
    """A statement that moves one element."""
    if dtype.is_packed:
        return store_c(dtype, target, to, load_c(dtype, origin, at))
    return f"{target}[{to}] = {origin}[{at}];"


def place(pointer: str, index: str) -> str:
    return pointer if index == "0" else f"{pointer} + {index}"


def along(view: View, axes: Sequence[int], shape: Shape) -> View:
    """`view` seen from a tensor of `shape`: axis a of the view follows axis `axes[a]` of it, or none where negative."""
    strides: list[Dim] = [0] * len(shape)
    for axis, stride in zip(axes, view.strides, strict=True):
        if axis >= 0:
            strides[axis] = stride
    return replace(view, shape=tuple(shape), strides=tuple(strides))


def position_c(name: str, load: str, dim: Dim, in_range: bool) -> list[str]:
    """Statements that define `name`, the position on an axis of `size` elements that an index operand says. Negative
    indices count from the end; what lies outside is clamped, so no index made at run time reaches foreign memory."""
    if in_range:
        return [f"const mcc_index {name} = (mcc_index)({load});"]
    size, last = operand_c(dim), dim_c(dim - 1)
    return [
        f"const int64_t {name}_raw = {load};",
        f"const int64_t {name}_up = {name}_raw < 0 ? {name}_raw + {size} : {name}_raw;",
        f"MCC_ASSERT({name}_up >= 0 && {name}_up <= {last});",
        f"const mcc_index {name} = {name}_up < 0 ? 0 : {name}_up > {last} ? {last} : (mcc_index){name}_up;",
    ]
