"""split_strings: the pieces of every string between delimiters, or its words where the delimiter is empty, or its
longest runs of the bytes that are `kept`, where these are so many characters.

Operand x is a vector. Result 0 has a row for each string, with room for a number of pieces, blank strings behind them;
result 1 (i64) says how many pieces each string has, result 2 (i64, one element) the most of them. Pieces for which
there is no room are counted and not written. Pieces point into the strings they are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i64, string
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class SplitStrings(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    delimiter: str = ""
    splits: int | None = None  # at most
    kept: tuple[tuple[int, int], ...] = ()  # the first and the last byte of ranges
    least: int = 1  # characters of a run
    blank: str = ""

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or ins[0].dtype is not string or ins[0].rank != 1 or len(outs) != 3:
            return "it splits a vector of strings"
        if outs[0].dtype is not string or outs[0].rank != 2 or outs[0].shape[:1] != ins[0].shape:
            return f"the pieces of {ins[0]} are {outs[0]}"
        if outs[1] != TensorType(i64, ins[0].shape) or outs[2] != TensorType(i64, (1,)):
            return f"the counts are {outs[1]} and {outs[2]}"
        return ""
