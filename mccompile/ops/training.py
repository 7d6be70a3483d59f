"""ai.onnx.preview.training: one step of an optimizer, element by element, for any number of tensors.

Operands: learning rate, number of updates so far, then all tensors, all gradients, and all of each statistic.
"""

from __future__ import annotations

from typing import ClassVar

from ..base.dtypes import i64
from ..base.records import dataclass
from ..expr.ir import Expr, apply, cast, literal, operand
from .api import Fact, Invalid, Lowering, Operator, Site

DOMAIN = "ai.onnx.preview.training"


class Optimizer(Operator, abstract=True):
    no_gradient = "nothing is learned through a step of an optimizer"
    domain = DOMAIN
    statistics: ClassVar[int]  # per tensor
    norm_coefficient: float

    def count(self, site: Site) -> int:
        """How many tensors are optimized."""
        count, rest = divmod(len(site.facts) - 2, 2 + self.statistics)
        if count < 1 or rest:
            raise Invalid(f"{len(site.facts)} operands are not learning rate, count and {2 + self.statistics} each")
        return count

    def infer(self, site: Site) -> list[Fact]:
        count = self.count(site)
        rate, updates = site.type(0), site.type(1)
        if not rate.dtype.is_float or rate.count != 1 or updates.dtype is not i64 or updates.count != 1:
            raise Invalid(f"learning rate {rate} and number of updates {updates} must be a float and an i64")
        tensors = [site.type(2 + n) for n in range(count)]
        for part in range(1, 2 + self.statistics):
            for n, type in enumerate(tensors):
                if site.type(2 + part * count + n) != type:
                    raise Invalid(f"operand {2 + part * count + n} is {site.type(2 + part * count + n)}, not {type}")
        return [Fact(type) for _ in range(1 + self.statistics) for type in tensors]

    def lower(self, to: Lowering) -> None:
        count = self.count(to.site)
        scalars = [to.reshape(to.input(i), ()) for i in range(2)]
        for n in range(count):
            own = [to.input(2 + part * count + n) for part in range(2 + self.statistics)]
            ins = [*scalars, *own]
            dtype = own[0].buffer.dtype
            rate, updates = cast(operand(0, ins[0].buffer.dtype), dtype), operand(1, i64)
            args = [operand(2 + i, dtype) for i in range(len(own))]
            regularized = _add(_mul(literal(self.norm_coefficient, dtype), args[0]), args[1])
            results = self.step(rate, updates, args[0], regularized, *args[2:])
            for part, result in enumerate(results):
                if to.wants(part * count + n):
                    to.set(part * count + n, to.map(result, ins, own[0].shape))

    def step(self, rate: Expr, updates: Expr, x: Expr, gradient: Expr, *statistics: Expr) -> tuple[Expr, ...]:
        """The new tensor and its new statistics."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gradient(Operator):
    """Of a tensor `y` by tensors `xs`, which are its first operands. A pass writes it out (write_gradients)."""

    no_gradient = "second derivatives are not written out"
    domain = DOMAIN
    versions = (1,)
    xs: tuple[str, ...]
    y: str
    zs: tuple[str, ...] = ()

    def infer(self, site: Site) -> list[Fact]:
        if len(site.facts) != len(self.xs) + len(self.zs) or site.outputs != len(self.xs):
            raise Invalid(f"{len(site.facts)} operands and {site.outputs} results for xs {self.xs} and zs {self.zs}")
        return [Fact(site.type(index)) for index in range(len(self.xs))]


def _add(a: Expr, b: Expr) -> Expr:
    return apply("add", a, b)


def _sub(a: Expr, b: Expr) -> Expr:
    return apply("sub", a, b)


def _mul(a: Expr, b: Expr) -> Expr:
    return apply("mul", a, b)


def _div(a: Expr, b: Expr) -> Expr:
    return apply("div", a, b)


@dataclass(frozen=True)
class Adagrad(Optimizer):
    versions = (1,)
    statistics = 1
    decay_factor: float = 0.0
    epsilon: float = 0.0
    norm_coefficient: float = 0.0

    def step(self, rate: Expr, updates: Expr, x: Expr, gradient: Expr, *statistics: Expr) -> tuple[Expr, ...]:
        one = literal(1, x.dtype)
        slower = _div(rate, _add(one, _mul(cast(updates, x.dtype), literal(self.decay_factor, x.dtype))))
        squares = _add(statistics[0], _mul(gradient, gradient))
        root = _add(apply("sqrt", squares), literal(self.epsilon, x.dtype))
        return _sub(x, _div(_mul(slower, gradient), root)), squares


@dataclass(frozen=True)
class Adam(Optimizer):
    versions = (1,)
    statistics = 2
    alpha: float = 0.9
    beta: float = 0.999
    epsilon: float = 0.0
    norm_coefficient: float = 0.0
    norm_coefficient_post: float = 0.0

    def step(self, rate: Expr, updates: Expr, x: Expr, gradient: Expr, *statistics: Expr) -> tuple[Expr, ...]:
        def number(value: float) -> Expr:
            return literal(value, x.dtype)

        mean = _add(_mul(number(self.alpha), statistics[0]), _mul(number(1 - self.alpha), gradient))
        squares = _add(_mul(number(self.beta), statistics[1]), _mul(number(1 - self.beta), _mul(gradient, gradient)))
        root = _add(apply("sqrt", squares), number(self.epsilon))
        times = cast(updates, x.dtype)
        unbiased = apply("sqrt", _sub(number(1), apply("pow", number(self.beta), times)))
        adjusted = _div(_mul(rate, unbiased), _sub(number(1), apply("pow", number(self.alpha), times)))
        started = apply("greater", updates, literal(0, i64))
        step = _mul(apply("select", started, adjusted, rate), _div(mean, root))
        return _mul(number(1 - self.norm_coefficient_post), _sub(x, step)), mean, squares


@dataclass(frozen=True)
class Momentum(Optimizer):
    versions = (1,)
    statistics = 1
    alpha: float
    beta: float
    mode: str
    norm_coefficient: float

    def step(self, rate: Expr, updates: Expr, x: Expr, gradient: Expr, *statistics: Expr) -> tuple[Expr, ...]:
        if self.mode not in ("standard", "nesterov"):
            raise Invalid(f"mode {self.mode!r} is not standard or nesterov")
        alpha, beta = literal(self.alpha, x.dtype), literal(self.beta, x.dtype)
        started = apply("greater", updates, literal(0, i64))
        share = apply("select", started, beta, literal(1, x.dtype))
        velocity = _add(_mul(alpha, statistics[0]), _mul(share, gradient))
        step = velocity if self.mode == "standard" else _add(gradient, _mul(alpha, velocity))
        return _sub(x, _mul(rate, step)), velocity
