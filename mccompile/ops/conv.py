"""Conv: convolution in any number of spatial dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.dtypes import f32
from ..base.tensor import TensorType
from ..expr.ir import apply, cast, operand
from ..kinds.conv import Conv as ConvKind
from .api import ANCHOR, Fact, Invalid, Lowering, Operator, Site
from .window import Window


@dataclass(frozen=True)
class Conv(Operator):
    name = "Conv"
    versions = (1, 11, 22)
    fusion = ANCHOR
    auto_pad: str = "NOTSET"
    dilations: tuple[int, ...] | None = None
    group: int = 1
    kernel_shape: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def kind(self, site: Site) -> ConvKind:
        x, w = site.shape(0), site.shape(1)
        if len(x) != len(w) or len(x) < 3:
            raise Invalid(f"x {site.type(0)} and w {site.type(1)} do not have the same rank of at least 3")
        if self.kernel_shape and tuple(self.kernel_shape) != w[2:]:
            raise Invalid(f"kernel_shape {self.kernel_shape} is not that of the weights {site.type(1)}")
        if self.group < 1 or x[1] != w[1] * self.group or w[0] % self.group:
            raise Invalid(f"x {site.type(0)} and w {site.type(1)} do not fit in {self.group} groups")
        window = Window.of(x[2:], w[2:], self.strides, self.dilations, self.pads, self.auto_pad)
        dtype = site.type(0).dtype
        accumulator = f32 if dtype.is_narrow_float else dtype
        epilogue = None
        element = cast(operand(0, accumulator), dtype)
        if site.has(2):
            epilogue = apply("add", element, operand(1, dtype))
        elif accumulator is not dtype:
            epilogue = element
        return ConvKind(window.strides, window.dilations, window.pads, self.group, accumulator, epilogue)

    def infer(self, site: Site) -> list[Fact]:
        kind = self.kind(site)
        if site.type(1).dtype is not site.type(0).dtype:
            raise Invalid(f"x is {site.type(0)} but w is {site.type(1)}")
        if site.has(2) and site.type(2) != TensorType(site.type(0).dtype, site.shape(1)[:1]):
            raise Invalid(f"the bias {site.type(2)} does not fit the weights {site.type(1)}")
        return [Fact(TensorType(site.type(0).dtype, kind.out_shape(site.shape(0), site.shape(1))))]

    def lower(self, to: Lowering) -> None:
        ins = [to.input(0), to.input(1)]
        type = to.type()
        if to.has(2):
            bias = to.input(2)
            channels = to.reshape(bias, (type.shape[1], *(1 for _ in type.shape[2:])))
            ins.append(channels.broadcast_to(type.shape))
        to.set(0, to.call(self.kind(to.site), ins, type)[0])
