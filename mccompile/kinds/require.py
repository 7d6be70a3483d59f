"""require: every element of a bool tensor must be true; else the run ends with the status MCC_ERR_SIZE.

For sizes that are computed at run time and must be what the model declares. It has no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..base.dtypes import bool_
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class Require(Kind):
    name: ClassVar[str] = "require"
    roles: ClassVar[tuple[str, ...]] = ("x",)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or outs or ins[0].dtype is not bool_:
            return "require takes one tensor of bool and has no result"
        return ""
