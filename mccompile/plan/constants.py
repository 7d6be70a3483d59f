"""What a plan says of its constants: where each lies in the blob, and what init checks of them."""

from __future__ import annotations

from ..base.constant import Constant
from ..base.dtypes import DType
from ..base.records import dataclass


@dataclass(frozen=True)
class Entry:
    """One constant of the blob, as the kernel wants it."""

    name: str
    offset: int  # from the start of the blob's data
    contents: Constant
    packing: str  # empty: as in the model


@dataclass(frozen=True)
class Checked:
    """What constants must hold so that no access leaves its memory (kinds/api.py), where they lie in the blob."""

    function: str
    dtype: DType
    offsets: tuple[int, ...]  # of the operands, from the start of the blob's data
    count: int  # elements of each
    numbers: tuple[int, ...]
