"""dft: discrete Fourier transforms of x[..., size, parts] along its axis before the last, where parts is 1 for real
numbers and 2 for complex ones.

Signals are cut or filled up with zeros to `length`. A forward transform gives all frequencies, or with `onesided` those
up to the half. An inverse one is divided by `length`; with `onesided` its operand has the frequencies up to the half
and its result is real. Operands: x, the numbers exp(-2 pi i k / length) as table[length, 2], and, where there is one, a
window[size] that the signal is multiplied with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim
from ..base.dtypes import DType, f32, f64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind, whole


@dataclass(frozen=True)
class Dft(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "table", "window")
    length: int
    inverse: bool = False
    onesided: bool = False

    @property
    def bins(self) -> int:
        """How many numbers come out."""
        return self.length // 2 + 1 if self.onesided and not self.inverse else self.length

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) not in (2, 3) or len(outs) != 1 or ins[0].rank < 2:
            return "a dft has operands x, table and maybe a window, and one result"
        x, table = ins[:2]
        if not (x.dtype.is_float or x.dtype.is_integer) or x.shape[-1] not in (1, 2) or self.length < 1:
            return f"x {x} is not of real or complex numbers"
        if self.onesided and x.shape[-1] != (2 if self.inverse else 1):
            return f"x {x} does not have the parts of a onesided transform"
        if table != TensorType(work_type(x.dtype), (self.length, 2)):
            return f"the table {table} does not fit x {x} and length {self.length}"
        if len(ins) == 3 and (self.inverse or ins[2] != TensorType(result_type(x.dtype), x.shape[-2:-1])):
            return f"the window {ins[2]} does not fit x {x}"
        parts = 1 if self.onesided and self.inverse else 2
        wanted = TensorType(result_type(x.dtype), (*x.shape[:-2], self.bins, parts))
        return "" if outs[0] == wanted else f"the result is {outs[0]} instead of {wanted}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return ((*box[:-2], *whole(ins[0][-2:])), *(whole(shape) for shape in ins[1:]))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        around = outs[0].count // (self.bins * (1 if self.onesided and self.inverse else 2))
        return around * self.length * self.length.bit_length()


def result_type(dtype: DType) -> DType:
    """What comes out of such numbers: integers are taken as floats."""
    return dtype if dtype.is_float else f32


def work_type(dtype: DType) -> DType:
    """What transforms of such numbers are computed in."""
    return f64 if dtype is f64 else f32
