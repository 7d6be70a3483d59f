"""ngram: how often each of a list of n-grams occurs in the rows of x[N,C], times its weight.

Operands x (i32, i64 or strings), grams (i64, or strings: all of one length, in ascending order, one after the other;
then those of the next length), places[G] (i64: the column of the result for each) and weights[G] (f32). Result f32
[N,columns]. Parts of an n-gram may lie up to `skips` + 1 apart, always equally. With `once` it counts once, however
often it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import f32, i32, i64, string
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Check, Kind, whole, within


@dataclass(frozen=True)
class Ngram(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "grams", "places", "weights")
    lengths: tuple[tuple[int, int], ...]  # length, and how many n-grams of it there are
    skips: int
    once: bool
    columns: int

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 4 or len(outs) != 1:
            return "an ngram has four operands and one result"
        x, grams, places, weights = ins
        count = sum(many for _, many in self.lengths)
        if x.rank != 2 or x.dtype not in (i32, i64, string):
            return f"x {x} is not of rows of integers or strings"
        elements = sum(length * many for length, many in self.lengths)
        if grams != TensorType(string if x.dtype is string else i64, (elements,)):
            return f"the n-grams {grams} do not fit {self.lengths}"
        if places != TensorType(i64, (count,)) or weights != TensorType(f32, (count,)):
            return f"places {places} and weights {weights} are not {count}"
        wanted = TensorType(f32, (x.shape[0], self.columns))
        return "" if outs[0] == wanted else f"the result is {outs[0]} instead of {wanted}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return ((box[0], (0, ins[0][1])), *(whole(shape) for shape in ins[1:]))

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        return (within(2, 0, self.columns - 1),)
