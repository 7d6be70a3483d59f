"""Accumulators of int8 dot products in SIMD (mcc_dot.h): tiles of points x vectors of output channels, how weights are
packed for them, and how the epilogue requantizes the sums.

Packed weights of a group of channels are

    [sums to begin with: vectors x lanes i32][step][weights of a step, in the order of its form (dot_forms.py)]

so a tile reads them from one end to the other. The sums begin with what zero points contribute, and the bias where that
comes first. ISAs that take either int8 or uint8 activations only get the other type shifted by 128 (`dot_signed`),
which the first sums correct as well. Where an epilogue has no vector form, sums wait in memory for
scalar C, which takes any.

Invariant: every lane gives the bits of the portable kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from ...base.constant import Constant
from ...base.dims import static
from ...base.dtypes import DType, f32, i8, i32, i64, u8
from ...base.marked import named
from ...base.records import dataclass
from ...expr.integer_vector_c import integer_refusal, to_integer_statements
from ...expr.ir import Apply, Expr, operand, operands_used, rebuild
from ...expr.itself import asked_once
from ...expr.scalar_c import load_c, store_c, to_statements
from ...expr.vector_c import math_headers
from ...kernels.api import viewed
from ...program.ir import Call, View
from ...targets.api import Target
from ..loops import index_c
from ..moves import copied_c
from ..tiles import Range, is_constant
from ..vector.vector_groups import Groups
from ..vector.vector_tiles import TileSize
from .dot import rescaling
from .dot_forms import FOURS, PAIRS, TERMS, Form, form_of

DEPTH = 4  # products of a lane in one step of the form "fours"
NUMBER = 4  # bytes of a sum
SHIFT = 128  # between bytes with a sign and bytes without
MAX_POINTS, MAX_VECTORS = 16, 4


def dot_lanes(target: Target) -> int:
    """Sums in a vector of the target; 0 where it has none."""
    return target.option("dot_lanes", 0)


def dot_headers(call: Call) -> frozenset[str]:
    """Of kernels whose first block is their number of lanes."""
    return frozenset({f"mcc_dot{call.blocks[0]}.h"}) | math_headers(call.kind.expressions())


def dot_refusal(target: Target) -> str:
    return "" if dot_lanes(target) else "the target has no vectors of sums for int8 dot products"


def shifted(dtype: DType, target: Target) -> int:
    """What the elements that the machine multiplies are more than those of the operand."""
    if form_of(target) is TERMS:  # they are widened before
        return 0
    if target.option("dot_signed", 0):
        return -SHIFT if dtype is u8 else 0
    return SHIFT if dtype is i8 else 0


@cache
def best_dot_tile(points: int, channels: int, steps: int, target: Target) -> TileSize:
    lanes, form = dot_lanes(target), form_of(target)
    wanted = -(-channels // lanes)
    sizes = [
        TileSize(lanes, p, v)
        for v in range(1, min(wanted, MAX_VECTORS) + 1)
        for p in range(1, min(points, MAX_POINTS) + 1)
        if _fits(p, v, form, target) or p * v == 1
    ]

    def effort(size: TileSize) -> float:
        uneven = bool(points % size.points) + bool(wanted % size.vectors)  # means more code
        return row_cycles(size, points, channels, steps, form) * (1 + 0.02 * uneven)

    return min(sizes, key=lambda size: (effort(size), -size.points))


def _fits(points: int, vectors: int, form: Form, target: Target) -> bool:
    """Are there registers for the sums of a tile, and what is multiplied?"""
    registers = sum_registers(target)
    if form is TERMS:  # of a vector of weights there are bytes, and numbers of twice the bits
        return points * vectors + 0.75 * min(vectors, 2) <= registers and vectors < MAX_VECTORS
    if form is PAIRS:  # a point that has no other beside it takes as many
        return (points + points % 2 + 2) * vectors + 1 <= registers
    return points * vectors + (vectors + 2 if registers > 16 else 2 * vectors + 3) <= registers


def sum_registers(target: Target) -> int:
    """Vectors of sums that the registers hold: one may take several."""
    each = -(-NUMBER * dot_lanes(target) // target.option("register_bytes", target.vector_bytes))
    return target.option("vector_registers", 16) // max(each, 1)


def row_cycles(size: TileSize, points: int, channels: int, steps: int, form: Form = FOURS) -> float:
    """Roughly how long a row of points takes."""
    wanted, total = -(-channels // size.lanes), 0.0
    for vectors, groups in ((size.vectors, wanted // size.vectors), (wanted % size.vectors, 1)):
        for count, tiles in ((size.points, points // size.points), (points % size.points, 1)):
            if count and vectors:
                after = (4 if vectors == 4 else 6) * count * vectors  # four are stored together
                total += groups * tiles * (_step_cycles(count, vectors, form) * steps + 10 + after)
    return total


def _step_cycles(points: int, vectors: int, form: Form) -> float:
    if form is TERMS:
        return form.depth * (points * vectors + points + 2 * vectors) + 3
    if form is PAIRS:
        return points // 2 * (2 * vectors + 3) + points % 2 * (2 * vectors + 1) + vectors + 3
    loads = 0.6 * (2 * vectors + points)
    return max(points * vectors, loads, 4.0) + 0.1 * loads


@dataclass(frozen=True)
class Place:
    """Where an operand of the epilogue, or the result, lies: pointer, C of the index of point 0 and channel 0 of the
    tile, and the steps to the next point and channel."""

    pointer: str
    view: View
    index: str
    point: int
    channel: int

    def at(self, point: int, channel: int) -> str:
        step = point * self.point + channel * self.channel
        return f"{self.index} + {step}" if step else self.index


@dataclass(frozen=True)
class DotTile:
    """What the macro `dot_tile` of dot_tile.c.j2 prints."""

    lanes: int
    points: int
    vectors: int
    weights: str  # C of the pointer to those of the group
    loops: tuple[Range, ...]  # of the sum; the last, over c, runs along elements that follow each other
    x_at: str  # C of the pointer to those of point 0
    x_step: int  # from point to point
    type: DType  # of the elements: u8 or i8
    hoisted: tuple[str, ...]
    results: tuple[Sequence[str], ...]  # statements that store them, in pieces that may stand alone
    kept: Sequence[str]  # declarations of what these read
    zeros: tuple[str, ...] = ()  # statements that take off the sums what zero points contribute that are known late
    heads: int = 1  # blocks in front of the weights: sums to begin with; sums of the weights
    ahead: int = 0  # bytes from weights that are used to those that are fetched into a cache meanwhile; 0: nothing is
    form: Form = FOURS

    @property
    def of(self) -> str:
        return f"i32x{self.lanes}"

    @property
    def bytes(self) -> int:
        """Of one step."""
        return self.vectors * self.lanes * self.form.depth

    @property
    def lines(self) -> str:
        """All statements that may read operands of the call."""
        return " ".join((*self.zeros, *self.hoisted, *itertools.chain(*self.results)))

    @property
    def head_bytes(self) -> int:
        """Of all that comes before the weights."""
        return self.heads * self.vectors * self.lanes * NUMBER


class DotEpilogue:
    """What becomes of the sums of a call, whose channels lie along `axis` of the result."""

    def __init__(self, call: Call, fixed: int, axis: int, epilogue: Expr | None) -> None:
        self.call, self.fixed, self.axis = call, fixed, axis
        self.y, self.extras = call.outs[0], call.ins[fixed:]
        self.channels = static(self.y.shape[axis])
        self.bias: int | None = None  # the operand of the call that sums begin with
        self.expr = epilogue
        found = rescaling(call, fixed, epilogue)
        if found is not None and epilogue is not None:
            number = found.bias - fixed + 1
            begun = _begun(epilogue, number)
            if number not in operands_used(begun):
                self.bias, self.expr = found.bias, begun
        self.refusal = self._refusal()

    @property
    def in_vectors(self) -> bool:
        return not self.refusal

    def _refusal(self) -> str:
        if self.expr is None or (reason := integer_refusal(self.expr)):
            return reason if self.expr is not None else "sums are stored as they are"
        if self.y.strides[self.axis] != 1 and self.channels != 1:
            return "channels of the result are not contiguous"
        for view in self.extras:
            if self.moves(view) and view.buffer.dtype not in (i8, u8, *[f32] * (self.y.buffer.dtype is f32)):
                return f"an operand of {view.buffer.dtype} has a value for each point"
            if not self.is_table(view) and view.strides[self.axis] not in (0, 1) and self.channels != 1:
                return "channels of an operand are not contiguous"
        return ""

    def is_table(self, view: View) -> bool:
        """Constants that change along the channels only: they are packed, so that vectors of them may be read."""
        channel = static(view.strides[self.axis]) != 0 and self.channels > 1
        return is_constant(view) and channel and self._others_stay(view)

    def stays(self, view: View) -> bool:
        """Is it the same number everywhere?"""
        return self._others_stay(view) and (view.strides[self.axis] == 0 or self.channels == 1)

    def _others_stay(self, view: View) -> bool:
        sizes = enumerate(zip(view.shape, view.strides, strict=True))
        return all(axis == self.axis or stride == 0 or size == 1 for axis, (size, stride) in sizes)

    @property
    def tables(self) -> dict[int, View]:
        """Operands of the call that are packed."""
        numbered = enumerate(self.extras, self.fixed)
        return {n: view for n, view in numbered if self.in_vectors and n != self.bias and self.is_table(view)}

    @property
    def constants(self) -> frozenset[int]:
        return frozenset(self.tables) | (frozenset() if self.bias is None else {self.bias})

    def rows(self, constants: Mapping[int, Constant]) -> dict[int, np.ndarray]:
        """The numbers of each table."""
        return {
            index: np.moveaxis(viewed(view, constants[index]), self.axis, -1).reshape(-1, self.channels)[0]
            for index, view in self.tables.items()
        }

    def pack(self, constants: Mapping[int, Constant], size: TileSize) -> dict[int, np.ndarray]:
        """Tables with numbers for whole vectors."""
        return {n: halves(self.ordered(row, size), size.lanes) for n, row in self.rows(constants).items()}

    def ordered(self, values: np.ndarray, size: TileSize) -> np.ndarray:
        """Values of all channels, along the first axis, for whole vectors and in the order of the tiles."""
        groups = Groups(size, self.channels)
        values = np.pad(values, [(0, groups.padded - self.channels)] + [(0, 0)] * (values.ndim - 1))
        found = []
        for begin, end, vectors, _ in groups.parts():
            for first in range(begin, end, vectors * size.lanes):
                part = values[first : first + vectors * size.lanes]
                found.append(zipped(part, size.lanes) if self.in_fours(vectors) else part)
        return np.concatenate(found)

    def packing(self, size: TileSize) -> dict[int, str]:
        return dict.fromkeys(self.tables, f"table_of_{self.order(size)}")

    def order(self, size: TileSize) -> str:
        """A name for the order of the channels."""
        return f"{size.vectors}x{size.lanes}{'_zipped' if self.in_fours(size.vectors) else ''}"

    def pack_weights(
        self, rows: np.ndarray, heads: Sequence[np.ndarray], size: TileSize, form: Form = FOURS
    ) -> np.ndarray:
        """Weights [channels, sum], a whole number of steps long, and numbers of each channel that come first: what its
        sums begin with, perhaps more."""
        found = []
        rows = self.ordered(rows, size).astype(np.int8)
        ordered = [self.ordered(head, size).astype(np.int32) for head in heads]
        for begin, end, vectors, _ in Groups(size, self.channels).parts():
            width = vectors * size.lanes
            for first in range(begin, end, width):
                found += [head[first : first + width].view(np.int8) for head in ordered]
                found.append(np.ascontiguousarray(form.steps(rows[first : first + width])).reshape(-1))
        return np.concatenate(found)

    def begins(self, constants: Mapping[int, Constant]) -> np.ndarray:
        """What the bias adds to the sums of each channel."""
        if self.bias is None:
            return np.zeros(self.channels, np.int64)
        view = viewed(self.call.ins[self.bias], constants[self.bias])
        begins = np.moveaxis(view, self.axis, -1).reshape(-1, view.shape[self.axis])[0]
        return np.broadcast_to(begins, (self.channels,)).astype(np.int64)

    def statements(
        self, size: TileSize, points: int, vectors: int, last: int, y: Place, extras: Sequence[Place]
    ) -> tuple[tuple[str, ...], tuple[list[str], ...]]:
        """Statements before, and those that store the results of the accumulators `a<point>_<vector>`, in pieces that
        may stand alone; the last vector has `last` lanes that count."""
        if self.in_vectors:
            found = self._vectors(size.lanes, points, vectors, last, y, extras)
            return self.hoisted(size.lanes, vectors, extras), tuple(found)
        return (), (self._scalars(size.lanes, points, vectors, last, y, extras),)

    def _vectors(
        self, lanes: int, points: int, vectors: int, last: int, y: Place, extras: Sequence[Place]
    ) -> Iterator[list[str]]:
        """A piece for each point."""
        assert self.expr is not None
        for point in range(points):
            if self.in_fours(vectors):
                yield self.four(f"a{point}", lanes, y, 3 * lanes + last, extras, point)
                continue
            stores: list[str] = []
            for vector in range(vectors):
                part = last if vector == vectors - 1 else lanes
                loads = [named(f"a{point}_{vector}")]
                for place in extras:
                    if self.moves(place.view):
                        loads.append(_load(place, lanes, point, vector, part))
                    else:
                        loads.append(named(f"{place.pointer}_{0 if self.stays(place.view) else vector}"))
                at = f"{named(y.pointer)} + {y.at(point, vector * lanes)}"
                whole = part == lanes
                store = f"mcc_store_{{0}}({at}, {{1}});" if whole else f"mcc_store_part_{{0}}({at}, {part}, {{1}});"
                lines = to_integer_statements(self.expr, loads, lanes, store)
                stores += ["{", *lines, "}"] if len(lines) > 1 else lines
            yield stores

    def hoisted(self, lanes: int, vectors: int, extras: Sequence[Place]) -> tuple[str, ...]:
        """Statements that load what is the same at all points, as `<pointer>_<vector>`."""
        used, found = operands_used(self.expr) if self.expr is not None else set(), []
        for place in (place for number, place in enumerate(extras, 1) if number in used):
            kind = f"{_lane(place.view.buffer.dtype)}x{lanes}"
            if self.stays(place.view):
                value = f"mcc_set_{kind}({named(place.pointer)}[{place.index}])"
                found.append(f"const mcc_{kind} {place.pointer}_0 = {value};")
            elif self.is_table(place.view):
                for vector in range(vectors):
                    found.append(f"const mcc_{kind} {place.pointer}_{vector} = {_load(place, lanes, 0, vector)};")
        return tuple(found)

    def hoisted_names(self, lanes: int, extras: Sequence[Place]) -> list[str]:
        """Declarations of what `hoisted` may name, for up to four vectors."""
        kinds = ((place.pointer, f"mcc_{_lane(place.view.buffer.dtype)}x{lanes}") for place in extras)
        return [f"{kind} {pointer}_{vector}" for pointer, kind in kinds for vector in range(MAX_VECTORS)]

    def kept(self, lanes: int, points: int, vectors: int, extras: Sequence[Place]) -> list[str]:
        """Declarations of all that a piece of `statements` may read."""
        sums = [f"mcc_i32x{lanes} a{point}_{vector}" for point in range(points) for vector in range(vectors)]
        return [*sums, *self.hoisted_names(lanes, extras)]

    def in_fours(self, vectors: int) -> bool:
        """Are the channels of a tile in the order of mcc_dot_zip, so that four vectors are stored together?"""
        return vectors == 4 and self.in_vectors and self.y.buffer.dtype in (i8, u8)

    def four(self, sums: str, lanes: int, y: Place, part: int, extras: Sequence[Place], point: int = 0) -> list[str]:
        """Statements that store the results of four accumulators `<sums>_<vector>` in the order of mcc_dot_zip, of
        which `part` channels count."""
        assert self.expr is not None
        lines, of, whole = [f"mcc_dot_four_i32x{lanes} four;"], self.expr.dtype, part == 4 * lanes
        for place in filter(lambda place: self.moves(place.view), extras):
            dtype, at = place.view.buffer.dtype, f"{named(place.pointer)} + {place.at(point, 0)}"
            if not place.channel:
                lines.append(f"const mcc_{_lane(dtype)}x{lanes} {place.pointer}_all = {_load(place, lanes, point, 0)};")
                continue
            load = f"mcc_load_four_{dtype}_i32x{lanes}({at})"
            if not whole:
                load = f"mcc_load_four_part_{dtype}_i32x{lanes}({at}, {part})"
            lines.append(f"const mcc_dot_four_i32x{lanes} {place.pointer}_four = {load};")
        for vector in range(4):
            loads = [named(f"{sums}_{vector}")]
            for place in extras:
                if self.moves(place.view):
                    loads.append(f"{place.pointer}_four.v{vector}" if place.channel else f"{place.pointer}_all")
                else:
                    loads.append(named(f"{place.pointer}_{0 if self.stays(place.view) else vector}"))
            store = f"four.v{vector} = {{1}};" if of is not f32 else f"four.v{vector} = (mcc_i32x{lanes}){{1}};"
            lines += to_integer_statements(self.expr, loads, lanes, store, local=f"t{vector}_")
        at = f"{named(y.pointer)} + {y.at(point, 0)}"
        store = f"mcc_store_four_{of}_i32x{lanes}({at}, four);"
        return ["{", *lines, store if whole else f"mcc_store_four_part_{of}_i32x{lanes}({at}, {part}, four);", "}"]

    def moves(self, view: View) -> bool:
        """Does it change from point to point?"""
        return not self.stays(view) and not self.is_table(view)

    def _scalars(
        self, lanes: int, points: int, vectors: int, last: int, y: Place, extras: Sequence[Place]
    ) -> list[str]:
        width = vectors * lanes
        lines = [f"int32_t sums[{points * width}];"]
        for point in range(points):
            for vector in range(vectors):
                sums = f"a{point}_{vector}"
                place = f"sums + {point * width + vector * lanes}"
                lines.append(copied_c(place, f"&{named(sums)}", f"sizeof {sums}"))
        lines.append(f"for (mcc_index point = 0; point < {points}; ++point) {{")
        lines.append(f"for (mcc_index lane = 0; lane < {width - lanes + last}; ++lane) {{")

        def at(place: Place) -> str:
            return index_c([1, place.point, place.channel], [place.index, "point", "lane"])

        loads = [f"sums[{index_c([width, 1], ['point', 'lane'])}]"]
        loads += [load_c(place.view.buffer.dtype, named(place.pointer), at(place)) for place in extras]
        before, value = to_statements(self.expr or operand(0, i32), loads)
        return [*lines, *before, store_c(y.view.buffer.dtype, named(y.pointer), at(y), value), "}", "}"]


def _load(place: Place, lanes: int, point: int, vector: int, part: int = 0) -> str:
    """C of a vector of an operand, of which only a part may be read if so many lanes are given."""
    dtype = place.view.buffer.dtype
    if not place.channel:
        return f"mcc_set_{_lane(dtype)}x{lanes}({named(place.pointer)}[{place.at(point, 0)}])"
    at = f"{named(place.pointer)} + {place.at(point, vector * lanes)}"
    of = f"{dtype}_i32x{lanes}" if dtype in (i8, u8) else f"{dtype}x{lanes}"
    return f"mcc_load_part_{of}({at}, {part})" if 0 < part < lanes else f"mcc_load_{of}({at})"


def _lane(dtype: DType) -> str:
    """What a lane of it holds."""
    return dtype.name if dtype in (i64, f32) else "i32"


def halves(row: np.ndarray, lanes: int) -> np.ndarray:
    """Numbers of 64 bits in the order of mcc_load_i64; others as they are."""
    if row.dtype.itemsize == 8:
        row = row.reshape(-1, lanes // 2, 2).transpose(0, 2, 1).reshape(-1)
    return np.ascontiguousarray(row)


def zipped(values: np.ndarray, lanes: int) -> np.ndarray:
    """Values of 4 * lanes channels, along the first axis, in the order of mcc_dot_zip."""
    rest = values.shape[1:]
    return values.reshape(lanes // 4, 4, 4, *rest).swapaxes(0, 1).reshape(4 * lanes, *rest)


@asked_once
def _begun(epilogue: Expr, number: int) -> Expr:
    """The epilogue of sums that begin with operand `number`."""
    return rebuild(epilogue, lambda node: operand(0, node.dtype) if _adds(node, number) else None)


def _adds(node: Expr, number: int) -> bool:
    """The sum plus operand `number`?"""
    if not isinstance(node, Apply) or node.function != "add":
        return False
    return node.arguments == (operand(0, i32), operand(number, i32))
