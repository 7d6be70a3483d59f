"""Conv, ConvInteger and ConvTranspose, in any number of spatial dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.dims import Dim, upper
from ..base.dtypes import SHORT, DType, bf16, f16, f32, f64, i32
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, apply, cast, operand
from ..kinds.api import Kind
from ..kinds.conv import Conv as ConvKind
from ..kinds.conv_transpose import ConvTranspose as ConvTransposeKind
from ..program.ir import View
from .api import ANCHOR, Fact, Invalid, Lowering, Operator, Site, Unsupported
from .rules.conv_backward import input_gradient, weight_gradient
from .rules.window import Window, window_sizes

if TYPE_CHECKING:
    from .rules.backward import Backward

FLOATS = (f16, bf16, f32, f64)


@dataclass(frozen=True)
class _Sliding(Operator, abstract=True):
    """Attributes of all convolutions."""

    fusion: ClassVar[str] = ANCHOR
    channels_last: ClassVar[bool] = True
    auto_pad: str = "NOTSET"
    dilations: tuple[int, ...] | None = None
    group: int = 1
    kernel_shape: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def check(self, site: Site, inputs: Callable[[Shape], Dim]) -> None:
        """Raises where the operands do not fit; `inputs` is how many channels of x weights of that shape are for."""
        check_operands(site, self.kernel_shape, self.group)
        if site.shape(0)[1] != inputs(site.shape(1)) or as_int(site.shape(1)[0]) % self.group:
            raise Invalid(f"x {site.type(0)} and w {site.type(1)} do not fit in {self.group} groups")

    def kind(self, site: Site) -> Kind:
        raise NotImplementedError

    def lower(self, to: Lowering) -> None:
        type = to.type()
        bias = [along_channels(to, to.input(2), type.shape)] if to.has(2) else []
        to.set(0, to.call(self.kind(to.site), [to.input(0), to.input(1), *bias], type)[0])


@dataclass(frozen=True)
class _Convolution(_Sliding, abstract=True):
    """What Conv and ConvInteger share: everything but element types and the operands after the weights."""

    def window(self, site: Site) -> Window:
        x, w = site.shape(0), site.shape(1)
        self.check(site, lambda w: w[1] * self.group)
        return Window.of(x[2:], w[2:], self.strides, self.dilations, self.pads, self.auto_pad)


@dataclass(frozen=True)
class Conv(_Convolution):
    versions = (1, 11, 22)

    def kind(self, site: Site) -> ConvKind:
        window = self.window(site)
        dtype = site.type(0).dtype
        total = sum_type(dtype)
        epilogue = with_bias(dtype, site.has(2))
        return ConvKind(window.strides, window.dilations, window.pads, self.group, total, epilogue)

    def infer(self, site: Site) -> list[Fact]:
        kind = self.kind(site)
        check_floats(site, site.shape(1)[0])
        return [Fact(TensorType(site.type(0).dtype, kind.out_shape(site.shape(0), site.shape(1))))]

    def gradient(self, back: Backward) -> None:
        window = self.window(back.site)
        x, of, rank = back.input(0), back.of(), len(window.kernel)
        sliding: dict[str, Any] = {"strides": window.strides, "dilations": window.dilations, "group": self.group}
        if back.wants(0):
            back.give(0, input_gradient(back, of, window.pads, sliding))
        if back.wants(1):
            back.give(1, weight_gradient(back, x, of, window.pads, back.shape(1), sliding))
        if back.wants(2):
            back.give(2, back.sum(of, [axis for axis in range(rank + 2) if axis != 1], keepdims=False))


@dataclass(frozen=True)
class ConvInteger(_Convolution):
    versions = (10,)

    def kind(self, site: Site) -> ConvKind:
        window = self.window(site)
        zeros = (site.has(2), site.has(3))
        return ConvKind(window.strides, window.dilations, window.pads, self.group, i32, None, *zeros)

    def infer(self, site: Site) -> list[Fact]:
        kind = self.kind(site)
        for index, name in ((0, "x"), (1, "w")):
            if site.type(index).dtype not in SHORT:
                raise Invalid(f"{name} is {site.type(index)}, not of 8 or 16-bit integers")
            if site.has(index + 2) and site.type(index + 2).dtype is not site.type(index).dtype:
                raise Invalid(f"{name} is {site.type(index)}, its zero point {site.type(index + 2)}")
        if site.has(2) and site.shape(2) not in ((), (1,)):
            raise Invalid(f"the zero point of x is {site.type(2)}, not one number")
        if site.has(3) and site.shape(3) not in ((), (1,), site.shape(1)[:1]):
            raise Invalid(f"the zero points {site.type(3)} do not fit the weights {site.type(1)}")
        return [Fact(TensorType(i32, kind.out_shape(site.shape(0), site.shape(1))))]

    def lower(self, to: Lowering) -> None:
        ins = [to.input(0), to.input(1)]
        if to.has(2):
            ins.append(to.reshape(to.input(2), ()))
        if to.has(3):
            ins.append(to.input(3).broadcast_to(to.input(1).shape[:1]))
        to.set(0, to.call(self.kind(to.site), ins, to.type())[0])


@dataclass(frozen=True)
class _Transposed(_Sliding, abstract=True):
    """What transposed convolutions share: everything but element types and the operands after the weights."""

    output_padding: tuple[int, ...] | None = None
    output_shape: tuple[int, ...] | None = None

    def kind(self, site: Site) -> ConvTransposeKind:
        x, w = site.shape(0), site.shape(1)
        self.check(site, lambda w: w[0])
        rank = len(x) - 2
        kernel, strides, dilations = window_sizes(rank, w[2:], self.strides, self.dilations)
        more = self.output_padding or (0,) * rank
        if len(more) != rank or min(more) < 0:
            raise Invalid(f"output_padding {more} is not {rank} numbers from 0 on")
        # Positions that the taps reach, and what output_padding adds.
        reached: list[Dim] = [
            stride * (size - 1) + extra + (k - 1) * dilation + 1
            for stride, size, extra, k, dilation in zip(strides, x[2:], more, kernel, dilations, strict=True)
        ]
        pads, space = self.cut(x[2:], reached, strides)
        return ConvTransposeKind(strides, dilations, pads, space, self.group, sum_type(site.type(0).dtype))

    def cut(self, size: Shape, reached: Sequence[Dim], strides: Sequence[int]) -> tuple[tuple[int, ...], Shape]:
        """How many positions are cut off before each axis, and the size of what is left."""
        rank = len(size)
        if self.auto_pad not in ("NOTSET", "", "SAME_UPPER", "SAME_LOWER", "VALID"):
            raise Invalid(f"auto_pad {self.auto_pad!r} is not NOTSET, SAME_UPPER, SAME_LOWER or VALID")
        same = self.auto_pad.startswith("SAME")
        if self.output_shape is not None or same:
            wanted: Shape = tuple(dim * stride for dim, stride in zip(size, strides, strict=True))
            if self.output_shape is not None:
                wanted = tuple(self.output_shape[-rank:])  # some exporters count batch and channels in
            if len(wanted) != rank or any(isinstance(dim, int) and dim < 1 for dim in wanted):
                raise Invalid(f"output_shape {self.output_shape} is not {rank} positive numbers")
            before, left = [], []
            for want, have in zip(wanted, reached, strict=True):
                total = have - want
                if not isinstance(total, int):
                    raise Unsupported("output_shape over a free dimension", "fix the dimension with --dim or --shape")
                total = max(total, 0)
                before.append(total // 2 if self.auto_pad == "SAME_UPPER" else total - total // 2)
                left.append(want if self.output_shape is not None else have - total)  # a stride may pass by kernels
            return tuple(before), tuple(left)
        pads = (0,) * (2 * rank) if self.auto_pad == "VALID" or not self.pads else tuple(self.pads)
        if len(pads) != 2 * rank or min(pads) < 0:
            raise Invalid(f"pads {pads} are not {2 * rank} numbers from 0 on")
        rest = tuple(have - pads[axis] - pads[axis + rank] for axis, have in enumerate(reached))
        for dim, have in zip(rest, size, strict=True):
            if upper(dim) < 1 and have != 0:
                raise Invalid(f"pads {pads} cut everything off")
        return pads[:rank], rest

    def result(self, site: Site, dtype: DType) -> list[Fact]:
        return [Fact(TensorType(dtype, (site.shape(0)[0], site.shape(1)[1] * self.group, *self.kind(site).space)))]


@dataclass(frozen=True)
class ConvTranspose(_Transposed):
    versions = (1, 11, 22)

    def kind(self, site: Site) -> ConvTransposeKind:
        return replace(super().kind(site), epilogue=with_bias(site.type(0).dtype, site.has(2)))

    def infer(self, site: Site) -> list[Fact]:
        found = self.result(site, site.type(0).dtype)
        check_floats(site, site.shape(1)[1] * self.group)
        return found

    def gradient(self, back: Backward) -> None:
        kind = self.kind(back.site)
        x, of, rank = back.input(0), back.of(), len(kind.strides)
        space, kernel = back.shape(0)[2:], back.shape(1)[2:]
        reached = [
            (size - 1) * step + (k - 1) * gap + 1
            for size, step, k, gap in zip(space, kind.strides, kernel, kind.dilations, strict=True)
        ]
        whole = back.fitted(of, 2, kind.pads[:rank], reached)  # what pads cut off had no part in the result
        sliding: dict[str, Any] = {"strides": kind.strides, "dilations": kind.dilations, "group": self.group}
        if back.wants(0):
            back.give(0, back.op("Conv", whole, back.input(1), **sliding))
        if back.wants(1):
            back.give(1, weight_gradient(back, whole, x, (0,) * (2 * rank), back.shape(1), sliding))
        if back.wants(2):
            back.give(2, back.sum(of, [axis for axis in range(rank + 2) if axis != 1], keepdims=False))


@dataclass(frozen=True)
class ConvTransposeInteger(_Transposed):
    """Of 8 or 16-bit integers, as i32. Operands x, w and the zero point of x; lower_qdq makes it."""

    domain = "mccompile"

    def kind(self, site: Site) -> ConvTransposeKind:
        return replace(super().kind(site), accumulator=i32, x_zero=True)

    def infer(self, site: Site) -> list[Fact]:
        x, w, zero = (site.type(i) for i in range(3))
        if x.dtype not in SHORT or w.dtype not in SHORT or zero != TensorType(x.dtype, ()):
            raise Invalid(f"x {x}, w {w} and the zero point {zero} are not of 8 or 16-bit integers")
        return self.result(site, i32)

    def lower(self, to: Lowering) -> None:
        to.set(0, to.call(self.kind(to.site), [to.input(i) for i in range(3)], to.type())[0])


def check_operands(site: Site, kernel_shape: tuple[int, ...] | None, group: int) -> None:
    """Raises where ranks, kernel_shape or group cannot be right."""
    x, w = site.type(0), site.type(1)
    if x.rank != w.rank or x.rank < 3:
        raise Invalid(f"x {x} and w {w} do not have the same rank of at least 3")
    if not all(isinstance(dim, int) for dim in (x.shape[1], *w.shape)):
        raise Unsupported("the number of channels is known only at run time", "fix it with --dim or --shape")
    if kernel_shape and tuple(kernel_shape) != w.shape[2:]:
        raise Invalid(f"kernel_shape {kernel_shape} is not that of the weights {w}")
    if group < 1:
        raise Invalid(f"group {group} is not positive")


def check_floats(site: Site, channels: Dim) -> None:
    """Raises where x, w and the bias are not of one float type, or the bias has not as many numbers as there are
    channels."""
    dtype = site.type(0).dtype
    if dtype not in FLOATS or site.type(1).dtype is not dtype:
        raise Invalid(f"x {site.type(0)} and w {site.type(1)} are not of one float type")
    if site.has(2) and site.type(2) != TensorType(dtype, (channels,)):
        raise Invalid(f"the bias {site.type(2)} does not fit the weights {site.type(1)}")


def sum_type(dtype: DType) -> DType:
    """What products of such numbers are added up in."""
    return f32 if dtype.is_narrow_float else dtype


def with_bias(dtype: DType, has_bias: bool) -> Expr | None:
    """The epilogue that adds a bias (operand 1) and rounds to the type of the result once."""
    total = sum_type(dtype)
    result = operand(0, total)
    if has_bias:
        result = apply("add", result, cast(operand(1, dtype), total))
    result = cast(result, dtype)
    return None if result == operand(0, dtype) else result


def along_channels(to: Lowering, vector: View, shape: Shape) -> View:
    """A vector of one number per channel as a view of the result's shape."""
    return to.reshape(vector, (shape[1], *(1 for _ in shape[2:]))).broadcast_to(shape)


def as_int(dim: Dim) -> int:
    return dim if isinstance(dim, int) else 0
