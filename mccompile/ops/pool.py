"""Pools: MaxPool, AveragePool and LpPool, the same over the whole image, and MaxUnpool and MaxRoiPool."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base.dims import bounds, static
from ..base.dtypes import SHORT, DType, bf16, f16, f32, f64, i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, show_shape
from ..expr.ir import apply, cast, literal, operand
from ..expr.powers import power
from ..graph.ir import Value
from ..kinds.argmax_pool import ArgmaxPool
from ..kinds.pool import Pool as PoolKind
from ..kinds.roi_max_pool import RoiMaxPool
from ..kinds.unpool import Unpool
from .api import REDUCTION, Fact, Invalid, Lowering, Operator, Site, Unsupported
from .reduce import element_count, reduce_call
from .rules.at_run_time import must_equal
from .rules.backward import static_shape
from .rules.elementwise import wide
from .rules.window import Window, window_sizes

if TYPE_CHECKING:
    from .rules.backward import Backward

FLOATS = (f16, bf16, f32, f64)


class _Windows(Operator, abstract=True):
    """Subclasses say what is made of the elements of a window."""

    fusion: ClassVar[str] = REDUCTION
    channels_last: ClassVar[bool] = True
    algorithm: ClassVar[str] = ""
    takes: ClassVar[tuple[DType, ...]] = FLOATS

    def pool(self, to: Lowering, *, p: int = 2) -> None:
        """Sets the result; `p` of "lp"."""
        raise NotImplementedError

    def lower(self, to: Lowering) -> None:
        self.pool(to)


@dataclass(frozen=True)
class _Pool(_Windows, abstract=True):
    """A window that slides over x."""

    kernel_shape: tuple[int, ...]
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    dilations: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def window(self, site: Site) -> tuple[Window, Shape]:
        """The window, and how often it fits along each axis."""
        x = check_picture(site, self.takes)
        # SAME says itself how many positions there are
        ceil = bool(self.ceil_mode) and self.auto_pad in ("NOTSET", "", "VALID")
        window = Window.of(x[2:], self.kernel_shape, self.strides, self.dilations, self.pads, self.auto_pad, ceil)
        return window, window.out_space(x[2:], ceil)

    def infer(self, site: Site) -> list[Fact]:
        type = TensorType(site.type(0).dtype, (*site.shape(0)[:2], *self.window(site)[1]))
        return [Fact(type)]

    def pool(self, to: Lowering, *, with_pad: bool = False, p: int = 2) -> None:
        window, space = self.window(to.site)
        shapes = (window.kernel, window.strides, window.dilations, window.pads, space)
        lower_pool(to, lambda total: PoolKind(self.algorithm, *shapes, total, with_pad, p))


@dataclass(frozen=True)
class MaxPool(_Pool):
    versions = (1, 8, 10, 11, 12, 22)
    algorithm = "max"
    takes = (*FLOATS, *SHORT)
    storage_order: int = 0

    def infer(self, site: Site) -> list[Fact]:
        facts = super().infer(site)
        if self.storage_order not in (0, 1):
            raise Invalid(f"storage_order {self.storage_order} is neither 0 nor 1")
        return facts if site.outputs < 2 else [*facts, Fact(TensorType(i64, facts[0].type.shape))]

    def lower(self, to: Lowering) -> None:
        if not to.wants(1):
            self.pool(to)
            return
        window, space = self.window(to.site)
        shapes = (window.kernel, window.strides, window.dilations, window.pads, space)
        x = to.input(0)
        places = to.type(1)
        kind = ArgmaxPool(*shapes, column_major=self.storage_order == 1)
        results = to.call(kind, [x], TensorType(x.buffer.dtype, places.shape), places)
        for index, view in enumerate(results):
            if to.wants(index):
                to.set(index, view)

    def gradient(self, back: Backward) -> None:
        """The first of the largest elements of a window takes all."""
        x, of = back.input(0), back.of()
        if self.storage_order:
            back.refuse("places in the order of columns (storage_order 1) have no rule", "leave storage_order at 0")
        zeros = back.expand(back.number(0, x), (math.prod(back.shape(0)),))
        flat = [back.flat(value) for value in (back.result(1), of)]
        back.give(0, back.reshape(back.op("ScatterElements", zeros, *flat, reduction="add"), back.shape(0)))


@dataclass(frozen=True)
class AveragePool(_Pool):
    versions = (1, 7, 10, 11, 19, 22)
    algorithm = "average"
    count_include_pad: int = 0

    def lower(self, to: Lowering) -> None:
        self.pool(to, with_pad=bool(self.count_include_pad))

    def gradient(self, back: Backward) -> None:
        window, space = self.window(back.site)
        x, of, rank = back.input(0), back.of(), len(window.kernel)
        ones = np.ones((1, 1, *window.kernel))
        inside = np.ones(back.shape(0)[2:])
        around = [(window.pads[axis], window.pads[axis + rank]) for axis in range(rank)]
        inside = np.pad(inside, around, constant_values=float(self.count_include_pad))
        counts = _taken(inside, window, space)
        shares = back.constant((1 / np.maximum(counts, 1)).astype(x.type.dtype.numpy))
        back.give(0, handed_back(back, back.op("Mul", of, shares), window, ones))


@dataclass(frozen=True)
class _GlobalPool(_Windows, abstract=True):
    """A window as large as the image."""

    def infer(self, site: Site) -> list[Fact]:
        x = check_picture(site, self.takes)
        return [Fact(TensorType(site.type(0).dtype, (*x[:2], *(1 for _ in x[2:]))))]

    def pool(self, to: Lowering, *, p: int = 2) -> None:
        space = to.input(0).shape[2:]
        sizes = tuple(dim for dim in space if isinstance(dim, int))
        if len(sizes) != len(space):
            self.reduce(to, p)
            return
        ones = (1,) * len(sizes)
        shapes = (sizes, ones, ones, (0,) * (2 * len(sizes)), ones)
        lower_pool(to, lambda total: PoolKind(self.algorithm, *shapes, total, False, p))

    def reduce(self, to: Lowering, p: int) -> None:
        """Where the size of the image is known only at run time."""
        x = to.input(0)
        axes, dtype, work = tuple(range(2, len(x.shape))), x.buffer.dtype, wide(x.buffer.dtype)
        element, total = cast(operand(0, dtype), work), operand(0, work)
        if self.algorithm == "average":
            total = apply("div", total, element_count(x.shape, axes, work))
        elif self.algorithm == "lp":
            element, total = power(apply("abs", element), p), power(total, 1 / p)
        combine = "max" if self.algorithm == "max" else "add"
        to.set(0, reduce_call(to, axes, combine, element, [x], cast(total, dtype)))


class GlobalMaxPool(_GlobalPool):
    takes = (*FLOATS, *SHORT)
    versions = (1, 22)
    algorithm = "max"

    def gradient(self, back: Backward) -> None:
        axes = range(2, len(back.shape(0)))
        back.give(0, back.shared_by_equals(back.input(0), back.result(), back.of(), axes))


class GlobalAveragePool(_GlobalPool):
    versions = (1, 22)
    algorithm = "average"

    def gradient(self, back: Backward) -> None:
        back.give(0, back.scaled(back.of(), 1 / max(1, math.prod(back.shape(0)[2:]))))


@dataclass(frozen=True)
class _Lp(_Windows, abstract=True):
    """The p-norm of a window."""

    algorithm = "lp"
    p: int = 2

    def infer(self, site: Site) -> list[Fact]:
        check_norm(self.p)
        return list(super().infer(site))

    def lower(self, to: Lowering) -> None:
        self.pool(to, p=self.p)

    def shares(self, back: Backward) -> Value:
        """The gradient of the result times y^(1 - p), which every element of a window is handed."""
        y, of = (operand(i, back.result().type.dtype) for i in range(2))
        zero = apply("equal", y, literal(0, y.dtype))
        part = apply("select", zero, literal(0, y.dtype), apply("mul", of, power(y, 1 - self.p)))
        return back.pointwise(part, back.result(), back.of())

    def hand(self, back: Backward, share: Value) -> None:
        x, given = operand(0, share.type.dtype), operand(1, share.type.dtype)
        slope = apply("mul", apply("sign", x), power(apply("abs", x), self.p - 1))
        back.give(0, back.pointwise(apply("mul", slope, given), back.input(0), share))


@dataclass(frozen=True)
class LpPool(_Lp, _Pool):
    versions = (2, 11, 18, 22)

    def gradient(self, back: Backward) -> None:
        window, _ = self.window(back.site)
        self.hand(back, handed_back(back, self.shares(back), window, np.ones((1, 1, *window.kernel))))


@dataclass(frozen=True)
class GlobalLpPool(_Lp, _GlobalPool):
    versions = (2, 22)

    def gradient(self, back: Backward) -> None:
        self.hand(back, self.shares(back))


@dataclass(frozen=True)
class MaxUnpool(Operator):
    versions = (9, 11, 22)
    kernel_shape: tuple[int, ...]
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def shapes(self, site: Site) -> tuple[Shape, Shape]:
        """The shape that the places count over, and that of the result, which begins with it and may be larger."""
        x = site.type(0)
        check_picture(site, FLOATS)
        if site.type(1) != TensorType(i64, x.shape):
            raise Invalid(f"the indices are {site.type(1)} for x {x}")
        if site.has(2) and not x.is_static:
            why = f"the size of x {x} is known only at run time, and output_shape is given"
            raise Unsupported(why, "fix the size with --dim or --shape, or leave output_shape out")
        rank = x.rank - 2
        kernel, strides, _ = window_sizes(rank, self.kernel_shape, self.strides, None)
        pads = self.pads or (0,) * (2 * rank)
        if len(pads) != 2 * rank:
            raise Invalid(f"pads {pads} are not {2 * rank} numbers")
        space = [
            (size - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + rank]
            for axis, size in enumerate(x.shape[2:])
        ]
        inner = (*x.shape[:2], *space)
        if site.has(2) and not site.is_known(2):
            shape: Shape = site.declared(0, "output_shape")
        else:
            shape = tuple(site.known_ints(2, "output_shape")) if site.has(2) else inner
        if any(bounds(size)[1] < 0 for size in inner) or len(shape) != x.rank or shape[:2] != inner[:2]:
            raise Invalid(f"output_shape {show_shape(shape)} does not fit x {x}")
        if any(bounds(have - want)[0] < 0 for have, want in zip(shape, inner, strict=True)):
            raise Unsupported(f"output_shape {show_shape(shape)} is smaller than what was pooled, {show_shape(inner)}")
        return inner, shape

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(site.type(0).dtype, self.shapes(site)[1]))]

    def lower(self, to: Lowering) -> None:
        if not to.site.is_known(2):
            must_equal(to, 2, to.type().static_shape)
        inner, shape = self.shapes(to.site)
        for size in inner:
            to.require(size)
        to.set(0, to.call(Unpool(inner, shape), [to.input(0), to.input(1)], to.type())[0])

    def gradient(self, back: Backward) -> None:
        inner, shape = self.shapes(back.site)
        if inner != shape:
            back.refuse("an output_shape that is larger than what was pooled has no rule", "leave output_shape out")
        places = back.input(1)
        flat = [back.flat(value) for value in (back.of(), places)]
        back.give(0, back.reshape(back.op("GatherElements", *flat), back.shape(0)))


@dataclass(frozen=True)
class MaxRoiPool(Operator):
    no_gradient = "what it reads is chosen by regions, whose gradient is not written out"
    versions = (1, 22)
    pooled_shape: tuple[int, ...]
    spatial_scale: float = 1.0

    def infer(self, site: Site) -> list[Fact]:
        x, regions = site.type(0), site.type(1)
        if x.dtype not in FLOATS or regions.dtype is not x.dtype:
            raise Invalid(f"x {x} and the regions {regions} are not of one float type")
        if x.rank != 4 or regions.rank != 2 or regions.shape[1] != 5:
            raise Invalid(f"x {x} is not a batch of images, or the regions {regions} do not have 5 numbers each")
        if len(self.pooled_shape) != 2 or min(self.pooled_shape) < 1:
            raise Invalid(f"pooled_shape {self.pooled_shape} is not two positive numbers")
        return [Fact(TensorType(x.dtype, (regions.shape[0], x.shape[1], *self.pooled_shape)))]

    def lower(self, to: Lowering) -> None:
        high, wide = self.pooled_shape
        kind = RoiMaxPool((high, wide), self.spatial_scale)
        to.set(0, to.call(kind, [to.input(0), to.input(1)], to.type())[0])


def check_picture(site: Site, takes: tuple[DType, ...]) -> Shape:
    """The shape of x; raises where it has no spatial axes or is not of an element type that the operator takes."""
    x = site.type(0)
    if x.rank < 3:
        raise Invalid(f"x {x} has no spatial dimensions")
    if x.dtype not in takes:
        raise Invalid(f"x {x} is not of {', '.join(map(str, takes))}")
    return x.shape


def check_norm(p: int) -> None:
    if p < 1:
        raise Invalid(f"p {p} is not a positive number")


def lower_pool(to: Lowering, kind_of: Callable[[DType], PoolKind]) -> None:
    """A pool that works in f32 where the type is narrower, and rounds once."""
    x, type = to.input(0), to.type()
    total = f32 if type.dtype.is_narrow_float else type.dtype
    kind = kind_of(total)
    if total is not type.dtype:
        kind = replace(kind, epilogue=cast(operand(0, total), type.dtype))
    to.set(0, to.call(kind, [x], type)[0])


def handed_back(back: Backward, share: Value, window: Window, taps: np.ndarray) -> Value:
    """What each element of x gets from all windows that it is in, when a window hands the same to all its elements."""
    batch, channels, *space = back.shape(0)
    shape = static_shape(share)
    if [*window.kernel] == space == list(taps.shape[2:]) and taps.all() and not any(window.pads):
        return share  # one window, all of x
    share = back.reshape(share, (batch * channels, 1, *shape[2:]))
    weights = back.constant(taps.astype(share.type.dtype.numpy))
    found = back.op("ConvTranspose", share, weights, strides=window.strides, dilations=window.dilations)
    before = [-pad for pad in window.pads[: len(space)]]
    return back.reshape(back.fitted(found, 2, before, space), back.shape(0))


def _taken(array: np.ndarray, window: Window, space: Shape) -> np.ndarray:
    """The sum over the elements of each window; beyond the end there are none."""
    total = np.zeros([static(count) for count in space])
    for taps in np.ndindex(*window.kernel):
        places = [
            np.arange(static(count)) * step + tap * gap
            for count, step, tap, gap in zip(space, window.strides, taps, window.dilations, strict=True)
        ]
        beyond = [(0, max(0, int(p.max(initial=0)) + 1 - n)) for p, n in zip(places, array.shape, strict=True)]
        total += np.pad(array, beyond)[np.ix_(*places)]
    return total
