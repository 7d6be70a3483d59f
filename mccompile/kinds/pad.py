"""pad: x with elements added before and after it along any axes.

Modes: constant (operand 1, a scalar; zero without it), edge, reflect (without repeating the edge) and wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import maximum, minimum
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind, whole

MODES = ("constant", "edge", "reflect", "wrap")


@dataclass(frozen=True)
class Pad(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "value")
    before: tuple[int, ...]  # per axis, not negative
    after: tuple[int, ...]
    mode: str = "constant"

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(outs) != 1 or not 1 <= len(ins) <= (2 if self.mode == "constant" else 1) or self.mode not in MODES:
            return f"a pad of mode {self.mode} has not {len(ins)} operands and {len(outs)} results"
        x = ins[0]
        if len(self.before) != x.rank or len(self.after) != x.rank or min((*self.before, *self.after), default=0) < 0:
            return f"pads {self.before} and {self.after} do not fit {x}"
        shape = tuple(b + dim + a for b, dim, a in zip(self.before, x.shape, self.after, strict=True))
        if outs[0] != TensorType(x.dtype, shape):
            return f"the result is {outs[0]} instead of {TensorType(x.dtype, shape)}"
        if self.mode != "constant" and any(
            dim == 0 and b + a for b, dim, a in zip(self.before, x.shape, self.after, strict=True)
        ):
            return f"{x} has nothing to be padded with"
        if len(ins) == 2 and ins[1] != TensorType(x.dtype, ()):
            return f"the value is {ins[1]} instead of a scalar {x.dtype}"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        if self.mode != "constant":
            return (whole(ins[0]),)
        inside = tuple(
            (minimum(maximum(low - before, 0), dim), minimum(maximum(high - before, 0), dim))
            for (low, high), before, dim in zip(box, self.before, ins[0], strict=True)
        )
        return (inside, *(whole(shape) for shape in ins[1:]))
