"""Softmax and normalizations from quantized tensors to quantized tensors: lower_qdq makes them out of DequantizeLinear,
operator, QuantizeLinear. What is computed is the definition of the kinds byte_softmax and byte_norm; all numbers that
depend on scales and weights are operands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from ..base.dims import static
from ..base.dtypes import i8, u8
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.byte_norm import ByteNorm
from ..kinds.byte_softmax import ByteSoftmax
from .api import Fact, Invalid, Lowering, Operator, Site
from .fixed_point import byte_type


@dataclass(frozen=True)
class SoftmaxInteger(Operator):
    """Operands: those of the kind."""

    domain = "mccompile"
    axes: tuple[int, ...]

    def infer(self, site: Site) -> list[Fact]:
        x, zero = site.type(0), site.type(4)
        types = [site.type(i) for i in range(5)]
        reason = ByteSoftmax(self.axes).check(types, [TensorType(zero.dtype, x.shape)])
        if reason:
            raise Invalid(reason)
        return [Fact(TensorType(zero.dtype, x.shape))]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return replace(self, axes=tuple(sorted(order.index(axis) for axis in self.axes)))

    def lower(self, to: Lowering) -> None:
        to.set(0, to.call(ByteSoftmax(self.axes), [to.input(i) for i in range(5)], to.type())[0])


@dataclass(frozen=True)
class NormInteger(Operator):
    """Operands: those of the kind; gain and bias broadcast to x. With `groups`, the channels of x are so many groups,
    each of which is normalized with all that follows; `axes` say nothing then."""

    domain = "mccompile"
    channels_last: ClassVar[bool] = True
    same_layout: ClassVar[bool] = True
    measure: str
    to: int  # type of the result
    axes: tuple[int, ...] = ()
    groups: int = 0

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if x.dtype not in (i8, u8) or not x.is_static or any(not 0 <= axis < x.rank for axis in self.axes):
            raise Invalid(f"x {x} is not of 8-bit integers, or has no axes {self.axes}")
        return [Fact(TensorType(byte_type(self.to), x.shape))]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return None if self.groups else replace(self, axes=tuple(sorted(order.index(axis) for axis in self.axes)))

    def lower(self, to: Lowering) -> None:
        x, target = to.input(0), byte_type(self.to)
        numbers = [to.input(i).broadcast_to(x.shape) for i in (3, 4)]
        axes = self.axes
        if self.groups:
            shape = (x.shape[0], self.groups, static(x.shape[1]) // self.groups, *x.shape[2:])
            x, *numbers = (to.reshape(view, shape) for view in (x, *numbers))
            axes = tuple(range(2, len(shape)))
        ins = [x, to.input(1), to.input(2), *numbers, to.input(5)]
        made = to.call(ByteNorm(axes, self.measure, target), ins, TensorType(target, x.shape))[0]
        to.set(0, to.reshape(made, to.type().shape))
