"""What becomes of sums that tiles of vectors hold in registers: C statements in front of them and behind them.

Sums begin with what the epilogue adds to all of them, mostly a bias, where it takes nothing else of them. Invariant:
nothing beyond the lanes that count is read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...base.dtypes import DType, bool_, f32
from ...base.marked import named
from ...expr.ir import Apply, Expr, operand, rebuild, walk
from ...expr.vector_c import to_vector_statements, uses_math
from ..loops import index_c
from .vector_loops import narrow, repeated

NONE = -1


@dataclass(frozen=True)
class Reference:
    """An operand of the epilogue, or the result: pointer, C of the index of point 0 in vector 0, and the steps to the
    next point and lane (where 16-bit floats are computed with, 0 or 1; the result may have any). Points may be those of
    several rows of `width` points, `row` apart."""

    pointer: str
    index: str
    point: int
    lane: int
    row: int = 0
    width: int = 1 << 30
    stored: DType = f32

    def offset(self, point: int) -> int:
        return point // self.width * self.row + point % self.width * self.point

    def along(self, counters: Sequence[str]) -> Reference:
        """The same at the point that counters of rows and columns of the tile say."""
        steps = [self.row if name == "row" else self.point for name in counters]
        return self if self.stays else replace(self, index=index_c([1, *steps], [self.index, *counters]))

    @property
    def stays(self) -> bool:
        """Is it the same for all points?"""
        return not self.point and not self.row


@dataclass(frozen=True)
class Epilogue:
    """What becomes of sums: statements in front of them, C of what those of each vector begin with, statements behind
    them, and those that turn each accumulator into a stored result."""

    before: tuple[str, ...]
    starts: tuple[str, ...]
    hoisted: tuple[str, ...]
    stores: tuple[str, ...]
    declared: tuple[str, ...]  # what the last of them may read of those before


def accumulator(point: int, vector: int, vectors: int, long: bool) -> str:
    """C of the sum of a point and vector: a name of its own, or, in tiles so long that their parts may be functions, an
    element of an array, which these are handed."""
    return f"{named('acc')}[{point * vectors + vector}]" if long else f"a{point}_{vector}"


def epilogue_statements(
    expr: Expr | None,
    lanes: int,
    points: int,
    vectors: int,
    last: int,
    y: Reference,
    extras: Sequence[Reference],
    dtype: DType = f32,
    sums: bool = False,
    long: bool = False,
) -> Epilogue:
    """The last vector has `last` lanes that count; nothing beyond them is read or written.
    `long` is for `accumulator`."""
    of = f"{dtype}x{lanes}"
    before: list[str] = []
    hoisted: list[str] = []
    stores: list[str] = []
    declared: list[str] = []
    first = _begun_with(expr, extras) if sums else NONE
    begin = extras[first] if first != NONE else None
    starts = tuple(f"{begin.pointer}_{v if begin.lane else 0}" if begin else "zero" for v in range(vectors))
    if expr is not None and begin is not None:
        expr = rebuild(expr, lambda node: operand(0, f32) if _adds(node, first) else None)

    def load(reference: Reference, point: int, vector: int) -> str:
        step = reference.offset(point) + vector * lanes * reference.lane
        begin = "" if reference.index == "0" and step else reference.index
        place = " + ".join(filter(None, (begin, str(step) if step else "")))
        count = last if vector == vectors - 1 else lanes
        if reference.stored is bool_:
            return f"mcc_load_mask_i32x{lanes}({named(reference.pointer)} + {place}, {reference.lane}, {count})"
        if not reference.lane:
            return repeated(of, f"{named(reference.pointer)}[{place}]", reference.stored, dtype)
        kind = narrow(reference.stored, dtype) + of
        if reference.lane != 1:
            return f"mcc_load_apart_{kind}({named(reference.pointer)} + {place}, {reference.lane}, {count})"
        if count < lanes:
            return f"mcc_load_part_{kind}({named(reference.pointer)} + {place}, {last})"
        return f"mcc_load_{kind}({named(reference.pointer)} + {place})"

    for number, extra in enumerate(extras):
        if extra.stays:
            for vector in range(vectors if extra.lane else 1):
                kind = f"i32x{lanes}" if extra.stored is bool_ else of
                declared.append(f"mcc_{kind} {extra.pointer}_{vector}")
                line = f"const {declared[-1]} = {load(extra, 0, vector)};"
                (before if number == first else hoisted).append(line)

    def finished(element: str, y: Reference, extras: Sequence[Reference], point: int, vector: int) -> list[str]:
        operands = [element]
        for extra in extras:
            known = named(f"{extra.pointer}_{vector if extra.lane else 0}")
            operands.append(known if extra.stays else load(extra, point, vector))
        lines, value = to_vector_statements(expr or operand(0, dtype), operands, lanes, dtype=dtype)
        step = y.offset(point) + vector * lanes * y.lane
        place = f"{named(y.pointer)} + {y.index}" + (f" + {step}" if step else "")
        if y.lane != 1:
            count = last if vector == vectors - 1 else lanes
            value = f"mcc_store_{narrow(y.stored, dtype)}{of}(lanes, {value});"
            one = f"({place})[lane * {y.lane}] = lanes[lane];"
            loop = f"for (mcc_index lane = 0; lane < {count}; ++lane) {one}"
            return ["{", *lines, f"{y.stored.storage_c} lanes[{lanes}];", value, loop, "}"]
        kind = narrow(y.stored, dtype) + of
        part = f"_part_{kind}({place}, {last}, " if vector == vectors - 1 and last < lanes else f"_{kind}({place}, "
        store = f"mcc_store{part}{value});"
        return ["{", *lines, store, "}"] if lines else [store]

    if points == 1 or (y.lane == 1 and (expr is None or not uses_math(expr))):
        for point in range(points):
            for vector in range(vectors):
                stores += finished(accumulator(point, vector, vectors, long), y, extras, point, vector)
        return Epilogue(tuple(before), starts, tuple(hoisted), tuple(stores), tuple(declared))

    # What is long is written once and run in a loop over the points, whose sums wait in memory.
    stores.append(f"mcc_{of} sums[{points * vectors}];")
    for number in range(points * vectors):
        stores.append(f"sums[{number}] = {accumulator(*divmod(number, vectors), vectors, long)};")
    width = min(y.width, points)
    counters = [name for name, count in (("row", points // width), ("column", width)) if count > 1]
    for name, count in (("row", points // width), ("column", width)):
        if count > 1:
            stores.append(f"for (mcc_index {name} = 0; {name} < {count}; ++{name}) {{")
    along = [reference.along(counters) for reference in (y, *extras)]
    place = index_c([width * vectors if name == "row" else vectors for name in counters], counters)
    for vector in range(vectors):
        element = f"sums[{place} + {vector}]" if vector else f"sums[{place}]"
        stores += finished(element, along[0], along[1:], 0, vector)
    stores += ["}" for _ in counters]
    return Epilogue(tuple(before), starts, tuple(hoisted), tuple(stores), tuple(declared))


def _begun_with(expr: Expr | None, extras: Sequence[Reference]) -> int:
    """Which operand sums can begin with instead of having it added in the end: one that is the same for all points, and
    without which the expression never takes the sum."""
    takers = [] if expr is None else [node for node in walk(expr) if operand(0, f32) in node.args]
    for number, extra in enumerate(extras):
        if takers and extra.stays and all(_adds(node, number) for node in takers):
            return number
    return NONE


def _adds(node: Expr, number: int) -> bool:
    """Is it the sum and an operand of the epilogue, added up?"""
    both = {operand(0, f32), operand(number + 1, f32)}
    return isinstance(node, Apply) and node.function == "add" and set(node.arguments) == both
