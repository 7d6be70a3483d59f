"""DeformConv: convolution whose taps are moved by an operand."""

from __future__ import annotations

from math import prod

from ..base.dims import static
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.conv import Conv as ConvKind
from ..kinds.deform_conv import DeformConv as DeformConvKind
from .api import ANCHOR, Fact, Invalid, Lowering, Operator, Site, Unsupported
from .conv import FLOATS, along_channels, as_int, check_operands, sum_type, with_bias
from .rules.window import Window


@dataclass(frozen=True)
class DeformConv(Operator):
    """Operands: x, w, offset, bias, mask."""

    no_gradient = "its offsets choose what is read, and their gradient is not written out"
    versions = (19, 22)
    fusion = ANCHOR
    dilations: tuple[int, ...] | None = None
    group: int = 1
    kernel_shape: tuple[int, ...] | None = None
    offset_group: int = 1
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def infer(self, site: Site) -> list[Fact]:
        x, w = site.type(0), site.type(1)
        check_operands(site, self.kernel_shape, self.group)
        if not all(isinstance(size, int) for size in x.shape[1:]):
            why = f"how large the images of x {x} are is known only at run time"
            raise Unsupported(why, "fix all but their number with --dim or --shape")
        if x.dtype not in FLOATS or any(site.has(i) and site.type(i).dtype is not x.dtype for i in range(5)):
            raise Invalid(f"x {x} and the other operands are not of one float type")
        channels = static(x.shape[1])
        if channels != static(w.shape[1]) * self.group or as_int(w.shape[0]) % self.group:
            raise Invalid(f"x {x} and w {w} do not fit in {self.group} groups")
        if self.offset_group < 1 or channels % self.offset_group:
            raise Invalid(f"{channels} channels do not divide into {self.offset_group} offset groups")
        window = self.window(site)
        plain = ConvKind(window.strides, window.dilations, window.pads, self.group, sum_type(x.dtype))
        shape = plain.out_shape(x.shape, w.shape)
        count = self.offset_group * prod(w.static_shape[2:])
        self._check(site, 2, "offset", (x.shape[0], count * (x.rank - 2), *shape[2:]))
        self._check(site, 3, "bias", (w.shape[0],))
        self._check(site, 4, "mask", (x.shape[0], count, *shape[2:]))
        return [Fact(TensorType(x.dtype, shape))]

    def window(self, site: Site) -> Window:
        x, w = site.shape(0), site.shape(1)
        return Window.of(x[2:], w[2:], self.strides, self.dilations, self.pads, "NOTSET")

    def _check(self, site: Site, index: int, what: str, shape: tuple[object, ...]) -> None:
        if index == 2 and not site.has(2):
            raise Invalid("offset is missing")
        if site.has(index) and site.shape(index) != shape:
            raise Invalid(f"{what} {site.type(index)} has not the shape {list(shape)}")

    def lower(self, to: Lowering) -> None:
        type, window = to.type(), self.window(to.site)
        x, w, offset = (to.input(i) for i in range(3))
        kernel = w.type.static_shape[2:]
        rank, taps, groups, space = len(kernel), prod(kernel), self.offset_group, type.shape[2:]
        dtype = x.buffer.dtype
        ins = [x, to.reshape(w, (*w.shape[:2], taps))]
        ins.append(to.reshape(offset, (x.shape[0], groups, taps, rank, *space)))
        if to.has(4):
            ins.append(to.reshape(to.input(4), (x.shape[0], groups, taps, *space)))
        if to.has(3):
            ins.append(along_channels(to, to.input(3), type.shape))
        kind = DeformConvKind(
            kernel, window.strides, window.dilations, window.pads[:rank], self.group, sum_type(dtype), to.has(4),
            with_bias(dtype, to.has(3)),
        )  # fmt: skip
        to.set(0, to.call(kind, ins, type)[0])
