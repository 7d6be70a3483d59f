"""Activation functions: one operand and attributes. Each formula holds for arguments of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.dtypes import f32, f64
from ..base.records import dataclass
from ..base.tensor import Shape
from ..expr.derivative import derivative
from ..expr.ir import Expr, apply, cast, literal, operand, substitute
from .api import Invalid, OnnxNode, Operator, make
from .rules.elementwise import Activation, Binary, Unary, check_broadcast, widened


def number(value: float, like: Expr) -> Expr:
    return literal(value, like.dtype)


def add(a: Expr, b: Expr) -> Expr:
    return apply("add", a, b)


def mul(a: Expr, b: Expr) -> Expr:
    return apply("mul", a, b)


def where(condition: Expr, a: Expr, b: Expr) -> Expr:
    return apply("select", condition, a, b)


def softplus(x: Expr) -> Expr:
    """log(1 + exp(x)), where neither exp overflows nor log loses what is small."""
    fade = apply("exp", apply("neg", apply("abs", x)))
    return add(apply("max", x, number(0, x)), apply("log1p", fade))


def one_plus_exp_minus(x: Expr) -> Expr:
    """The denominator of the logistic function; it may overflow to infinity, whose reciprocal is right."""
    return add(number(1, x), apply("exp", apply("neg", x)))


def bump(x: Expr) -> Expr:
    """The derivative of the logistic function: no exponential of it overflows."""
    fade = apply("exp", apply("neg", apply("abs", x)))
    return apply("div", fade, square(add(number(1, x), fade)))


def logistic(x: Expr) -> Expr:
    return apply("div", number(1, x), one_plus_exp_minus(x))


def square(x: Expr) -> Expr:
    return mul(x, x)


def one_minus(x: Expr) -> Expr:
    return apply("sub", number(1, x), x)


def clamp(x: Expr, low: float, high: float) -> Expr:
    return apply("max", number(low, x), apply("min", number(high, x), x))


@dataclass(frozen=True)
class Relu(Unary):
    versions = (6, 13, 14)
    takes = "numbers"

    def expr(self, x: Expr) -> Expr:
        return apply("max", x, literal(0, x.dtype))

    def slope_of_result(self, y: Expr) -> Expr | None:
        return where(apply("greater", y, number(0, y)), number(1, y), number(0, y))


@dataclass(frozen=True)
class Sigmoid(Activation):
    versions = (6, 13)

    def formula(self, x: Expr) -> Expr:
        return logistic(x)

    def slope_of_result(self, y: Expr) -> Expr | None:
        return mul(y, one_minus(y))


@dataclass(frozen=True)
class Softplus(Activation):
    versions = (1, 22)

    def formula(self, x: Expr) -> Expr:
        return softplus(x)

    def bend(self, x: Expr) -> Expr | None:
        return logistic(x)


@dataclass(frozen=True)
class Softsign(Activation):
    versions = (1, 22)

    def formula(self, x: Expr) -> Expr:
        return apply("div", x, add(number(1, x), apply("abs", x)))

    def bend(self, x: Expr) -> Expr | None:
        return apply("div", number(1, x), square(add(number(1, x), apply("abs", x))))


@dataclass(frozen=True)
class LeakyRelu(Activation):
    versions = (6, 16)
    alpha: float = 0.01

    def formula(self, x: Expr) -> Expr:
        return where(apply("less", x, number(0, x)), mul(number(self.alpha, x), x), x)


@dataclass(frozen=True)
class ThresholdedRelu(Activation):
    versions = (10, 22)
    alpha: float = 1.0

    def formula(self, x: Expr) -> Expr:
        return where(apply("greater", x, number(self.alpha, x)), x, number(0, x))


@dataclass(frozen=True)
class Elu(Activation):
    versions = (6, 22)
    alpha: float = 1.0

    def formula(self, x: Expr) -> Expr:
        return where(apply("less", x, number(0, x)), mul(number(self.alpha, x), apply("expm1", x)), x)


@dataclass(frozen=True)
class Celu(Activation):
    versions = (12, 28)
    alpha: float = 1.0

    def formula(self, x: Expr) -> Expr:
        if self.alpha == 0:
            raise Invalid("alpha must not be 0")
        alpha, zero = number(self.alpha, x), number(0, x)
        bent = mul(alpha, apply("expm1", apply("div", x, alpha)))
        return add(apply("max", zero, x), apply("min", zero, bent))

    def bend(self, x: Expr) -> Expr | None:
        bent = apply("exp", apply("div", x, number(self.alpha, x)))
        return where(apply("less", x, number(0, x)), bent, number(1, x))


@dataclass(frozen=True)
class Selu(Activation):
    versions = (1, 6, 22)
    alpha: float = 1.6732631921768188
    gamma: float = 1.0507010221481323

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 1:
            node.attributes = {"alpha": 1.6732, "gamma": 1.0507, **node.attributes}
            node.attributes.pop("consumed_inputs", None)
        return make(cls, node)

    def formula(self, x: Expr) -> Expr:
        bent = mul(number(self.alpha, x), apply("expm1", x))
        return mul(number(self.gamma, x), where(apply("less", x, number(0, x)), bent, x))


@dataclass(frozen=True)
class HardSigmoid(Activation):
    versions = (6, 22)
    alpha: float = 0.2
    beta: float = 0.5

    def formula(self, x: Expr) -> Expr:
        return clamp(add(mul(number(self.alpha, x), x), number(self.beta, x)), 0, 1)


@dataclass(frozen=True)
class HardSwish(Activation):
    versions = (14, 22)

    def formula(self, x: Expr) -> Expr:
        return mul(x, clamp(add(mul(number(1 / 6, x), x), number(0.5, x)), 0, 1))


@dataclass(frozen=True)
class Mish(Activation):
    versions = (18, 22)

    def formula(self, x: Expr) -> Expr:
        """tanh(log(1 + exp(x))) is n / (n + 2), where n = e * (e + 2) and e = exp(x); above 0 both sides are divided by
        e * e, so that nothing overflows."""
        below, one, two = apply("less", x, number(0, x)), number(1, x), number(2, x)
        e = apply("exp", apply("neg", apply("abs", x)))
        n = where(below, mul(e, add(e, two)), add(one, mul(two, e)))
        return mul(x, apply("div", n, add(n, mul(two, where(below, one, square(e))))))

    def bend(self, x: Expr) -> Expr | None:
        share = apply("tanh", softplus(x))
        return add(share, mul(mul(x, logistic(x)), one_minus(square(share))))


@dataclass(frozen=True)
class Gelu(Activation):
    versions = (20,)
    approximate: str = "none"

    def formula(self, x: Expr) -> Expr:
        if self.approximate == "tanh":
            cubic = add(x, mul(number(0.044715, x), mul(x, mul(x, x))))
            bend = apply("tanh", mul(number(math.sqrt(2 / math.pi), x), cubic))
        elif self.approximate == "none":
            bend = apply("erf", mul(x, number(math.sqrt(0.5), x)))
        else:
            raise Invalid(f"approximate {self.approximate!r} is not none or tanh")
        return mul(mul(number(0.5, x), x), add(number(1, x), bend))

    def bend(self, x: Expr) -> Expr | None:
        """Beyond 20 it is 0 or 1, whatever the size."""
        slope = derivative(self.formula(operand(0, x.dtype)), 0)
        return None if slope is None else substitute(slope, [clamp(x, -20, 20)])


@dataclass(frozen=True)
class Swish(Activation):
    versions = (24,)
    alpha: float = 1.0

    def formula(self, x: Expr) -> Expr:
        return apply("div", x, one_plus_exp_minus(mul(number(self.alpha, x), x)))

    def bend(self, x: Expr) -> Expr | None:
        inner = mul(number(self.alpha, x), x)
        return add(logistic(inner), mul(inner, bump(inner)))


@dataclass(frozen=True)
class Shrink(Unary):
    """Integers too are compared with, and moved by, attributes that are floats."""

    versions = (9,)
    takes = "numbers"
    bias: float = 0.0
    lambd: float = 0.5

    def expr(self, x: Expr) -> Expr:
        wide = widened(x) if x.dtype.is_float else cast(x, f64 if x.dtype.bits > 16 else f32)
        low, high, bias = (number(value, wide) for value in (-self.lambd, self.lambd, self.bias))
        above = where(apply("greater", wide, high), apply("sub", wide, bias), number(0, wide))
        return cast(where(apply("less", wide, low), add(wide, bias), above), x.dtype)


@dataclass(frozen=True)
class PRelu(Binary):
    """The slope broadcasts to x, never x to the slope."""

    versions = (1, 6, 7, 9, 16)
    takes = "numbers"

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        """Below opset 7 a slope of more than one element is one per channel."""
        node.attributes.pop("consumed_inputs", None)
        x, slope = node.inputs[0], node.inputs[1]
        if node.version < 7 and x is not None and slope is not None and slope.type.count != 1 and x.type.rank > 2:
            axes = node.constant(np.arange(1, x.type.rank - 1))
            node.inputs[1] = node.made("Unsqueeze", [slope, axes])
        return make(cls, node)

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        check_broadcast(shapes[1], shapes[0], "the slope")
        return shapes[0]

    def expr(self, a: Expr, b: Expr) -> Expr:
        return where(apply("less", a, literal(0, a.dtype)), mul(a, b), a)
