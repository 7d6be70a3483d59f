"""Patterns of quantized operands that the rules of lower_qdq share, and the properties of a match."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ....graph.ir import Value
from ...pattern import AnyValue, ConstantOperand, FirstOf, Maker, Match, OptionalOperand, ResultOf, Rule
from ...quantized.quantized_tensors import Bounds, Scheme, scheme


def linear(name: str) -> ResultOf:
    """The floats behind integers called `name`."""
    return ResultOf(
        "DequantizeLinear",
        AnyValue(name),
        ConstantOperand(f"{name}_scale"),
        OptionalOperand(ConstantOperand(f"{name}_zero")),
        name=name,
    )


X, W = linear("x"), linear("w")
BIAS = FirstOf(ResultOf("DequantizeLinear", ConstantOperand("b_integers"), rest=True, name="b"), ConstantOperand("b"))


def between(name: str, inside: ResultOf, build: Callable[[Match, Maker], Value | None]) -> Rule:
    """`inside`, maybe an activation, QuantizeLinear."""
    relu = ResultOf("Relu", inside, name="activation", read_once=True)
    clip = ResultOf(
        "Clip",
        inside,
        OptionalOperand(ConstantOperand("low")),
        OptionalOperand(ConstantOperand("high")),
        name="activation",
        read_once=True,
    )
    pattern = ResultOf(
        "QuantizeLinear",
        FirstOf(relu, clip, inside),
        ConstantOperand("y_scale"),
        OptionalOperand(ConstantOperand("y_zero")),
    )
    return Rule(name, pattern, build, lambda match: target(match) is not None)


def target(match: Match) -> Scheme | None:
    found = scheme(match.root)
    return found if found is not None and found.is_short else None


def result(match: Match) -> Scheme:
    found = target(match)
    assert found is not None  # the condition of every rule
    return found


def source(match: Match, name: str) -> Scheme | None:
    """How the integers called `name` are quantized, where it is one for all and of 8 or 16 bits."""
    found = scheme(match.node(name))
    return found if found is not None and found.is_short else None


def bounds(match: Match) -> Bounds:
    activation = match.nodes.get("activation")
    if activation is None:
        return Bounds(None, None)
    if activation.op.name == "Relu":
        return Bounds(0, None)
    scale = result(match).scale

    def bound(name: str) -> int | None:
        if match.get(name) is None:
            return None
        number = float(match.array(name).reshape(-1)[0])
        return round(Fraction(number) / scale) if math.isfinite(number) else None

    return Bounds(bound("low"), bound("high"))


def zero_of(make: Maker, value: Value, found: Scheme) -> Value:
    return make.constant(np.array(found.zero, found.dtype.numpy), f"{value.name}/zero")


def product_range(a: Scheme, b: Scheme) -> tuple[int, int]:
    corners = [(p - a.zero) * (q - b.zero) for p in (a.low, a.high) for q in (b.low, b.high)]
    return min(corners), max(corners)
