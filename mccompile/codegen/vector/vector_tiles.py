"""Sums of products in vectors: a tile of points x vectors of results in registers, and which size of it is best.

A point is a position of an image or a row of a matrix; vectors lie along output channels or columns. Each step of the
sum loads the weights of all vectors once and one number per point. Tiles are chosen from the registers of the target,
what the result divides into, and how the points lie in the first-level cache.

Invariant: accumulators are named variables, never an array with a variable index, so they stay in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, reduce

from ...base.dtypes import SHORT, DType, bool_, f16, f32, f64, i8
from ...base.marked import called, marked_name, named
from ...base.records import dataclass
from ...base.tensor import TensorType
from ...expr.ir import apply, cast, literal, operand, walk
from ...expr.vector_c import NARROW, ROUNDED, math_headers, refusals
from ...kernels.api import Case, static_views
from ...program.ir import Call
from ...targets.api import Target
from ...targets.machine import Machine
from ..tiles import Range
from .vector_epilogue import SQUARE, Epilogue, accumulator
from .vector_loops import as_floats, narrow
from .vector_runs import HALF_RUN

FLOAT = 4  # bytes
WITH_BYTES = (*NARROW, i8)  # what constant weights may be stored in
NARROW_CORE = 2  # a core that begins no more instructions in a cycle waits for these before anything else
SECOND_LEVEL = 512 << 10  # bytes that surely do not leave the second-level cache between two runs
FROM_THIRD = 12  # bytes of weights per cycle that come from the third-level cache
OF_POINTS = 64 << 10  # bytes from the input of the first to that of the last point of a tile, where it has more than
FEW_POINTS = 8
MAX_POINTS, MAX_VECTORS = 28, 6
PAIRED = ((1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2), (1, 3), (1, 4))  # points and vectors of loops of pairs
LONG = 100  # lines of a tile whose parts may be functions
WIDEST_REGISTERS = 32  # of 64 bytes
DOUBLE_LANES = "double_lanes"  # of targets: doubles in their widest vector
STORED_ALONE = 1.5  # cycles of storing one lane of a vector
FOR_TOTALS = 6  # registers in which 32-bit totals of 16-bit sums come by


def lanes_of(target: Target, dtype: DType = f32) -> int:
    """Floats, or doubles, in the widest vector of the target."""
    return target.option(DOUBLE_LANES, 0) if dtype is f64 else min(target.vector_bytes // FLOAT, 16)


def fetched_ahead(panel: int, total: int) -> int:
    """How far ahead weights are fetched that come in panels of so many floats: where they are too many to stay in the
    second-level cache, one panel, so that it arrives while this one is worked with."""
    return panel if total * FLOAT > SECOND_LEVEL else 0


def vector_registers(lanes: int, target: Target, dtype: DType = f32) -> int:
    """How many vectors of so many lanes the target's registers hold: a wider one takes several registers."""
    in_each = target.option("register_bytes", target.vector_bytes)
    return target.option("vector_registers", 16) // max(lanes * dtype.bits // 8 // in_each, 1)


def vector_refusal(target: Target, dtype: DType = f32) -> str:
    return "" if lanes_of(target, dtype) >= (2 if dtype is f64 else 4) else f"the target has no vectors of {dtype}"


def computed_in(call: Call) -> DType:
    """The floats that vectors have for a result: 16-bit ones for a result in 16 bits."""
    return f16 if call.outs[0].buffer.dtype is f16 else f32


def products_refusal(call: Call, target: Target, masks: bool = False, stored: tuple[DType, ...] = NARROW) -> str:
    """Why the types of a call's operands are none that vectors multiply on the target, or nothing. Constant weights,
    the second operand, may be `stored` in fewer bits than they are multiplied in; with `masks`, operands of the
    epilogue may be truth values beside 32-bit floats."""
    dtype = computed_in(call)
    if dtype is f16 and not target.option("half_lanes", 0):
        return "the target does not compute in 16 bits"
    extras = (view for view in call.ins[2:] if not (masks and dtype is f32 and view.buffer.dtype is bool_))
    others = (*call.ins[:1], *extras, *call.outs)
    weights = call.ins[1].buffer
    narrower = dtype is f32 and weights.dtype in stored and weights.constant is not None
    if (weights.dtype is dtype or narrower) and all(view.buffer.dtype is dtype for view in others):
        return ""
    return "only for 32-bit floats, or 16-bit ones where the target computes in them"


def convolution_refusal(call: Call, target: Target, stored: tuple[DType, ...] = NARROW, packs: bool = False) -> str:
    """Why vectors do not convolve these operands, wherever they lie, or nothing; `packs`: weights may be known at run
    time only."""
    reason = vector_refusal(target) or static_views(call) or products_refusal(call, target, stored=stored)
    reason = reason or refusals(call.kind.expressions(), computed_in(call))
    if reason:
        return reason
    if len(call.kind.names) > 2:
        return "not with zero points"
    return "" if packs or call.ins[1].buffer.constant is not None else "the weights are not constant"


# How far sums in runs are off, of the largest of many: terms of any sign leave 2^-11 times the root of a sixth of the
# run's length of a sum's usual size; the most that a thousand sums are off by is four times that, the largest of them
# three times their usual size.
HALF_ERROR = 2 * 2.0**-11 * (HALF_RUN / 6) ** 0.5
HALF_RELU = apply("max", apply("add", cast(operand(0, f32), f16), operand(1, f16)), literal(0, f16))


def in_halves(case: Case) -> Case:
    """A case of products that end in HALF_RELU, in 16-bit floats."""
    ins = tuple(TensorType(f16, t.shape) for t in (*case.ins, *case.outs))
    extra = len(case.ins)
    permute = {**case.permute, **({extra: case.permute_outs[0]} if 0 in case.permute_outs else {})}
    return replace(case, ins=ins, outs=ins[extra:], permute=permute, option="half_lanes", error=HALF_ERROR)


def vector_headers(call: Call, dtype: DType = f32) -> frozenset[str]:
    """The headers that the vectors of a call need, which are of such floats."""
    expressions = call.kind.expressions()
    math = math_headers(expressions, dtype)
    if dtype is not f32:
        return math | {"mcc_vec_half.h" if dtype is f16 else "mcc_vec_doubles.h"}
    dtypes = {view.buffer.dtype for view in (*call.ins, *call.outs)}
    dtypes.update(node.dtype for expr in expressions for node in walk(expr))
    narrow = not dtypes.isdisjoint((*NARROW, *SHORT, *ROUNDED)) or call.outs[0].buffer.dtype is bool_
    return math | {"mcc_vec.h", *["mcc_vec_narrow.h", "mcc_narrow.h"] * narrow}


def best_lanes(channels: int, target: Target, dtype: DType = f32) -> int:
    """The width of vector that wastes least on `channels` results. A vector of half the width takes about half the time
    only where the widest is twice what the machine adds at once, as with 64 bytes."""
    if dtype is f16:
        return target.option("half_lanes", 0)
    widest = lanes_of(target, dtype)
    candidates = [n for n in ((8, 4, 2) if dtype is f64 else (16, 8, 4)) if n <= widest]

    def effort(lanes: int) -> float:
        narrow = 1.1 * max(lanes * 2 / widest, 1) / 2 if as_floats(widest, dtype) == 16 and lanes < widest else 1.0
        return -(-channels // lanes) * narrow

    return min(candidates, key=lambda lanes: (effort(lanes), -(-channels // lanes) * lanes, -lanes))


@dataclass(frozen=True)
class TileSize:
    lanes: int
    points: int
    vectors: int
    together: int = 1  # steps of the sum whose numbers are loaded at once: as a vector, or two by the core

    @property
    def channels(self) -> int:
        return self.lanes * self.vectors


@cache
def best_tile(
    points: int,
    channels: int,
    depth: int,
    step_bytes: int,
    target: Target,
    workers: int = 1,
    run: int = 1,
    dtype: DType = f32,
    high: int = 0,
    planar: bool = False,
) -> TileSize:
    """For rows of `points` x `channels` results that are sums of `depth` products; `step_bytes` lies between the inputs
    of neighbouring points, of which `run` lie side by side. With several workers each takes some of the channels. The
    tile has `high` points, where that is not 0. Is the result `planar`, with points side by side?"""
    lanes = best_lanes(channels, target, dtype)
    wanted = -(-channels // (lanes * workers))
    channels = min(channels, wanted * lanes)
    registers = vector_registers(lanes, target, dtype) - (FOR_TOTALS if dtype is f16 else 0)
    repeated = lanes < target.option("repeating_lanes", 16)  # numbers that take a register of their own
    together = {0: 1, 1: lanes, 2: 2}[target.option("by_element", 0)]
    together = together if run >= together else 1
    at_once = target.option("numbers_at_once", 0)  # does the target load those of all points before it multiplies?
    most = min(MAX_POINTS, points, _without_collisions(step_bytes, target.machine))
    sizes = [
        TileSize(lanes, p, v, together)
        for v in range(1, min(wanted, MAX_VECTORS) + 1)
        for p in ((high,) if high else range(1, most + 1))
        if (together != 2 or (p, v) in PAIRED or high)
        and (p * v + v + (p + v if together > 2 else p if at_once else repeated) <= registers or p * v in (1, high))
    ]

    far = depth * channels * FLOAT > SECOND_LEVEL

    def effort(size: TileSize) -> float:
        uneven = bool(points % size.points) + bool(wanted % size.vectors)  # means more code
        # Too little is done with each vector of weights; what comes from afar is better read in its order, once.
        flat = size.points <= size.vectors > 1 and not (far and size.points == points)
        return row_cycles(size, points, channels, depth, target, planar) * (1 + 0.02 * uneven + 0.25 * flat)

    return min(sizes, key=lambda size: (effort(size), -size.points, -size.vectors))


def row_cycles(size: TileSize, points: int, channels: int, depth: int, target: Target, planar: bool = False) -> float:
    """Roughly how long a row takes."""
    wanted = -(-channels // size.lanes)
    total = 0.0
    for vectors, groups in ((size.vectors, wanted // size.vectors), (wanted % size.vectors, 1)):
        for count, tiles in ((size.points, points // size.points), (points % size.points, 1)):
            if count and vectors:
                tile = TileSize(size.lanes, count, vectors, size.together)
                step, weights = step_cycles(tile, target), vectors * size.lanes
                if depth * weights * FLOAT > SECOND_LEVEL:  # they are read anew for every tile
                    step = max(step, weights * FLOAT / FROM_THIRD)
                one = step * depth
                one += 12 + 2 * count * vectors
                if planar:
                    one += vectors * size.lanes * cycles_across(count, size.lanes)
                total += groups * tiles * one
    return total


def cycles_across(points: int, lanes: int) -> float:
    """Of storing each lane of so many points where points lie side by side: square tiles are transposed."""
    square = min(SQUARE, lanes)
    return points // square * (1 + square / 2) + points % square * STORED_ALONE


def step_cycles(size: TileSize, target: Target) -> float:
    """Cycles of one step of the sum: additions wait for each other, the rest for units and for being decoded."""
    points, vectors, machine = size.points, size.vectors, target.machine
    results = points * vectors
    if machine.issue <= NARROW_CORE:
        instructions = results + vectors + (points + 1 + (size.together != 2)) / size.together
        return max(instructions / machine.issue, machine.latency / size.together)
    wide = size.lanes == 16
    per_cycle = machine.widest_fmas if wide else machine.fmas
    loads = (vectors * (2 if wide else 1) + points) / machine.loads
    instructions = results + vectors + (points if vectors > 1 else 0) + 2
    from_caches = 0.15 * vectors + 0.05 * points
    return max(results / per_cycle, machine.latency, loads, instructions / machine.issue) + from_caches


def _without_collisions(step_bytes: int, machine: Machine) -> int:
    """How many points may lie `step_bytes` apart before they push each other out of the first-level cache."""
    if not step_bytes:
        return MAX_POINTS
    room = max(OF_POINTS // step_bytes, FEW_POINTS)
    lines = step_bytes // machine.line
    if step_bytes % machine.line:
        return room
    sets = machine.sets // math.gcd(machine.sets, lines)
    return min(sets * machine.ways, room)


@dataclass(frozen=True)
class Part:
    """Neighbouring tiles of one size along the positions or rows."""

    header: str
    tile: Tile


@dataclass(frozen=True)
class Group:
    """Neighbouring tiles of one size along the channels or columns."""

    header: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Taps:
    """The innermost loops of a sum, and the points that take part in them."""

    points: tuple[int, ...]
    loops: tuple[Range, ...]
    x: str  # C of the index of what point 0 is multiplied by
    w: str  # C of the index of the first vector of weights
    w_step: int = 0  # from the weights of a step to those of the next one, where several are taken together
    together: int = 1  # steps of the innermost loop that are taken together


def taken_together(taps: Taps, many: int, w_step: int) -> tuple[Taps, ...]:
    """The innermost loop in strides of so many steps, and the steps that are left over."""
    inner = taps.loops[-1] if taps.loops else None
    if many == 1 or inner is None or inner.extent < many:
        return (taps,)
    whole = inner.extent // many * many
    strides = replace(inner, extent=whole, step=many)
    found = [replace(taps, loops=(*taps.loops[:-1], strides), w_step=w_step, together=many)]
    if whole < inner.extent:
        found.append(replace(taps, loops=(*taps.loops[:-1], replace(inner, begin=str(whole)))))
    return tuple(found)


@dataclass(frozen=True)
class Pass:
    """A part of a sum: loops around, and what is added up inside of them."""

    around: tuple[Range, ...]
    taps: tuple[Taps, ...]

    @property
    def points(self) -> tuple[int, ...]:
        """Those that take part."""
        return tuple(sorted({point for taps in self.taps for point in taps.points}))


def is_long(passes: Sequence[Pass], points: int, vectors: int, cut: bool = False) -> bool:
    """Is so much of a tile unrolled that its parts may be functions? Sums of 32-bit floats that are cut into runs
    are declared, and added to their totals, in each pass."""
    each = vectors + 3 if vectors > 1 else 1
    taps = [taps for each in passes for taps in each.taps]
    per_point = {1: each, 2: 1}
    lines = sum(len(one.points) * per_point.get(one.together, vectors * one.together) for one in taps)
    if cut:
        lines += points + sum(len(each.points) * (1 + vectors) for each in passes)
    return lines + points * vectors > LONG


@dataclass(frozen=True)
class OwnSums:
    """How a result of merged groups is added up from the inputs of its own group alone: zeros stand between groups, and
    what is not finite in one of them must not reach the others. Counters: point, lane, k taps, c inputs."""

    lanes: int  # that count
    inputs: str  # C of the first input of the lane's group
    rows: tuple[Range, ...]
    taps: Range
    place: str  # C of a tap's place along the points, where some lie outside; else nothing
    size: int  # of the image along them
    of_group: Range
    x: str
    w: str


@dataclass(frozen=True)
class Tile:
    """What the macro `tile` of tile.c.j2 prints. With totals, what is added up inside the loops around a pass is a sum
    of its own, which is added to a total of 32 bits."""

    lanes: int
    points: int
    vectors: int
    x_step: int  # from point to point
    passes: tuple[Pass, ...]
    epilogue: Epilogue
    w_last: int = 0  # lanes of the last vector of weights that may be read; 0: all
    ahead: int = 0  # floats from weights that are used to those that are fetched into a cache meanwhile; 0: nothing is
    stored: DType = f32  # of the weights
    dtype: DType = f32
    totals: bool = False
    own: OwnSums | None = None

    @property
    def long(self) -> bool:
        """Is so much unrolled that its parts may be functions?"""
        return is_long(self.passes, self.points, self.vectors, self.cut)

    @property
    def cut(self) -> bool:
        """Are sums of 32-bit floats cut into runs?"""
        return self.totals and self.dtype is f32

    def sum(self, point: int, vector: int) -> str:
        return accumulator(point, vector, self.vectors, self.long)

    def total(self, point: int, vector: int) -> str:
        """C of what sums of runs are added to."""
        return f"{named('totals')}[{point * self.vectors + vector}]" if self.long else f"t{point}_{vector}"

    def added(self, point: int, vector: int) -> str:
        """C of a total and the sum of a run."""
        name = "mcc_add" if self.dtype is f32 else "mcc_add_total"
        return f"{name}_{self.of}({self.total(point, vector)}, {self.sum(point, vector)})"

    def rounded(self, point: int, vector: int) -> str:
        """C of a total in the type of the sums."""
        total = self.total(point, vector)
        return total if self.dtype is f32 else f"mcc_round_total_{self.of}({total})"

    @property
    def total_type(self) -> str:
        return self.vector if self.dtype is f32 else f"mcc_total_{self.of}"

    @property
    def total_starts(self) -> Sequence[str]:
        """C of what the totals of a point begin with."""
        return self.epilogue.starts if self.dtype is f32 else ["none"] * self.vectors

    def weights(self, vector: int, step: int = 0, points: int = 1) -> str:
        """C that loads a vector of weights for so many points, `step` floats after those of the first step."""
        place = f"wp + {at}" if (at := step + vector * self.lanes) else "wp"
        if self.w_last and vector == self.vectors - 1:
            return f"mcc_load_part_{self.of}({place}, {self.w_last})"
        how = "kept" if points > 1 and self.stored is f32 else f"load_{narrow(self.stored, self.dtype)}".rstrip("_")
        return f"mcc_{how}_{self.of}({place})"

    @property
    def seen(self) -> str:
        """C that is not finite where the first sum of any point is not."""
        sums = [self.sum(point, 0) for point in range(self.points)]
        return reduce(lambda so_far, one: f"mcc_add_{self.of}({so_far}, {one})", sums)

    def paired(self, taps: Taps) -> bool:
        """Is the innermost loop one of mcc_vec_helium.h?"""
        lies = self.stored is self.dtype and not self.w_last and taps.w_step == self.lanes * self.vectors
        return taps.together == 2 and lies and (len(taps.points), self.vectors) in PAIRED

    def pairs(self, taps: Taps) -> str:
        """C of such a loop."""
        size = f"{len(taps.points)}x{self.vectors}"
        sums = [self.sum(point, vector) for point in taps.points for vector in range(self.vectors)]
        inner = taps.loops[-1]
        begin, end = map(marked_name, (inner.begin, inner.limit))
        steps = f"(({end}) - ({begin})) / 2" if inner.end else str(inner.extent // 2)
        arguments = [*sums, "xp", str(self.x_step), "wp", steps]
        return called(f"MCC_VEC_SUMS_{size}", arguments) + ";"

    def weight(self) -> str:
        """C of the weight at `wp` alone."""
        return f"mcc_load_part_{narrow(self.stored, self.dtype)}{self.of}(wp, 1)[0]"

    def anew(self, points: int) -> int:
        """How many of its vectors of weights, the first ones, are read anew for each of so many points, as part of a
        product: where sums, weights and the numbers of two points are more than the registers. Only vectors of 64 bytes
        have tiles of that size, whose numbers `best_tile` takes to be repeated as they are read."""
        if self.lanes * FLOAT < 64 or self.stored is not f32:
            return 0
        missing = points * self.vectors + self.vectors + 2 - WIDEST_REGISTERS
        return min(max(missing, 0), self.vectors - 1)

    @property
    def vector(self) -> str:
        return f"mcc_{self.of}"

    @property
    def element(self) -> str:
        """The C type of an element of a vector."""
        return "float" if self.dtype is f32 else "float16_t"

    @property
    def of(self) -> str:
        return f"{self.dtype}x{self.lanes}"

    @property
    def number(self) -> str:
        """The C type of a number in memory."""
        return self.dtype.storage_c

    @property
    def zero(self) -> str:
        return "0.0f" if self.dtype is f32 else "0u"
