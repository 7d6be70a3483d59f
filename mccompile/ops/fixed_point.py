"""Operators over integers that no ONNX model has: lower_qdq makes them out of DequantizeLinear, operator,
QuantizeLinear.

Sums are exact; `Rescale` rounds them once (see mcc_quant.h). All numbers that depend on scales, zero points and weights
are operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..base.dtypes import SHORT, DType, i8, i32, i64, of_array, of_onnx, u8
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.evaluate import evaluate
from ..expr.ir import Expr, apply, cast, literal, operand
from ..expr.raised import raised_by
from ..kinds.lookup import Lookup as LookupKind
from ..kinds.pool import Pool as PoolKind
from ..program.ir import View
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site
from .pool import check_picture
from .rules.elementwise import Elementwise
from .rules.window import Window


class FixedPoint(Elementwise, abstract=True):
    """Sums of terms times multipliers, rounded. Operands may be absent: `scaled` has a place for each of `count`."""

    domain = "mccompile"
    terms: int

    @property
    def count(self) -> int:
        raise NotImplementedError

    def dtype(self, site: Site) -> DType:
        """The type of the result."""
        raise NotImplementedError

    def scaled(self, args: Sequence[Expr | None]) -> Expr:
        raise NotImplementedError

    def terms_of(self, args: Sequence[Expr | None]) -> tuple[list[tuple[Expr, Expr]], list[Expr]]:
        """Terms with their multipliers, and what follows them but for the two bounds."""
        n, given = self.terms, [arg for arg in args[: self.count - 2] if arg is not None]
        return list(zip(given[:n], given[n : 2 * n], strict=True)), given[2 * n :]

    def bounds_of(self, args: Sequence[Expr | None]) -> tuple[Expr | None, Expr | None]:
        return args[self.count - 2], args[self.count - 1]

    def infer(self, site: Site) -> list[Fact]:
        types = [site.type(i) for i in range(len(site.facts)) if site.has(i)]
        self.check(types)
        return [Fact(TensorType(self.dtype(site), self.result_shape([t.shape for t in types])))]

    def lower(self, to: Lowering) -> None:
        views, args = present_operands(to, self.count)
        to.set(0, to.map(self.scaled(args), views, to.type().shape))

    def evaluate(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
        return evaluated(self.scaled, arrays, self.count)


@dataclass(frozen=True)
class Rescale(FixedPoint):
    """round(t0 * f0 + t1 * f1 + ... + constant) + zero, saturated; at least `low` and at most `high` where these are
    given. Operands: `terms` tensors of 8 or 16-bit integers or of i32, as many multipliers, addend, shift, zero, low,
    high; the last three have the type of the result."""

    terms: int = 1

    def check(self, types: Sequence[TensorType]) -> None:
        n = self.terms
        found = [type.dtype for type in types]
        if len(found) < 2 * n + 3 or any(dtype not in (*SHORT, i32) for dtype in found[:n]):
            raise Invalid(f"the operands {', '.join(map(str, types))} are not those of {n} terms")
        if found[n : 2 * n + 2] != [*[i64] * (n + 1), u8]:
            raise Invalid(f"multipliers, addend and shift are {', '.join(map(str, found[n : 2 * n + 2]))}")
        if found[-1] not in SHORT or any(dtype is not found[-1] for dtype in found[2 * n + 2 :]):
            raise Invalid(f"zero point and bounds are {', '.join(map(str, found[2 * n + 2 :]))}")

    def dtype(self, site: Site) -> DType:
        return site.type(2 * self.terms + 2).dtype

    @property
    def count(self) -> int:
        return 2 * self.terms + 5

    def scaled(self, args: Sequence[Expr | None]) -> Expr:
        terms, (total, shift, zero) = self.terms_of(args)
        for term, multiplier in terms:
            total = apply("add", total, apply("fixed_product", _widened(term), multiplier))
        rounded = apply("add", apply("fixed_round", total, shift), cast(zero, i32))
        return saturated(rounded, *self.bounds_of(args), zero.dtype)


class _ToBytes(FixedPoint, abstract=True):
    to: int

    @property
    def target(self) -> DType:
        return byte_type(self.to)

    def dtype(self, site: Site) -> DType:
        return self.target


@dataclass(frozen=True)
class ByteRescale(_ToBytes):
    """Rescale of terms of few bits with 32-bit numbers: upper halves of products of terms that are shifted up with
    multipliers. Operands: `terms` tensors, as many multipliers, an addend (with the zero point in it), low, high; `to`
    is the type of the result."""

    terms: int = 1
    left: int = 0
    shift: int = 0
    to: int = 0

    def check(self, types: Sequence[TensorType]) -> None:
        n = self.terms
        found = [type.dtype for type in types]
        if len(found) <= 2 * n or any(dtype not in (i8, u8, i32) for dtype in found[:n]):
            raise Invalid(f"the operands {', '.join(map(str, types))} are not those of {n} terms")
        if found[n : 2 * n + 1] != [i32] * (n + 1) or any(dtype is not self.target for dtype in found[2 * n + 1 :]):
            raise Invalid(f"multipliers, addend and bounds are {', '.join(map(str, found[n:]))}")

    @property
    def count(self) -> int:
        return 2 * self.terms + 3

    def scaled(self, args: Sequence[Expr | None]) -> Expr:
        terms, (total,) = self.terms_of(args)
        for term, multiplier in terms:
            raised = apply("mul", cast(term, i32), literal(1 << self.left, i32))
            total = apply("high_sum", total, raised, multiplier)
        rounded = apply("shift_right", total, literal(self.shift, i32))
        return saturated(rounded, *self.bounds_of(args), self.target)


@dataclass(frozen=True)
class PartRescale(_ToBytes):
    """Rescale of terms of few bits with multipliers and an addend of two parts (see two_part_rounding.py). Operands:
    `terms` tensors, as many multipliers, an addend (with the zero point in it); the lower parts, where they have `low`
    bits; a zero point that is added behind the shift, where sums that are `halves` become even; low, high. `to` is the
    type of the result."""

    terms: int = 1
    low: int = 0
    shift: int = 0
    to: int = 0
    halves: int = 0

    @property
    def numbers(self) -> int:
        """All that are not terms, but for zero point and bounds."""
        return (self.terms + 1) * (2 if self.low else 1)

    def check(self, types: Sequence[TensorType]) -> None:
        found, end = [type.dtype for type in types], self.terms + self.numbers
        if len(found) < end + self.halves or any(dtype not in (i8, u8, i32) for dtype in found[: self.terms]):
            raise Invalid(f"the operands {', '.join(map(str, types))} are not those of {self.terms} terms")
        if found[self.terms : end] != [i32] * self.numbers or any(dtype is not self.target for dtype in found[end:]):
            raise Invalid(f"numbers and bounds are {', '.join(map(str, found[self.terms :]))}")

    @property
    def count(self) -> int:
        return self.terms + self.numbers + self.halves + 2

    def scaled(self, args: Sequence[Expr | None]) -> Expr:
        terms, (total, *further) = self.terms_of(args)
        total = _plus(total, terms)
        if self.low:
            lower = zip((term for term, _ in terms), further, strict=False)
            total = apply("add", total, apply("shift_right", _plus(further[self.terms], lower), literal(self.low, i32)))
        rounded = apply("shift_even" if self.halves else "shift_right", total, literal(self.shift, i32))
        rounded = apply("add", rounded, cast(further[-1], i32)) if self.halves else rounded
        return saturated(rounded, *self.bounds_of(args), self.target)


def _plus(total: Expr, terms: Iterable[tuple[Expr, Expr]]) -> Expr:
    for term, multiplier in terms:
        total = apply("add", total, apply("mul", cast(term, i32), multiplier))
    return total


@dataclass(frozen=True)
class ShortRescale(_ToBytes):
    """Rescale of one i32 with 32-bit numbers (see mcc_quant.h), at least `low` and at most `high` where these
    are given. Operands: total, bias, multiplier, addend (with the zero point in it), low, high, raise. `to` is the
    type of the result. `packed`: the total is raised by two to the power that the multiplier ends with."""

    terms = 1
    shift: int = 0
    to: int = 0
    packed: int = 0

    def check(self, types: Sequence[TensorType]) -> None:
        found = [type.dtype for type in types]
        if len(found) < 4 or found[:4] != [i32] * 4 or any(dtype not in (self.target, i32) for dtype in found[4:]):
            raise Invalid(f"the operands {', '.join(map(str, types))} are not i32 and bounds of the result")

    @property
    def count(self) -> int:
        return 7

    def scaled(self, args: Sequence[Expr | None]) -> Expr:
        total, bias, multiplier, addend = (arg for arg in args[:4] if arg is not None)
        begun = apply("add", total, bias)
        raised = begun if args[6] is None else apply("mul", begun, args[6])
        raised = raised_by(raised, multiplier) if self.packed else raised
        scaled = apply("high_sum", addend, raised, multiplier)
        rounded = apply("shift_right", scaled, literal(self.shift, i32))
        return saturated(rounded, args[4], args[5], self.target)


def present_operands(to: Lowering, count: int) -> tuple[list[View], list[Expr | None]]:
    """The views of a node's operands that are there, and the leaf for each of `count` operands, None for the others."""
    positions = [i for i in range(len(to.node.inputs)) if to.has(i)]
    views = [to.input(i) for i in positions]
    leaves = {i: operand(n, view.buffer.dtype) for n, (i, view) in enumerate(zip(positions, views, strict=True))}
    return views, [leaves.get(i) for i in range(count)]


def byte_type(number: int) -> DType:
    found = of_onnx(number)
    if found not in (i8, u8):
        raise Invalid(f"results of type {found} are not made")
    return found


def evaluated(
    scaled: Callable[[Sequence[Expr | None]], Expr], arrays: Sequence[np.ndarray | None], count: int
) -> np.ndarray:
    """What an operator gives for arrays, of which some are absent, among `count` operands."""
    present = [array for array in arrays if array is not None]
    places = iter(range(len(present)))
    args = [None if a is None else operand(next(places), of_array(a)) for a in arrays]
    args += [None] * (count - len(args))
    return evaluate(scaled(args), present, np.broadcast_shapes(*(array.shape for array in present)))


def saturated(value: Expr, low: Expr | None, high: Expr | None, target: DType) -> Expr:
    """An i32 as 8 or 16 bits, within bounds where these are given."""
    if low is None and high is None and target.bits == 8:
        return cast(apply(f"saturate_{target}", value), target)
    inside = apply("max", value, _bound(low, target.low))
    return cast(apply("min", inside, _bound(high, target.high)), target)


def _widened(term: Expr) -> Expr:
    return term if term.dtype is i32 else apply("mul", cast(term, i32), literal(times_taken(term.dtype), i32))


def times_taken(dtype: DType) -> int:
    """How often a term of a few bits is taken, which leaves more bits to its factor: all have 24 bits then."""
    return 1 << (24 - dtype.bits)


def _bound(given: Expr | None, otherwise: float) -> Expr:
    return literal(otherwise, i32) if given is None else cast(given, i32)


@dataclass(frozen=True)
class ProductInteger(Elementwise):
    """(a - its zero point) * (b - its zero point) of 8 or 16-bit integers, as i32 (where they fit). Operands a, b,
    and the zero points."""

    domain = "mccompile"
    takes = "integers"

    def check(self, types: Sequence[TensorType]) -> None:
        found = [type.dtype for type in types]
        if len(found) != 4 or any(d not in SHORT for d in found) or found[:2] != found[2:]:
            raise Invalid(f"the operands {', '.join(map(str, types))} are not two short ones and their zero points")

    def element(self, args: Sequence[Expr]) -> Expr:
        a, b = (apply("sub", cast(x, i32), cast(zero, i32)) for x, zero in zip(args[:2], args[2:], strict=True))
        return apply("mul", a, b)

    def evaluate(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
        a, b, a_zero, b_zero = (np.zeros((), np.int32) if array is None else array.astype(np.int32) for array in arrays)
        return np.asarray((a - a_zero) * (b - b_zero))


@dataclass(frozen=True)
class SumPool(Operator):
    """Sums of 8 or 16-bit integers in windows, as i32; elements outside the image count as 0."""

    domain = "mccompile"
    channels_last = True
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    ceil_mode: int = 0

    def window(self, site: Site) -> tuple[Window, Shape]:
        """The window, and how often it fits along each axis."""
        x, ceil = check_picture(site, SHORT), bool(self.ceil_mode)
        window = Window.of(x[2:], self.kernel_shape, self.strides, self.dilations, self.pads, "NOTSET", ceil)
        return window, window.out_space(x[2:], ceil)

    def kind(self, site: Site) -> PoolKind:
        window, space = self.window(site)
        return PoolKind("sum", window.kernel, window.strides, window.dilations, window.pads, space, i32)

    def infer(self, site: Site) -> list[Fact]:
        return [Fact(TensorType(i32, (*site.shape(0)[:2], *self.kind(site).space)))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.call(self.kind(to.site), [to.input(0)], to.type())[0])


@dataclass(frozen=True)
class Lookup(Operator):
    """The entry of a table of 256 that each element of x names: see the kind."""

    domain = "mccompile"
    fusion = INJECTIVE

    def infer(self, site: Site) -> list[Fact]:
        x, table = site.type(0), site.type(1)
        if x.dtype not in (i8, u8) or table.count != 256:
            raise Invalid(f"x {x} is not of 8-bit integers, or the table {table} has not 256 entries")
        return [Fact(TensorType(table.dtype, x.shape))]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return self

    def evaluate(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
        x, table = arrays[:2]
        return None if x is None or table is None else table.reshape(-1)[x.view(np.uint8)]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.call(LookupKind(), [to.input(0), to.reshape(to.input(1), (256,))], to.type())[0])
