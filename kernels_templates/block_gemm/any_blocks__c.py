"""block_gemm in portable C: a tile of rows x columns in registers, weights unpacked byte by byte where they are used.

The weights of a column lie one behind the other, each block in whole bytes; those that have a sign, and no zero points,
keep it. The products of a block are added up before they are multiplied with its scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f16, f32
from mccompile.base.marked import named
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.blocks.block_weights import (
    cases,
    contents,
    kind_of,
    label,
    raised,
    stored,
    weights_refusal,
)
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, Tile, epilogue_alias, parts, term_c
from mccompile.expr.ir import cast, operand
from mccompile.expr.scalar_c import load_c, math_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, supports_types
from mccompile.kernels.column_tiles import ColumnTiles
from mccompile.kinds.block_gemm import BlockGemm

MOST_ROWS = 4  # of a tile


@dataclass(frozen=True)
class Segment:
    """Blocks of one length: C that opens the loop over them, whole bytes of each, and numbers in the byte after."""

    header: str
    bytes: int
    left: int


@dataclass(frozen=True)
class Block:
    """What the template prints for one part of the result and its size of tile."""

    outer: str  # opens a loop over columns
    inner: str  # over rows
    tile: Tile
    rows: tuple[str, ...]  # C of where each row of a begins
    lines: tuple[str, ...]
    store: str


class AnyBlocks(Kernel):
    kind = BlockGemm

    def cases(self) -> Sequence[Case]:
        found = cases()
        first = found[0]
        half = BlockGemm(16, False, cast(operand(0, f32), f16))
        ins = (TensorType(f16, first.ins[0].shape), *first.ins[1:])
        outs = (TensorType(f16, first.outs[0].shape),)
        return [*found, Case("half", half, ins, outs, constant=first.constant, ranges=first.ranges)]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call) or weights_refusal(call)
        if reason:
            return No(reason)
        fixed = kind_of(call).fixed
        return Needs(alias=epilogue_alias(call, fixed), constant=frozenset(range(1, fixed)), symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.macs) * 1.5 * target.machine.mac, code=600)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        b, blocks = contents(call, constants)
        layout = _Layout(call)
        b ^= layout.raised * layout.signed
        columns, each = len(b), layout.block_bytes * layout.per_byte
        padded = np.zeros((columns, layout.whole, each), np.uint8)
        cut = layout.whole * layout.block
        padded[:, :, : layout.block] = b[:, :cut].reshape(columns, layout.whole, layout.block)
        last = np.zeros((columns, layout.row_bytes * layout.per_byte - layout.whole * each), np.uint8)
        last[:, : b.shape[1] - cut] = b[:, cut:]
        numbers = np.concatenate([padded.reshape(columns, -1), last], axis=1)
        found = [stored(numbers, call.ins[1].buffer.dtype), *blocks]
        return {index: np.ascontiguousarray(array) for index, array in enumerate(found, 1)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {index: f"columns in blocks of {kind_of(call).block}" for index in range(1, kind_of(call).fixed)}

    def column_tiles(self, call: Call) -> Mapping[int, Sequence[ColumnTiles]]:
        layout = _Layout(call)
        columns, room = static(call.ins[1].shape[1]), layout.row_bytes * layout.per_byte
        found = {place: [ColumnTiles(0, columns, 1, layout.groups)] for place in range(2, kind_of(call).fixed)}
        whole = layout.whole < 2 or layout.block % layout.per_byte == 0  # blocks without padding
        return {1: [ColumnTiles(0, columns, 1, room)], **found} if whole else found

    def label(self, call: Call) -> str:
        return label(call)

    def context(self, call: Call) -> Mapping[str, Any]:
        layout = _Layout(call)
        return {"layout": layout, "blocks": layout.parts(self.parameter_names(call)[1]), "a_type": _type(call)}


class _Layout:
    """How weights lie, and C of indices. Counters: i row, j column, group block, byte within it."""

    def __init__(self, call: Call) -> None:
        self.call, self.kind, self.b = call, kind_of(call), call.ins[1].buffer.dtype
        self.depth = static(call.ins[1].shape[0])
        self.block = max(min(self.kind.block, self.depth), 1)
        self.per_byte = 8 // self.b.bits
        self.bits, self.signed = self.b.bits, self.b.kind == "int" and not self.kind.zeros
        self.block_bytes = -(-self.block // self.per_byte)
        self.whole, self.rest = divmod(self.depth, self.block)
        self.row_bytes = self.whole * self.block_bytes + -(-self.rest // self.per_byte)
        self.groups = self.whole + (self.rest > 0)
        self.raised = raised(self.b)
        self.along = call.ins[0].strides[1]

    def segments(self) -> list[Segment]:
        found = []
        if self.whole:
            found.append(Segment(Range("group", self.whole).header, *divmod(self.block, self.per_byte)))
        if self.rest:
            found.append(Segment(f"{{\nconst mcc_index group = {self.whole};", *divmod(self.rest, self.per_byte)))
        return found

    def weight(self, lane: int, step: int) -> str:
        """C of a weight less its zero point, given the byte that it lies in."""
        byte, at = f"byte_{lane}", step * self.bits
        if self.signed:  # one instruction on Arm
            raised = f"(int32_t)((uint32_t){byte} << {32 - self.bits - at})"
            return f"(float){math_c('mcc_shr_i32', raised, str(32 - self.bits))}"
        number = f"(({byte} >> {at}) & {(1 << self.bits) - 1}u)" if self.bits < 8 else byte
        return f"(float)((int){number} - zero_{lane})" if self.kind.zeros else f"(float)(int){number}"

    def factor(self, point: int, byte: str, step: int) -> str:
        """C of a factor from the left operand; `a_<point>` points at the first of the block."""
        at = index_c([self.along * self.per_byte], [byte], self.along * step)
        return term_c(self.call.ins[0].buffer.dtype, f"a_{point}", at, f32)

    def scale(self, lane: int) -> str:
        at = index_c([self.groups, 1], ["j", "group"], self.groups * lane)
        stored = f"{named('scale')}[{at}]"
        return stored if self.call.ins[2].buffer.dtype is f32 else math_c("mcc_normal_f16_to_f32", stored)

    def parts(self, names: Sequence[str]) -> list[Block]:
        rows, columns = self.call.outs[0].shape
        high = min(upper(rows), MOST_ROWS)
        wide = min(static(columns), 4 if high == 1 else 2)
        return [
            self.part(outer, inner, Tile(points, lanes), names)
            for outer, lanes in parts("j", columns, max(wide, 1))
            for inner, points in parts("i", rows, max(high, 1))
        ]

    def part(self, outer: str, inner: str, tile: Tile, names: Sequence[str]) -> Block:
        down, step = self.call.ins[0].strides[0], self.along * self.block
        counters = ["i", "0" if tile.points == 1 else "point", "j", "0" if tile.lanes == 1 else "lane"]

        def at(strides: Sequence[Any]) -> str:
            row, column = strides
            return index_c([row, row, column, column], counters)

        extras = list(zip(names, self.call.ins, strict=True))[self.kind.fixed :]
        loads = [load_c(view.buffer.dtype, name, at(view.strides)) for name, view in extras]
        lines, value = to_statements(self.kind.epilogue or operand(0, f32), ["total", *loads], local="v")
        y = self.call.outs[0]
        store = store_c(y.buffer.dtype, "y", at(y.strides), value)
        return Block(
            outer,
            inner,
            tile,
            tuple(index_c([down, step], ["i", "group"], down * point) for point in range(tile.points)),
            tuple(lines),
            store,
        )


def _type(call: Call) -> str:
    """The C type of an element of the left operand in memory."""
    return call.ins[0].buffer.dtype.storage_c
