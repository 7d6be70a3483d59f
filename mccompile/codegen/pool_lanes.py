"""Pools of any rank in loops over lanes (lanes.py): the rows under a window are combined into a line, and neighbours in
the line into results.

Invariant: rows under a window are all there (that outside of the image changes nothing), and lines begin and end with
what windows reach beyond the image, so no loop over lanes asks what lies inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import Any

from ..base.dims import bounds, static
from ..base.dtypes import DType
from ..base.records import dataclass
from ..expr.code import Code
from ..expr.ir import Expr, apply, cast, operand
from ..expr.scalar_c import literal_c, load_c, store_c, to_statements
from ..kinds.pool import Pool
from ..program.ir import Call, View
from .lanes import SHORTEST, cuts, without_branches
from .loops import index_c
from .tap_lanes import Source, Taps
from .tiles import Range
from .windows import Axis, Sliding, any_axes, known

ALIGNED = 64  # bytes
SHORT = 40  # elements of a row
LINES = 8192  # bytes that lie in the first-level cache, beside what they are made of


@dataclass(frozen=True)
class PoolLanes:
    """Counters: n batch, c channel, p0.. positions, k0.. elements of the window; at0.. are the places of the first
    elements. Lanes lie along `lane`, which is axis `axis` of the image, or channels where that is -1."""

    call: Call
    axis: int
    lane: Axis
    rows: tuple[tuple[int, Axis], ...]  # the other axes of the image

    @classmethod
    def of(cls, call: Call) -> PoolLanes | None:
        """Along the axis with the longest rows, if any is long enough; results that lie apart are stored one by one."""
        kind, x, y = call.of(Pool), call.ins[0], call.outs[0]
        if 0 in x.shape or 0 in y.shape:
            return None
        axes = known(any_axes(y, x, (), call.ins[1:], kind.kernel, kind.strides, kind.dilations, kind.pads, join=False))
        channels, steps = static(x.shape[1]), (static(x.strides[1]), static(y.strides[1]))
        extras = tuple(static(view.strides[1]) for view in call.ins[1:])
        every = [(-1, Sliding(channels, channels, 1, 1, 1, 0, *steps, 0, extras)), *enumerate(axes)]
        found = [(n, axis) for n, axis in every if axis.x == 1 and axis.out >= SHORTEST]
        if not found:
            return None
        number, lane = max(found, key=lambda one: (one[1].y == 1, one[1].out))
        return cls(call, number, lane, tuple(pair for pair in enumerate(axes) if pair[0] != number))

    @property
    def kind(self) -> Pool:
        return self.call.of(Pool)

    @property
    def total(self) -> DType:
        return self.kind.accumulator

    @property
    def stored(self) -> DType:
        return self.call.ins[0].buffer.dtype

    @property
    def under(self) -> int:
        """How many rows lie under a window."""
        return prod(axis.kernel for _, axis in self.rows)

    @property
    def slides(self) -> bool:
        return self.lane.kernel > 1 or self.lane.stride > 1 or self.lane.pad != 0

    @property
    def inside(self) -> bool:
        """Do all rows lie inside of the image?"""
        return all(axis.always_inside for _, axis in self.rows)

    @property
    def straight(self) -> bool:
        """Are neighbours read where they lie?"""
        return self.lane.stride == 1 and self.lane.always_inside and self.under == 1 and self.inside

    @property
    def parts(self) -> bool:
        """Are rows combined before elements that lie `stride` apart come together? That takes time per element, and in
        a short row the elements would wait for what has just been stored, unless there are too few of them apart."""
        stride, many = self.lane.stride, self.used
        return self.under > 1 and stride > 1 and (many > SHORT or many // stride < SHORTEST <= many)

    @cached_property
    def ahead(self) -> int:
        """How many lines are made before windows slide along the first of them: reading a line anew takes long right
        after it was stored, unless it is long."""
        lines = prod(axis.out for _, axis in self.rows)
        fits = self.total.nbytes(lines * self.phase * self.lane.stride) <= LINES
        return lines if fits and self.slides and not self.straight else 1

    @property
    def used(self) -> int:
        """Elements of a row that windows read."""
        axis = self.lane
        return max(0, min(axis.size, (axis.out - 1) * axis.stride - axis.pad + (axis.kernel - 1) * axis.dilation + 1))

    @property
    def before(self) -> int:
        return max(0, self.lane.pad)

    @cached_property
    def phase(self) -> int:
        """Elements of a line that lie `stride` apart in the row. Side by side: so windows a stride apart do, too."""
        axis = self.lane
        reach = (axis.out - 1) * axis.stride + self.place_of(axis.kernel - 1) + 1
        return -(-max(reach, self.before + self.used) // axis.stride)

    def place_of(self, tap: int) -> int:
        """In the row with what lies before it, of the first position."""
        return self.before - self.lane.pad + tap * self.lane.dilation

    # What lies in the workspace.

    @property
    def regions(self) -> list[tuple[str, DType, int]]:
        found = [] if self.inside else [("outside", self.stored, self.used)]
        if self.slides and not self.straight:
            found.append(
                ("lines" if self.ahead > 1 else "line", self.total, self.phase * self.lane.stride * self.ahead)
            )
        if self.parts:
            found.append(("row", self.total, self.used))
        if self.kind.algorithm == "average" and not self.count_along(self.axis, self.lane).isdigit():
            found.append(("counts", self.total, self.lane.out))
        return found

    @property
    def scratch(self) -> int:
        return sum(-(-dtype.nbytes(count) // ALIGNED) * ALIGNED for _, dtype, count in self.regions)

    def opening(self) -> list[str]:
        lines, begin = [], 0
        for name, dtype, count in self.regions:
            type, place = dtype.storage_c, f"((uint8_t *)scratch + {begin})" if begin else "scratch"
            lines.append(f"{type} *const {name} = ({type} *)(void *){place};")
            begin += -(-dtype.nbytes(count) // ALIGNED) * ALIGNED
            if name == "counts":
                lines += self.counted()
            else:
                lines.append(f"for (mcc_index i = 0; i < {count}; ++i) {name}[i] = {self.neutral(dtype)};")
        return lines

    def neutral(self, dtype: DType) -> str:
        return literal_c(dtype.low if self.kind.algorithm == "max" else 0, dtype)

    def counted(self) -> list[str]:
        """How many elements of a window count along the lanes, for every position."""
        axis, number = self.lane, self.axis
        return [
            f"for (mcc_index p{number} = 0; p{number} < {axis.out}; ++p{number}) {{",
            *self.bounds_of(number, axis),
            f"counts[p{number}] = ({self.total.compute_c}){self.count_along(number, axis)};",
            "}",
        ]

    def bounds_of(self, number: int, axis: Axis) -> list[str]:
        at = f"at{number}"
        lines = [f"const mcc_index {at} = {axis.origin(f'p{number}')};"]
        if not axis.always_inside and not self.kind.count_include_pad:
            lines.append(f"const mcc_index first{number} = {axis.first_tap(at)};")
            lines.append(f"const mcc_index end{number} = {axis.end_tap(at)};")
        return lines

    def count_along(self, number: int, axis: Axis) -> str:
        """C of how many elements of a window count."""
        if axis.always_inside:
            return str(axis.kernel)
        if not self.kind.count_include_pad:
            return f"(end{number} - first{number})"
        padded = replace(axis, size=axis.size + self.kind.pads[number + len(self.kind.kernel)])
        last = (axis.out - 1) * axis.stride - axis.pad + (axis.kernel - 1) * axis.dilation
        return str(axis.kernel) if bounds(padded.size - last)[0] > 0 else f"({padded.end_tap(f'at{number}')})"

    # Loops.

    @cached_property
    def around(self) -> list[Range]:
        x = self.call.ins[0]
        sizes = [("n", static(x.shape[0])), *([] if self.axis < 0 else [("c", static(x.shape[1]))])]
        return [Range(name, size) for name, size in sizes if size > 1]

    @property
    def longest(self) -> Range | None:
        """The loop that workers share."""
        loops = [*self.around, *(Range(f"p{n}", axis.out) for n, axis in self.rows)]
        return max(loops, key=lambda loop: loop.extent, default=None)

    def shared(self, loop: Range) -> Range:
        longest = self.longest if self.call.workers > 1 else None
        return replace(loop, begin="begin", end="end") if longest is not None and longest == loop else loop

    def context(self, names: Sequence[str]) -> dict[str, Any]:
        rows = []
        for number, axis in self.rows:
            at, *ends = self.bounds_of(number, axis)
            first, end = ends if ends and self.kind.algorithm == "average" else ("", "")
            loop = self.shared(Range(f"p{number}", axis.out)).header
            at = at if self.placed(axis) else ""
            rows.append({"loop": loop, "at": at, "first": first, "end": end})
        finish, later = partial(self.finish, names), list[str]()
        ended = partial(self.combined, self.lane.out, cut=cuts(self.ends))
        if not self.slides:
            lines = ended([Source(self.under, self.row_term, finish, self.stored, self.term)])
        elif self.straight:
            lines = ended([Source(self.lane.kernel, self.straight_term, finish, self.stored, self.term)])
        else:
            across = Source(self.lane.kernel, self.line_term, finish, self.total)
            lines, later = self.line(), ended([across])
        of_line, made = self.line_of(), [*self.row_pointers(), *lines]
        return {
            "opening": self.opening(),
            "outer": [self.shared(loop) for loop in self.around],
            "rows": rows,
            "passes": [[*of_line, *made], [*of_line, *later]] if of_line else [[*made, *later]],
        }

    def line_of(self) -> list[str]:
        """Where the line of a row lies among several."""
        if self.ahead == 1:
            return []
        sizes = [axis.out for _, axis in self.rows]
        size = self.phase * self.lane.stride
        steps = [size * prod(sizes[number + 1 :]) for number in range(len(sizes))]
        place = index_c(steps, [f"p{number}" for number, _ in self.rows])
        return [f"{self.total.storage_c} *const line = lines + {place};"]

    @staticmethod
    def placed(axis: Axis) -> bool:
        return axis.x != 0 or not axis.always_inside

    def row_pointers(self) -> list[str]:
        """`under[k]`: where the rows under a window begin, which may be the row outside of the image."""
        x = self.call.ins[0]
        lines = [f"const {self.stored.storage_c} *under[{self.under}];", "mcc_index found = 0;"]
        tests, counters, strides = [], [], []
        for number, axis in self.rows:
            place = f"in{number}"
            lines.append(Range(f"k{number}", axis.kernel).header)
            origin = f"at{number}" if self.placed(axis) else "0"
            lines.append(f"const mcc_index {place} = {index_c([1, axis.dilation], [origin, f'k{number}'])};")
            tests += [] if axis.always_inside else [f"{place} >= 0 && {place} < {axis.size}"]
            counters.append(place)
            strides.append(axis.x)
        names = [loop.counter for loop in self.around]
        fixed = [static(x.strides["nc".index(name)]) for name in names]
        row = f"x + ({index_c([*fixed, *strides], [*names, *counters])})"
        lines.append(f"under[found++] = {' && '.join(tests) + f' ? {row} : outside' if tests else row};")
        return [*lines, *["}"] * len(self.rows)]

    def line(self) -> list[str]:
        """Rows become a line, in which elements that lie `stride` apart lie together."""
        stride, lines = self.lane.stride, list[str]()
        if self.parts:
            lines += self.combined(self.used, [Source(self.under, self.row_term, _to_row, self.stored, self.term)])
        wanted = {self.place_of(tap) % stride for tap in range(self.lane.kernel)}
        whole = self.used // stride
        for begin, end, count in ((0, stride, whole), (whole * stride, self.used, 1)):
            elements = [e for e in range(begin, end) if (e + self.before) % stride in wanted]
            if elements and count:
                lines += self.combined(count, [self.to_line(element) for element in elements])
        return lines

    def to_line(self, element: int) -> Source:
        def term(tap: int, turn: int, at: Code) -> str:
            place = Code(index_c([self.lane.stride], [at], element), loose=True)
            return f"row[{place.text}]" if self.parts else self.row_term(tap, turn, place)

        def end(at: Code, value: str) -> list[str]:
            return [f"line[{index_c([1], [at], self.in_line(element + self.before))}] = {value};"]

        return Source(1, term, end, self.total) if self.parts else Source(self.under, term, end, self.stored, self.term)

    def in_line(self, place: int) -> int:
        return place % self.lane.stride * self.phase + place // self.lane.stride

    # C of the element of a tap at a place.

    def row_term(self, tap: int, turn: int, at: Code) -> str:
        under = index_c([turn], ["turn"], tap)
        return load_c(self.stored, f"under[{under}]", at.text)

    def straight_term(self, tap: int, turn: int, at: Code) -> str:
        step = self.lane.dilation
        place = index_c([1, turn * step], [at, "turn"], tap * step - self.lane.pad)
        return load_c(self.stored, "under[0]", place)

    def line_term(self, tap: int, turn: int, at: Code) -> str:
        along = turn * self.lane.dilation // self.lane.stride
        return f"line[{index_c([1, along], [at, 'turn'], self.in_line(self.place_of(tap)))}]"

    def combined(self, count: int, sources: Sequence[Source], cut: bool = False) -> list[str]:
        combine = "max" if self.kind.algorithm == "max" else "add"
        return Taps(self.total, combine, self.neutral(self.total), self.lane.stride).combined(count, sources, cut)

    def term(self, element: Expr) -> Expr:
        """What is added up, or compared."""
        wide = cast(element, self.total)
        if self.kind.algorithm != "lp":
            return wide
        return apply("abs", wide) if self.kind.p == 1 else apply("mul", wide, wide)

    # Results.

    @property
    def ends(self) -> Expr:
        """What becomes of a total."""
        return without_branches(self.kind.epilogue or operand(0, self.total))

    def finish(self, names: Sequence[str], at: Code, value: str) -> list[str]:
        kind, type = self.kind, self.total.compute_c
        if kind.algorithm == "average":
            value = f"({value}) / {self.counts(at)}"
        made: list[str] = []
        if kind.algorithm == "lp" and kind.p == 2:
            made, value = to_statements(apply("sqrt", operand(0, self.total)), [f"({value})"])
        texts = [
            load_c(view.buffer.dtype, name, self.at(view, at))
            for view, name in zip(self.call.ins[1:], names[1:], strict=True)
        ]
        lines, result = to_statements(self.ends, ["total", *texts], local="v")
        y = self.call.outs[0]
        return [*made, f"const {type} total = {value};", *lines, store_c(y.buffer.dtype, "y", self.at(y, at), result)]

    def counts(self, at: Code) -> str:
        """C of how many elements a mean is of."""
        parts = [self.count_along(number, axis) for number, axis in self.rows]
        known = prod(int(part) for part in parts if part.isdigit())
        parts = [part for part in parts if not part.isdigit()]
        along = self.count_along(self.axis, self.lane)
        known *= int(along) if along.isdigit() else 1
        factors = ([literal_c(known, self.total)] if known > 1 or not parts else []) + [
            f"({self.total.compute_c}){part}" for part in parts
        ]
        return f"({' * '.join(factors + ([] if along.isdigit() else [f'counts[{at.text}]']))})"

    def at(self, view: View, at: Code) -> str:
        steps = [static(stride) for stride in view.strides]
        names = [loop.counter for loop in self.around]
        along = steps[1] if self.axis < 0 else steps[self.axis + 2]
        fixed = [steps["nc".index(name)] for name in names]
        positions = [f"p{number}" for number, _ in self.rows]
        return index_c([*fixed, *(steps[n + 2] for n, _ in self.rows), along], [*names, *positions, at])


def _to_row(at: Code, value: str) -> list[str]:
    return [f"row[{at.text}] = {value};"]
