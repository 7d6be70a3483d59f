"""join_strings: each element is that of a followed by that of b."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import string
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind
from .made_strings import check_made


@dataclass(frozen=True)
class JoinStrings(Kind):
    roles: ClassVar[tuple[str, ...]] = ("a", "b")

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or ins[0] != ins[1] or ins[0].dtype is not string:
            return f"it joins two tensors of strings of one shape, not {[str(type) for type in ins]}"
        return check_made(outs, ins[0].shape)
