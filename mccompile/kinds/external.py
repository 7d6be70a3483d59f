"""external: a C function of the user's own makes the results. Which elements it reads for which, nobody knows.

`attributes` are those of the operator: integers, floats, or text. `absent` are positions of operands that are not
there. A region of an accelerator is one, too: its function may fail, and says what it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind

Attributes = tuple[tuple[str, tuple[int, ...] | tuple[float, ...] | str], ...]


@dataclass(frozen=True)
class External(Kind):
    function: str
    include: str = ""  # path of the file that declares it; empty: a declaration is written
    attributes: Attributes = ()
    absent: tuple[int, ...] = ()
    workspace: int = 0
    align: int = 1
    strided: bool = False
    accelerator: str = ""  # whose region it is
    cycles: float = 0.0  # that its function takes; 0: nobody knows

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        return "" if outs else "it has no result"
