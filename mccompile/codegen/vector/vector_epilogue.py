"""What becomes of sums that tiles of vectors hold in registers: C statements in front of them and behind them.

Sums begin with what the epilogue adds to all of them, mostly a bias, where it takes nothing else of them. Invariant:
nothing beyond the lanes that count is read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...base.dtypes import DType, bool_, f32
from ...base.marked import named
from ...base.records import dataclass
from ...expr.ir import Apply, Expr, operand, rebuild, walk
from ...expr.vector_c import NARROW, to_vector_statements, uses_math
from ..loops import index_c
from .vector_loops import narrow, repeated

NONE = -1
SQUARE = 8  # at most so many vectors are transposed together
MOST_ACROSS = 3  # columns beyond the last square tile that are stored lane by lane; more take a tile of their own
Statements = Callable[["Reference", Sequence["Reference"], str, int, int], list[str]]


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
    first = _begun_with(expr, extras) if sums else NONE
    begin = extras[first] if first != NONE else None
    starts = tuple(f"{begin.pointer}_{v if begin.lane else 0}" if begin else "zero" for v in range(vectors))
    if expr is not None and begin is not None:
        expr = rebuild(expr, lambda node: operand(0, f32) if _adds(node, first) else None)
    tile = _Tile(expr, lanes, points, vectors, last, y, tuple(extras), dtype, long)
    before: list[str] = []
    hoisted: list[str] = []
    declared: list[str] = []
    for number, extra in enumerate(extras):
        if extra.stays:
            for vector in range(vectors if extra.lane else 1):
                kind = f"i32x{lanes}" if extra.stored is bool_ else tile.of
                declared.append(f"mcc_{kind} {extra.pointer}_{vector}")
                line = f"const {declared[-1]} = {tile.load(extra, 0, vector)};"
                (before if number == first else hoisted).append(line)
    short = points == 1 or (y.lane == 1 and (expr is None or not uses_math(expr)))
    stores = tile.one_by_one() if short else tile.in_loops()
    return Epilogue(tuple(before), starts, tuple(hoisted), tuple(stores), tuple(declared))


@dataclass(frozen=True)
class _Tile:
    """Statements that make stored results of the sums of a tile."""

    expr: Expr | None
    lanes: int
    points: int
    vectors: int
    last: int
    y: Reference
    extras: tuple[Reference, ...]
    dtype: DType
    long: bool

    @property
    def of(self) -> str:
        return f"{self.dtype}x{self.lanes}"

    def count(self, vector: int) -> int:
        """How many lanes of it count."""
        return self.last if vector == self.vectors - 1 else self.lanes

    def load(self, reference: Reference, point: int, vector: int) -> str:
        step = reference.offset(point) + vector * self.lanes * reference.lane
        begin = "" if reference.index == "0" and step else reference.index
        place = " + ".join(filter(None, (begin, str(step) if step else "")))
        count = self.count(vector)
        if reference.stored is bool_:
            return f"mcc_load_mask_i32x{self.lanes}({named(reference.pointer)} + {place}, {reference.lane}, {count})"
        if not reference.lane:
            return repeated(self.of, f"{named(reference.pointer)}[{place}]", reference.stored, self.dtype)
        kind = narrow(reference.stored, self.dtype) + self.of
        if reference.lane != 1:
            return f"mcc_load_apart_{kind}({named(reference.pointer)} + {place}, {reference.lane}, {count})"
        if count < self.lanes:
            return f"mcc_load_part_{kind}({named(reference.pointer)} + {place}, {count})"
        return f"mcc_load_{kind}({named(reference.pointer)} + {place})"

    def place(self, y: Reference, point: int, vector: int) -> str:
        step = y.offset(point) + vector * self.lanes * y.lane
        return f"{named(y.pointer)} + {y.index}" + (f" + {step}" if step else "")

    def finished(self, element: str, extras: Sequence[Reference], point: int, vector: int) -> tuple[list[str], str]:
        """Statements, and C of the result in the end."""
        operands = [element]
        for extra in extras:
            known = named(f"{extra.pointer}_{vector if extra.lane else 0}")
            operands.append(known if extra.stays else self.load(extra, point, vector))
        expr = self.expr or operand(0, self.dtype)
        return to_vector_statements(expr, operands, self.lanes, dtype=self.dtype)

    def stored(self, value: str, y: Reference, point: int, vector: int, lines: Sequence[str] = ()) -> list[str]:
        """A result to its place, after the statements that make it."""
        place, count = self.place(y, point, vector), self.count(vector)
        kind = narrow(y.stored, self.dtype) + self.of
        if y.lane != 1 and self.dtype is f32 and y.stored in (f32, *NARROW):
            store = f"mcc_store_apart_{kind}({place}, {y.lane}, {count}, {value});"
            return ["{", *lines, store, "}"] if lines else [store]
        if y.lane != 1:
            one = f"({place})[lane * {y.lane}] = lanes[lane];"
            loop = f"for (mcc_index lane = 0; lane < {count}; ++lane) {one}"
            across = [f"{y.stored.storage_c} lanes[{self.lanes}];", f"mcc_store_{kind}(lanes, {value});", loop]
            return ["{", *lines, *across, "}"]
        part = f"_part_{kind}({place}, {count}, " if count < self.lanes else f"_{kind}({place}, "
        store = f"mcc_store{part}{value});"
        return ["{", *lines, store, "}"] if lines else [store]

    def one_by_one(self) -> list[str]:
        lines = list[str]()
        for point in range(self.points):
            for vector in range(self.vectors):
                element = accumulator(point, vector, self.vectors, self.long)
                made, value = self.finished(element, self.extras, point, vector)
                lines += self.stored(value, self.y, point, vector, made)
        return lines

    def in_loops(self) -> list[str]:
        """What is long is written once and run in a loop over the points, whose sums wait in memory."""
        count = self.points * self.vectors
        lines = [f"mcc_{self.of} sums[{count}];"]
        for number in range(count):
            sum_of = accumulator(*divmod(number, self.vectors), self.vectors, self.long)
            lines.append(f"sums[{number}] = {sum_of};")
        width = min(self.y.width, self.points)
        if not self.transposes:
            return [*lines, *self.over_points(range(width), self.result)]
        square = min(SQUARE, self.lanes)
        whole = width // square * square
        if self.expr is not None:
            lines += self.over_points(range(width), self.in_place)
        lines += self.over_points(range(0, whole, square), self.transposed)
        if width - whole > MOST_ACROSS:
            return [*lines, *self.over_points(range(width - square, width, square), self.transposed)]  # some again
        return [
            *lines,
            *(line for at in range(whole, width) for line in self.over_points(range(at, at + 1), self.across)),
        ]

    @property
    def transposes(self) -> bool:
        """Do lanes lie apart in the result and points side by side, so that square tiles are transposed?"""
        y = self.y
        wide = min(y.width, self.points) >= min(SQUARE, self.lanes)
        return wide and y.lane != 1 and y.point == 1 and y.stored is f32 and self.dtype is f32

    def over_points(self, columns: range, body: Statements) -> list[str]:
        """Loops over the rows of the tile and columns of them: `body` gets the result and the operands as they lie
        there, C of the sum, the first column and the vector."""
        width = min(self.y.width, self.points)
        loops = [("row", range(self.points // width)), ("column", columns)]
        loops = [(name, of) for name, of in loops if len(of) > 1]
        counters, lines = [name for name, _ in loops], list[str]()
        for name, of in loops:
            on = f"++{name}" if of.step == 1 else f"{name} += {of.step}"
            lines.append(f"for (mcc_index {name} = {of.start}; {name} < {of.stop}; {on}) {{")
        first = 0 if len(columns) > 1 else columns.start
        steps = [width * self.vectors if name == "row" else self.vectors for name in counters]
        place = index_c(steps, counters, first * self.vectors)
        along = [reference.along(counters) for reference in (self.y, *self.extras)]
        for vector in range(self.vectors):
            element = f"sums[{place} + {vector}]" if vector else f"sums[{place}]"
            lines += body(along[0], along[1:], element, first, vector)
        return [*lines, *("}" for _ in loops)]

    def result(self, y: Reference, extras: Sequence[Reference], element: str, point: int, vector: int) -> list[str]:
        made, value = self.finished(element, extras, point, vector)
        return self.stored(value, y, point, vector, made)

    def in_place(self, _: Reference, extras: Sequence[Reference], element: str, point: int, vector: int) -> list[str]:
        made, value = self.finished(element, extras, point, vector)
        line = f"{element} = {value};"
        return ["{", *made, line, "}"] if made else [line]

    def transposed(self, y: Reference, _: Sequence[Reference], element: str, point: int, vector: int) -> list[str]:
        place = self.place(y, point, vector)
        return [f"mcc_store_transposed_{self.of}({place}, {y.lane}, {self.count(vector)}, &{element}, {self.vectors});"]

    def across(self, y: Reference, _: Sequence[Reference], element: str, point: int, vector: int) -> list[str]:
        return self.stored(element, y, point, vector)


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
