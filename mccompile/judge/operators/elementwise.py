"""One element at a time: functions of a number, arithmetic, comparisons, logic and bits."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from ..whole import limits, next_to

_erf = np.vectorize(erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def error_function(x: Array) -> Array:
    return _erf(x) if x.size else x


def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + error_function(x / np.sqrt(2)))


_UNARY: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BitwiseNot": np.bitwise_not,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": error_function,
    "Exp": np.exp,
    "Floor": np.floor,
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "IsNaN": np.isnan,
    "Log": np.log,
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "Neg": np.negative,
    "Not": np.logical_not,
    "Reciprocal": lambda x: 1 / x,
    "Relu": lambda x: np.maximum(x, np.zeros_like(x)),
    "Round": np.rint,
    "Sigmoid": sigmoid,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}


def _of_one(function: Callable[[Array], Array]) -> Callable[[NodeSite], Array]:
    return lambda at: function(at[0])


for _name, _function in _UNARY.items():
    judges(_name)(_of_one(_function))


@judges("Elu")
def elu(at: NodeSite) -> Array:
    x = at[0]
    return np.where(x < 0, at.attr("alpha", 1.0) * np.expm1(np.minimum(x, 0)), x)


@judges("Celu")
def celu(at: NodeSite) -> Array:
    x, alpha = at[0], at.attr("alpha", 1.0)
    return np.maximum(0, x) + np.minimum(0, alpha * np.expm1(x / alpha))


@judges("Selu")
def selu(at: NodeSite) -> Array:
    x = at[0]
    alpha = at.attr("alpha", float(np.float32(1.67326319217681884765625)))
    gamma = at.attr("gamma", float(np.float32(1.05070102214813232421875)))
    return np.where(x <= 0, gamma * alpha * np.expm1(np.minimum(x, 0)), gamma * x)


@judges("LeakyRelu")
def leaky(at: NodeSite) -> Array:
    return np.where(at[0] < 0, at.attr("alpha", float(np.float32(0.01))) * at[0], at[0])


@judges("ThresholdedRelu")
def thresholded(at: NodeSite) -> Array:
    return np.where(at[0] > at.attr("alpha", 1.0), at[0], 0.0)


@judges("PRelu")
def prelu(at: NodeSite) -> Array:
    return np.where(at[0] < 0, at[1] * at[0], at[0]).astype(at[0].dtype)


@judges("HardSigmoid")
def hard_sigmoid(at: NodeSite) -> Array:
    alpha, beta = at.attr("alpha", float(np.float32(0.2))), at.attr("beta", 0.5)
    return np.maximum(0, np.minimum(1, alpha * at[0] + beta))


@judges("Shrink")
def shrink(at: NodeSite) -> Array:
    x, bias, least = at[0], at.attr("bias", 0.0), at.attr("lambd", 0.5)
    return np.where(x < -least, x + bias, np.where(x > least, x - bias, 0)).astype(x.dtype)


@judges("Gelu")
def gelu_of_onnx(at: NodeSite) -> Array:
    return gelu(at[0], at.attr("approximate", "none"))


@judges("Swish")
def swish(at: NodeSite) -> Array:
    return at[0] * sigmoid(at.attr("alpha", 1.0) * at[0])


@judges("IsInf")
def infinite(at: NodeSite) -> Array:
    x = at[0]
    up, down = at.attr("detect_positive", 1), at.attr("detect_negative", 1)
    return np.isinf(x) & ((x > 0) & bool(up) | (x < 0) & bool(down))


@judges("Clip")
def clip(at: NodeSite) -> Array:
    x = at[0]
    low = at.get(1, at.attr("min"))
    high = at.get(2, at.attr("max"))
    x = x if low is None else np.maximum(x, np.asarray(low, x.dtype))
    return x if high is None else np.minimum(x, np.asarray(high, x.dtype))


# -- two operands


def aligned(at: NodeSite) -> tuple[Array, Array]:
    """Both operands; before opset 7 the second one begins at an axis of the first."""
    a, b = at[0], at[1]
    if at.version < 7 and at.node.domain == "" and at.attr("broadcast", 0):
        axis = at.attr("axis", a.ndim - b.ndim) % max(a.ndim, 1)
        b = b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))
    return a, b


@judges("Div")
def divided(at: NodeSite) -> Array:
    """Of integers truncated; by zero it is not defined."""
    a, b = np.broadcast_arrays(*aligned(at))
    if a.dtype.kind not in "iu":
        return a / b
    low, high = limits(at.type(0) or a.dtype.name)
    by_zero, over = b == 0, (a == low) & (b.astype(np.int64) == -1) & (low < 0)
    divisor = np.where(by_zero | over, np.ones_like(b), b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    signed = np.where(a > 0, high, np.where(a < 0, low, 0)).astype(a.dtype)
    ends = [np.full_like(a, each) for each in (low, high)]
    ways = [0 * a, ~(0 * a), signed, *ends]
    found = at.left_open("an integer is divided by zero", *(np.where(by_zero, way, quotient) for way in ways))
    why = "the quotient of integers has no place in their type"
    return at.left_open(why, *(np.where(over, way, found) for way in (*ends, 0 * a)))


def _compared(function: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.asarray(function(a, b), bool)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "And": np.logical_and,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": _compared(np.equal),
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}


def _of_two(function: Callable[[Array, Array], Array]) -> Callable[[NodeSite], Array]:
    return lambda at: function(*aligned(at))


for _name, _binary in _BINARY.items():
    judges(_name)(_of_two(_binary))


@judges("Pow")
def power(at: NodeSite) -> Array:
    x, exponent = aligned(at)
    if x.dtype.kind in "iu":
        if exponent.dtype.kind in "iu" and np.all(exponent >= 0):
            return np.power(x, exponent.astype(x.dtype))
        exact = np.power(x.astype(np.float64), exponent.astype(np.float64))
        why = "a power of integers has no place in their type"
        low, high = limits(x.dtype.name)
        if np.any((np.abs(exact) > 2**53) & (exact >= low) & (exact <= high)):
            raise NoWitness(why)
        return next_to(at, exact, x.dtype.name, 1.0, why)
    return np.power(x, exponent.astype(np.float64))


@judges("Mod")
def remainder(at: NodeSite) -> Array:
    a, b = at[0], at[1]
    if a.dtype.kind in "iu" and not np.all(b):
        a, b = np.broadcast_arrays(a, b)
        rest = _remainder(at, a, np.where(b == 0, np.ones_like(b), b))
        return at.left_open(
            "an integer is divided by zero", *(np.where(b == 0, way, rest) for way in (0 * a, a, ~(0 * a)))
        )
    return _remainder(at, a, b)


def _remainder(at: NodeSite, a: Array, b: Array) -> Array:
    return np.fmod(a, b) if at.attr("fmod", 0) or a.dtype.kind == "f" else np.mod(a, b)


@judges("BitShift")
def shifted(at: NodeSite) -> Array:
    shift = np.left_shift if at.attr("direction") == "LEFT" else np.right_shift
    bits = at[0].dtype.itemsize * 8
    around = shift(at[0], (at[1] % bits).astype(at[1].dtype))
    gone = np.where(at[1] >= bits, np.zeros_like(around), around)
    return at.left_open("bits are shifted beyond the type", gone, around, np.where(at[1] >= bits, at[0], around))


@judges("Where")
def where(at: NodeSite) -> Array:
    return np.where(at[0].astype(bool), at[1], at[2])


# -- any number of operands


@judges("Max", "Min")
def extreme(at: NodeSite) -> Array:
    function = np.maximum if at.node.op == "Max" else np.minimum
    found = at[0]
    for operand in at.operands[1:]:
        found = function(found, operand)
    return np.asarray(found)


@judges("Sum", "Mean")
def sums(at: NodeSite) -> Array:
    total = at[0]
    for operand in at.operands[1:]:
        total = total + operand
    return total / len(at.operands) if at.node.op == "Mean" else np.asarray(total)
