"""byte_norm: quantized numbers brought to mean 0 and deviation 1 (measure standardize), or to a mean square of 1 (rms),
over each group of elements that differ in `axes` only; then scaled, shifted and quantized.

Operands: x, of 8-bit integers; zero, its zero point; epsilon; gain and bias, of x's shape; shift. For a group of n
elements with v = x - zero, all in integers:

    D = n * v - sum(v)    V = n * sum(v * v) - sum(v)^2        (rms: without sum(v))
    N = D / sqrt(V + epsilon / 2^fraction), a multiple of 2^-places
    (high(N, gain) + bias) >> shift, saturated; high(a, b) = floor(a * b / 2^32)

V and D are exact. 1 / sqrt comes from mcc_inverse_root, as r * 2^(moved - 60), and N is high(D * 2^(moved + scale), r),
where D loses its lowest `dropped` bits: off by 2^-26 of the largest N possible at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import DType, i8, i32, i64, u8
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Check, Kind, whole, within

MEASURES = ("standardize", "rms")
LARGEST = 1 << 16  # group


@dataclass(frozen=True)
class Precision:
    """How many bits numbers have in groups of `count` elements, so that nothing overflows: V takes 16 bits and twice
    those of the count."""

    count: int

    @property
    def bits(self) -> int:
        return (self.count - 1).bit_length()

    @property
    def fraction(self) -> int:
        """Of V + epsilon, which stays below 2^61 where epsilon is below 2^60."""
        return 44 - 2 * self.bits

    @property
    def places(self) -> int:
        """Of N, which is sqrt(count) at most: below 2^28."""
        return 27 - -(-self.bits // 2)

    @property
    def scale(self) -> int:
        """What the root of 2^fraction and the places move D by, the 32 bits of `high` and the 60 of r apart."""
        return self.fraction // 2 + self.places - 28

    @property
    def dropped(self) -> int:
        return max(0, -self.scale)


@dataclass(frozen=True)
class ByteNorm(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "zero", "epsilon", "gain", "bias", "shift")
    axes: tuple[int, ...]
    measure: str
    target: DType  # of the result

    @property
    def grouped(self) -> tuple[int, ...]:
        return self.axes

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != len(self.roles) or len(outs) != 1:
            return f"it has the operands {', '.join(self.roles)} and one result"
        x = ins[0]
        if x.dtype not in (i8, u8) or self.target not in (i8, u8) or outs[0] != TensorType(self.target, x.shape):
            return f"x {x} and the result {outs[0]} are not alike, of 8-bit integers"
        numbers = [TensorType(x.dtype, ()), TensorType(i64, ()), *[TensorType(i32, x.shape)] * 2, TensorType(u8, ())]
        if list(ins[1:]) != numbers:
            return f"{', '.join(self.roles[1:])} are {', '.join(map(str, ins[1:]))}"
        if self.measure not in MEASURES or any(not 0 <= axis < x.rank for axis in self.axes):
            return f"axes {self.axes} are not those of {x}, or {self.measure} is not a measure"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        full = whole(ins[0])
        read = tuple(full[axis] if axis in self.axes else box[axis] for axis in range(len(full)))
        return (read, (), (), box, box, ())

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        return (within(2, 1, (1 << 60) - 1),)
