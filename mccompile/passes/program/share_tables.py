"""share_tables: a table that is read by a Gather and by a product, such as embedding and head of a language model, is
stored once in the blob: packed for the product's kernel. Gather reads its rows from there, which are columns of the
product's matrix, tile by tile (kernels/column_tiles.py).

That both are one table is a fact about weights where these are constants of their own. After choose_kernels; a kernel
that select_kernels does not choose after all leaves the table twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import DType, bf16, f16, f32, i32
from ...base.names import Names
from ...base.tensor import Shape
from ...expr.ir import Expr, apply, cast, literal, operand
from ...kernels.api import viewed
from ...kernels.column_tiles import ColumnTiles
from ...kinds.block_gemm import BlockGemm
from ...kinds.gather import Gather
from ...kinds.gemm import Gemm
from ...kinds.map import Map
from ...program.ir import CONSTANT, Buffer, Call, Item, Program, View, bodies
from ...program.taken_names import taken_names
from ..api import Context

FEWEST = 1024  # bytes of a table, which are worth the code


def share_tables(program: Program, context: Context) -> None:
    gathers = [call for call in program.calls() if _takes_rows(call)]
    if not gathers:
        return
    names, made = taken_names(program), dict[int, list[Call]]()
    packed = [found for call in program.calls() for found in _packed(call, context, names)]
    for gather in gathers:
        for matrix, buffer, tiles in packed:
            lower = _difference(gather.ins[0], matrix, buffer, tiles)
            if lower is not None and _is_known(gather.ins[0].buffer, matrix.buffer, program, context):
                made[id(gather)] = _Rows(gather, buffer, tiles, lower, names).calls
                break
    _put(program.body, made)


def _put(body: list[Item], made: dict[int, list[Call]]) -> None:
    for item in body:
        for inner in bodies(item):
            _put(inner, made)
    body[:] = [each for item in body for each in made.get(id(item), [item])]


def _takes_rows(call: Call) -> bool:
    """Whole rows of a constant matrix, whose elements lie along the last axis of the result?"""
    if not isinstance(call.kind, Gather) or len(call.ins) != 2:
        return False
    x, index, y = call.ins[0], call.ins[1], call.outs[0]
    is_table = x.buffer.role == CONSTANT and len(x.shape) == 2 and x.covers_buffer and x.buffer.max_bytes >= FEWEST
    along = (-1, len(y.shape) - 1)
    return is_table and call.kind.axes == along and index.strides[-1] == 0 and y.shape[-1] == x.shape[1]


def _packed(call: Call, context: Context, names: Names) -> Iterator[tuple[View, Buffer, Sequence[ColumnTiles]]]:
    """Matrices of a product: as the model has them, as its kernel packs them, and how they lie there."""
    if not isinstance(call.kind, Gemm | BlockGemm):
        return
    candidates = context.registry.choose(call, context.target).candidates
    best = next((c for c in candidates if c.kernel.id == call.kernel), candidates[0] if candidates else None)
    if best is None:
        return
    constants = {n: view.buffer.constant for n, view in enumerate(call.ins) if view.buffer.constant is not None}
    chosen = replace(call, blocks=best.needs.blocks)
    tiles = best.kernel.column_tiles(chosen)
    if not tiles:
        return
    contents, packings = best.kernel.pack(chosen, constants), best.kernel.packing(chosen)
    for place, found in tiles.items():
        matrix = call.ins[place]
        constant = Constant.of(contents[place])
        name = names.take(f"{matrix.buffer.name}_rows")
        buffer = Buffer(name, constant.type.dtype, constant.type.shape, CONSTANT, constant, matrix.buffer.provenance)
        buffer.packing, buffer.packed_of = packings[place], matrix.buffer
        yield matrix, buffer, found


def _difference(table: View, matrix: View, buffer: Buffer, tiles: Sequence[ColumnTiles]) -> int | None:
    """What is or-ed exclusively with what lies there, which is 0 or the highest bit; None where it is another table."""
    rows, depth = map(static, table.shape)
    dtype, stored = table.buffer.dtype, buffer.dtype
    same = dtype is stored or (dtype is f32 and stored in (f16, bf16))  # narrow_weights has found the same numbers
    if (
        not same
        or matrix.buffer.dtype is not stored
        or tuple(matrix.shape[-2:]) != (depth, rows)
        or depth % tiles[0].length
    ):
        return None
    assert table.buffer.constant is not None and matrix.buffer.constant is not None and buffer.constant is not None
    wanted = np.asarray(table.buffer.constant.array).reshape(rows, depth)
    if dtype is not stored:
        narrow = wanted.astype(stored.numpy)
        if not _alike(narrow.astype(dtype.numpy), wanted):
            return None
        wanted = narrow
    if not _alike(viewed(matrix, matrix.buffer.constant).reshape(depth, rows).T, wanted):
        return None
    flat, found = buffer.constant.array.reshape(-1), []
    for each in tiles:
        strides = [stride * flat.itemsize for stride in each.strides]
        part = np.lib.stride_tricks.as_strided(flat[each.offset :], each.shape(depth), strides)
        found.append(part.reshape(-1, depth)[: rows - each.begin])
    lies = np.concatenate(found)
    if _alike(lies, wanted):
        return 0
    low = table.buffer.dtype.low if table.buffer.dtype.is_integer else 0
    return int(low) if low and np.array_equal(lies.astype(np.int32) ^ int(low), wanted) else None


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit by bit."""
    one, other = (np.ascontiguousarray(each).view(np.uint8) for each in (a, b))
    return np.array_equal(one, other)


def _is_known(table: Buffer, matrix: Buffer, program: Program, context: Context) -> bool:
    fact = f"{table.name} is {matrix.name} turned"
    if table is matrix:
        return True
    if context.training.updatable or not context.training.may_use(fact):
        return False
    program.assumptions[fact] = None
    return True


class _Rows:
    """The calls that take rows where columns lie."""

    def __init__(self, gather: Call, buffer: Buffer, tiles: Sequence[ColumnTiles], lower: int, names: Names) -> None:
        self.gather, self.buffer, self.names = gather, buffer, names
        self.calls: list[Call] = []
        y, index = gather.outs[0], gather.ins[1]
        self.place = View(index.buffer, index.shape[:-1], index.strides[:-1], index.offset, index.lines)
        self.depth = static(gather.ins[0].shape[1])
        dtype, stored = y.buffer.dtype, buffer.dtype
        if len(tiles) == 1 and not lower and dtype is stored and (whole := self.cut(y, tiles[0])) is not None:
            self.taken(tiles[0], whole)
            return
        parts = []
        for each in tiles:
            room = Buffer(names.take(f"{y.buffer.name}_rows"), stored, y.shape, provenance=gather.provenance)
            whole = self.cut(room.whole(), each)
            assert whole is not None  # it is dense
            self.taken(each, whole)
            parts.append(room.whole())
        value = self.loaded(0, stored)
        if len(parts) > 1:
            first = apply("less", self.row(len(parts)), literal(tiles[1].begin, i32))
            value = apply("select", first, value, self.loaded(1, stored))
            parts.append(index)
        if lower:
            value = apply("bit_xor", value, literal(lower, i32))
        value = cast(value, dtype) if dtype.is_integer or dtype is not stored else value
        self.calls.append(Call(Map(value), tuple(parts), (y,), gather.provenance))

    def loaded(self, number: int, dtype: DType) -> Expr:
        return cast(operand(number, dtype), i32) if dtype.is_integer else operand(number, dtype)

    def cut(self, y: View, tiles: ColumnTiles) -> View | None:
        return y.reshaped((*y.shape[:-1], *tiles.sums(self.depth)))

    def row(self, number: int) -> Expr:
        """Of the table, from the operand that says it: inside, and counted from the front."""
        dtype, rows = self.place.buffer.dtype, static(self.gather.ins[0].shape[0])
        place, zero = operand(number, dtype), literal(0, dtype)
        front = apply("select", apply("less", place, zero), apply("add", place, literal(rows, dtype)), place)
        return cast(apply("min", apply("max", front, zero), literal(rows - 1, dtype)), i32)

    def taken(self, tiles: ColumnTiles, y: View) -> None:
        rows = static(self.gather.ins[0].shape[0])
        last = min(tiles.end, rows) - tiles.begin - 1
        inner = apply("sub", self.row(0), literal(tiles.begin, i32))
        place = apply("min", apply("max", inner, literal(0, i32)), literal(last, i32))
        tile = apply("div", place, literal(tiles.tile, i32))
        column = apply("sub", place, apply("mul", tile, literal(tiles.tile, i32)))
        more = len(y.shape) - len(self.place.shape)
        indices = [self.computed(number, y.shape, more) for number in (tile, column)]
        x = View(self.buffer, tiles.shape(self.depth), tiles.strides, tiles.offset)
        axes = (-1, -2, *range(len(self.place.shape), len(y.shape)))
        self.calls.append(Call(Gather(axes, in_range=True), (x, *indices), (y,), self.gather.provenance))

    def computed(self, number: Expr, shape: Shape, more: int) -> View:
        room = Buffer(self.names.take("row"), i32, self.place.shape, provenance=self.gather.provenance)
        self.calls.append(Call(Map(number), (self.place,), (room.whole(),), self.gather.provenance))
        found = room.whole()
        return View(room, shape, (*found.strides, *(0,) * more))
