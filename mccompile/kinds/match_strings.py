"""match_strings: does a finite automaton accept the whole of each string?

Operands: x; the column of every byte (u8 [256]); the state that follows each state by column (u16 [states, columns]);
whether a state accepts (bool [states]). State 1 is the first one, state 0 has no way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import static
from ..base.dtypes import bool_, string, u8, u16
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Check, Kind, within


@dataclass(frozen=True)
class MatchStrings(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "classes", "next", "accepts")

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 4 or ins[0].dtype is not string or tuple(outs) != (TensorType(bool_, ins[0].shape),):
            return "it takes strings and an automaton, and gives bools"
        if ins[1] != TensorType(u8, (256,)) or ins[2].dtype is not u16 or ins[2].rank != 2:
            return f"the automaton is {ins[1]}, {ins[2]}"
        return "" if ins[3] == TensorType(bool_, ins[2].shape[:1]) else f"accepting states are {ins[3]}"

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        states, columns = map(static, ins[2].shape)
        return (within(1, 0, columns - 1), within(2, 0, states - 1))
