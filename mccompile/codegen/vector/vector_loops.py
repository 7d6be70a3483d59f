"""Loops over strided views in vectors: which axis the vectors run along, and loads of operands of any layout along it.

Invariant: along the innermost loop the result has stride 1 and every operand stride 1 or 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dims import Dim, static
from ...base.dtypes import SHORT, DType, bool_, f32, f64, u8
from ...base.marked import marked_name, named
from ...base.records import dataclass
from ...expr.vector_c import NARROW, mask_of
from ...kernels.work import Units
from ...program.ir import Call, View
from ...targets.machine import Machine
from ..loops import Nest, nest
from ..tiles import Range

SHORTEST = 4  # rows of fewer elements are left to scalar code
BLOCK = 8  # neighbours of a row that are read while their lines are in the cache


@dataclass(frozen=True)
class Chunk:
    """A loop over whole vectors of a row, or the vector that is left over."""

    header: str
    lanes: int  # that count

    def load(self, of: int, pointer: str, index: str, stride: int, stored: DType = f32, dtype: DType = f32) -> str:
        """C of a vector of so many floats of `dtype`, from numbers that are stored in another type, maybe; of truth
        values, a mask."""
        if stored is bool_:
            return f"mcc_load_mask_{mask_of(dtype)}x{of}({pointer} + {index}, {stride}, {self.lanes})"
        if not stride:
            return repeated(f"{dtype}x{of}", f"{pointer}[{index}]", stored, dtype)
        return self.moved("load", of, f"{pointer} + {index}", stride, f"{narrow(stored, dtype)}{dtype}")

    def store(
        self,
        of: int,
        pointer: str,
        index: str,
        value: str,
        stride: int = 1,
        stored: DType = f32,
        dtype: DType = f32,
    ) -> str:
        return self.moved("store", of, f"{pointer} + {index}", stride, f"{narrow(stored, dtype)}{dtype}", value) + ";"

    def moved(self, verb: str, of: int, place: str, stride: int, types: str, *value: str) -> str:
        """A call that moves a whole vector, the lanes that count, or elements that lie apart."""
        if stride != 1:
            way, counts = "apart_", [stride, self.lanes]
        else:
            way, counts = ("part_", [self.lanes]) if self.lanes < of else ("", [])
        return f"mcc_{verb}_{way}{types}x{of}({', '.join((place, *map(str, counts), *value))})"


def narrow(stored: DType, dtype: DType = f32) -> str:
    """In the names of functions that load and store numbers of a type in another one. Truth values are bytes."""
    return "" if stored is dtype else f"{u8 if stored is bool_ else stored}_"


def repeated(of: str, number: str, stored: DType, dtype: DType = f32) -> str:
    """C of a vector with a number in every lane."""
    cast = f"({dtype.compute_c}){number}" if stored.is_integer else f"mcc_{stored}_to_{dtype}({number})"
    return f"mcc_set_{of}({number if stored is dtype else cast})"


def as_floats(lanes: int, dtype: DType) -> int:
    """The floats of 32 bits in as many bytes: what costs are known of."""
    return lanes * dtype.bits // f32.bits if dtype is f64 else lanes


def stored_refusal(views: Sequence[View], steps: Sequence[Dim], dtype: DType = f32) -> str:
    """Why vectors of floats cannot be loaded and stored as what views have, so far apart along a row, or nothing."""
    if dtype is f64:
        return "" if all(view.buffer.dtype is f64 for view in views) else "only for doubles"
    for view, step in zip(views, steps, strict=True):
        if view.buffer.dtype in SHORT and step not in (0, 1):
            return f"an operand of {view.buffer.dtype} is not contiguous"
        if view.buffer.dtype not in (f32, *NARROW, *SHORT):
            return "only for floats of at most 32 bits, and integers of at most 16"
    return ""


def ordered_nest(views: Sequence[View], prefix: str = "i") -> Nest:
    """Loops over views of one shape in the order in which the first of them, the result, lies in memory."""
    first = views[0]
    strides = [static(stride) for stride in first.strides]
    order = sorted(range(len(strides)), key=lambda axis: (first.shape[axis] != 1, -abs(strides[axis])))
    return nest([static(first.shape[axis]) for axis in order], [view.permuted(order) for view in views], prefix=prefix)


def vector_nest(views: Sequence[View], prefix: str = "i") -> Nest | str:
    """The same, or why vectors along the innermost loop cannot do it."""
    loops = ordered_nest(views, prefix)
    if not loops.loops or loops.loops[-1].extent < SHORTEST:
        return "rows are too short for vectors"
    if loops.strides[0][-1] != 1 or any(steps[-1] not in (0, 1) for steps in loops.strides):
        return "elements are not contiguous"
    return loops


def far_between(loops: Nest, machine: Machine) -> bool:
    """Is a row of some operand beside the one before it, but read so much later, behind all of the loop between them,
    that the first-level cache has lost their line?"""
    if len(loops.loops) < 3:
        return False
    lost = loops.loops[-2].extent >= machine.sets * machine.ways // 2
    near = machine.line // 4
    return lost and any(0 < abs(static(steps[-3])) <= near < abs(static(steps[-2])) for steps in loops.strides)


def in_blocks(around: Sequence[Range]) -> list[Range]:
    """Loops around rows, of which the last one goes along a block of the one before it."""
    *outer, blocked, inner = around
    end, most = f"{named('block')} + {BLOCK}", marked_name(blocked.limit)
    if blocked.end or blocked.extent % BLOCK:
        end = f"({end} < {most} ? {end} : {most})"
    blocks = Range("block", blocked.extent, blocked.begin, blocked.end, step=BLOCK)
    return [*outer, blocks, inner, Range(blocked.counter, BLOCK, named("block"), end)]


def elementwise_units(call: Call) -> Sequence[int]:
    """What the workers of a call share: rows, or vectors of the only row."""
    loops = vector_nest([*call.outs, *call.ins])
    assert isinstance(loops, Nest)
    if len(loops.loops) > 1:
        return (1,) * loops.loops[0].extent
    return (1,) * -(-loops.loops[0].extent // call.blocks[0])


def channels_last_refusal(call: Call, extras: Sequence[View], result: bool = True) -> str:
    """Why vectors of channels cannot be taken of operands of the epilogue, or, unless `result` is False, of x and the
    result; or nothing."""
    x, y = call.ins[0], call.outs[0]
    if result and any(v.strides[1] != 1 and v.shape[1] != 1 for v in (x, y)):
        return "operand or result does not lie channels-last"
    if any(static(v.strides[1]) not in (0, 1) and v.shape[1] != 1 for v in extras):
        return "an operand of the epilogue does not lie channels-last"
    return "the result is empty" if 0 in (*x.shape[1:], *y.shape[1:]) else ""


def chunks(counter: str, extent: int, lanes: int, units: Units | None = None) -> list[Chunk]:
    """A row in vectors; with units, those of a piece of the work."""
    whole = extent // lanes * lanes
    found = []
    if units is not None:
        parts = ((0, whole // lanes, lanes), (whole, 1, extent - whole))
        return [Chunk(units.loop(counter, first, lanes, n, 1), many) for first, n, many in parts if n and many]
    if whole:
        found.append(Chunk(f"for (mcc_index {counter} = 0; {counter} < {whole}; {counter} += {lanes}) {{", lanes))
    if extent > whole:
        found.append(Chunk(f"{{\nconst mcc_index {counter} = {whole};", extent - whole))
    return found
