"""count_ngrams: how often each known sequence of elements occurs in each row.

Operands: x [rows, columns] of i64 or strings; the known sequences, one after the other (of x's type), grouped by length
and in ascending order within a group; and for each the column of the result that it counts in (i32). Elements of a
sequence may lie up to `skips` elements apart, evenly; sequences of one element are counted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..base.dtypes import f32, i32, i64, string
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class CountNgrams(Kind):
    name: ClassVar[str] = "count_ngrams"
    roles: ClassVar[tuple[str, ...]] = ("x", "known", "columns")
    groups: tuple[tuple[int, int], ...]  # length of sequences, and how many there are
    skips: int = 0

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 3 or ins[0].rank != 2 or ins[0].dtype not in (i64, string) or len(outs) != 1:
            return "it takes a matrix, sequences, and their columns"
        elements = sum(length * count for length, count in self.groups)
        if ins[1] != TensorType(ins[0].dtype, (elements,)):
            return f"{self.groups} are not in {ins[1]}"
        if ins[2] != TensorType(i32, (sum(count for _, count in self.groups),)):
            return f"the columns of {self.groups} are {ins[2]}"
        fits = outs[0].dtype is f32 and outs[0].rank == 2 and outs[0].shape[0] == ins[0].shape[0]
        return "" if fits else f"the counts are {outs[0]}"
