"""Many elements combined into one, for a row of results in loops over lanes (lanes.py): C of sums and maxima of taps.

Invariant: pieces of rows may overlap, as every result is computed from what no result of the row is written to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from ..base.dtypes import DType
from ..base.records import dataclass
from ..expr.code import Code
from ..expr.ir import Expr, apply, operand
from ..expr.scalar_c import to_statements
from .lanes import LANES, covering_pieces, each_lane
from .loops import index_c
from .vector.vector_loops import chunks

AT_ONCE = 16  # taps that one expression combines
PLACE = "place"  # where the lanes of a loop begin


@dataclass(frozen=True)
class Source:
    """Taps that become one: C of a tap of a type, so many taps further in each `turn`, and what becomes of the total;
    `element` is what is made of each before."""

    taps: int
    term: Callable[[int, int, Code], str]
    end: Callable[[Code, str], list[str]]
    dtype: DType
    element: Callable[[Expr], Expr] = lambda tap: tap


@dataclass(frozen=True)
class Taps:
    """How they are combined, in a type, beginning with `start`. Turns are whole multiples of `stride` taps."""

    total: DType
    combine: str
    start: str
    stride: int

    def combined(self, count: int, sources: Sequence[Source], cut: bool) -> list[str]:
        """So many results of each of the sources, whose taps are as many; `cut` says that their ends make integers of
        floats."""
        lines, taps = [], sources[0].taps
        together = self.stride * max(1, AT_ONCE // self.stride)
        for chunk in chunks(PLACE, count, LANES):
            lines.append(chunk.header)
            for begin, many in covering_pieces(chunk.lanes, count):
                at = Code(index_c([1, 1], [PLACE, "lane"], begin), loose=True)
                if taps <= together:
                    lines += each_lane(many, self.ended(sources, range(taps), at), cut)
                else:
                    lines += self.in_turns(sources, at, many, together, cut)
            lines.append("}")
        return lines

    def in_turns(self, sources: Sequence[Source], at: Code, many: int, together: int, cut: bool) -> list[str]:
        """Some taps at a time: totals stay in the first-level cache."""
        turns, left = divmod(sources[0].taps, together)
        rest = range(turns * together, turns * together + left)
        names = [f"totals{number}" for number in range(len(sources))]
        return [
            "{",
            *(f"{self.total.compute_c} {name}[{many}];" for name in names),
            *each_lane(many, [f"{name}[lane] = {self.start};" for name in names]),
            f"for (mcc_index turn = 0; turn < {turns}; ++turn) {{",
            *each_lane(many, self.added(sources, names, together, at)),
            "}",
            *each_lane(many, self.ended(sources, rest, at, [f"{name}[lane]" for name in names]), cut),
            "}",
        ]

    def added(self, sources: Sequence[Source], names: Sequence[str], together: int, at: Code) -> list[str]:
        lines = []
        for number, (source, name) in enumerate(zip(sources, names, strict=True)):
            texts = [source.term(tap, together, at) for tap in range(together)]
            made, value = self.value(source, texts, f"{name}[lane]", f"t{number}_")
            lines += [*made, f"{name}[lane] = {value};"]
        return lines

    def ended(self, sources: Sequence[Source], taps: Sequence[int], at: Code, before: Sequence[str] = ()) -> list[str]:
        lines = []
        for number, source in enumerate(sources):
            texts = [source.term(tap, 0, at) for tap in taps]
            made, value = self.value(source, texts, before[number] if before else "", f"t{number}_")
            lines += [*made, *source.end(at, value)]
        return lines

    def value(self, source: Source, texts: Sequence[str], before: str, local: str) -> tuple[list[str], str]:
        """Taps combined, with what was combined before."""
        terms = [source.element(operand(number, source.dtype)) for number in range(len(texts))]
        if before:
            terms.insert(0, operand(len(texts), self.total))
        # On x86 the larger of two waits for the second number only, if it is given second.
        total = reduce(lambda total, term: apply(self.combine, term, total), terms)
        return to_statements(total, [*texts, before], local=local)
