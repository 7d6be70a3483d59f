"""Operators that draw random numbers: uniform and normal ones, Bernoulli and Multinomial.

A seed gives the numbers that ONNX's reference evaluator draws for it (numpy's RandomState), the same in every run.
Without one each run draws others; `<model>_seed` says where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ..base.dtypes import DType, f32, f64, i32, i64, u64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from ..kinds.random import Random as RandomKind
from ..kinds.scan_axis import ScanAxis
from ..program.ir import STREAM, Buffer, Call, View
from .api import Fact, Invalid, Lowering, Operator, Site
from .quantize import named_dtype
from .reduce import reduce_call

if TYPE_CHECKING:
    from .rules.backward import Backward


def seed_of(seed: float | None) -> int | None:
    return None if seed is None or seed != seed else int(seed) & 0xFFFFFFFF


def drawn(
    to: Lowering, normal: bool, seed: int | None, epilogue: Expr, shape: Shape, extras: Sequence[View] = ()
) -> View:
    """Random numbers through an expression; operand 0 of it is the drawn double."""
    result = to.buffer(epilogue.dtype, shape).whole()
    outs = [result]
    if seed is None:
        outs.append(Buffer(to.buffer(u64, ()).name, u64, (), STREAM, provenance=to.provenance).whole())
    made = None if epilogue == operand(0, f64) else epilogue
    kind = RandomKind(normal, seed, made)
    to.body.append(Call(kind, tuple(view.broadcast_to(shape) for view in extras), tuple(outs), to.provenance))
    return result


class _Scaled(Operator, abstract=True):
    """Drawn numbers times `factor` plus `offset`, in the type of the result."""

    random = True
    normal: ClassVar[bool]
    seed: float | None

    @property
    def factor(self) -> float:
        raise NotImplementedError

    @property
    def offset(self) -> float:
        raise NotImplementedError

    def lower(self, to: Lowering) -> None:
        type = to.type()
        x = cast(operand(0, f64), type.dtype)
        scaled = apply("mul", x, literal(self.factor, type.dtype)) if self.factor != 1 else x
        moved = apply("add", scaled, literal(self.offset, type.dtype)) if self.offset != 0 else scaled
        to.set(0, drawn(to, self.normal, seed_of(self.seed), moved, type.shape))


@dataclass(frozen=True)
class _Shaped(_Scaled, abstract=True):
    """The attribute says the shape."""

    shape: tuple[int, ...]
    dtype: int = 1
    seed: float | None = None

    def infer(self, site: Site) -> list[Fact]:
        if any(dim < 0 for dim in self.shape):
            raise Invalid(f"the shape {self.shape} has a negative size")
        return [Fact(TensorType(_float(named_dtype(self.dtype, "dtype")), tuple(self.shape)))]


@dataclass(frozen=True)
class _Like(_Scaled, abstract=True):
    """The operand says the shape, and the type unless an attribute does."""

    dtype: int | None = None
    seed: float | None = None

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        dtype = x.dtype if self.dtype is None else named_dtype(self.dtype, "dtype")
        return [Fact(TensorType(_float(dtype), x.shape))]

    def gradient(self, back: Backward) -> None:
        back.nothing(0)


def _float(dtype: DType) -> DType:
    if not dtype.is_float:
        raise Invalid(f"random numbers of {dtype}, which is not a float type")
    return dtype


@dataclass(frozen=True)
class _Uniform(_Scaled, abstract=True):
    normal = False
    high: float = 1.0
    low: float = 0.0

    @property
    def factor(self) -> float:
        return self.high - self.low

    @property
    def offset(self) -> float:
        return self.low


@dataclass(frozen=True)
class _Normal(_Scaled, abstract=True):
    normal = True
    mean: float = 0.0
    scale: float = 1.0

    @property
    def factor(self) -> float:
        return self.scale

    @property
    def offset(self) -> float:
        return self.mean


@dataclass(frozen=True)
class RandomUniform(_Uniform, _Shaped):
    versions = (1, 22)


@dataclass(frozen=True)
class RandomNormal(_Normal, _Shaped):
    versions = (1, 22)


@dataclass(frozen=True)
class RandomUniformLike(_Uniform, _Like):
    versions = (1, 22)


@dataclass(frozen=True)
class RandomNormalLike(_Normal, _Like):
    versions = (1, 22)


@dataclass(frozen=True)
class Bernoulli(Operator):
    """1 where a number drawn from 0 to 1 is below the operand."""

    versions = (15, 22)
    random = True
    dtype: int | None = None
    seed: float | None = None

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        dtype = x.dtype if self.dtype is None else named_dtype(self.dtype, "dtype")
        if not x.dtype.is_float or dtype.kind in ("string", "complex"):
            raise Invalid(f"{dtype} with probabilities of {x}")
        return [Fact(TensorType(dtype, x.shape))]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        below = apply("less", operand(0, f64), cast(operand(1, x.buffer.dtype), f64))
        to.set(0, drawn(to, False, seed_of(self.seed), cast(below, type.dtype), type.shape, [x]))

    def gradient(self, back: Backward) -> None:
        back.nothing(0)


@dataclass(frozen=True)
class Multinomial(Operator):
    """Which class a number drawn from 0 to the sum of all falls into; the operand has logarithms of probabilities."""

    versions = (7, 22)
    random = True
    dtype: int = 6
    sample_size: int = 1
    seed: float | None = None

    def infer(self, site: Site) -> list[Fact]:
        x, dtype = site.type(0), named_dtype(self.dtype, "dtype")
        if x.rank != 2 or not x.dtype.is_float or x.shape[1] == 0 or dtype not in (i32, i64) or self.sample_size < 1:
            raise Invalid(f"{self.sample_size} samples of {dtype} from {x}")
        return [Fact(TensorType(dtype, (x.shape[0], self.sample_size)))]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        rows, classes = x.shape
        work = f64 if x.buffer.dtype is f64 else f32
        wide = cast(operand(0, x.buffer.dtype), work)
        most = reduce_call(to, (1,), "max", wide, [x], operand(0, work))
        shares = to.map(apply("exp", apply("sub", wide, operand(1, work))), [x, most])
        (sums,) = to.call(ScanAxis(1, "add", work), [shares], shares.type)
        last = sums.sliced(1, classes - 1, 1)
        share = cast(apply("mul", operand(0, f64), cast(operand(1, work), f64)), work)
        places = drawn(to, False, seed_of(self.seed), share, type.shape, [last])
        # a class is passed where its sum is not above the place; the last one is never passed
        full = (rows, self.sample_size, classes - 1)
        steps = sums.sliced(1, 0, classes - 1).broadcast_to((1, *sums.shape[:1], classes - 1)).permuted((1, 0, 2))
        each = to.reshape(places, (*places.shape, 1))
        passed = cast(apply("less_equal", operand(0, work), operand(1, work)), type.dtype)
        ins = [steps.broadcast_to(full), each.broadcast_to(full)]
        counts = reduce_call(to, (2,), "add", passed, ins, operand(0, type.dtype))
        to.set(0, to.reshape(counts, type.shape))
