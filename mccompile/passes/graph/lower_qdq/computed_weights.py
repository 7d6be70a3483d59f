"""Rules for convolutions and matrix products of quantized tensors whose weights or biases are computed, as those that
learn are: sums of integers, requantized once.

What such sums are is known only at run time, so that nothing proves their fixed point exact: what comes closer to a
half than numbers of 64 bits tell is rounded as a half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

from ....base.dims import static
from ....graph.ir import Value
from ....ops.conv import Conv, ConvInteger
from ....ops.matmul import Gemm, MatMulInteger
from ....ops.reshape import Reshape
from ....ops.transpose import Transpose
from ...pattern import AnyValue, ConstantOperand, FirstOf, Maker, Match, OptionalOperand, ResultOf
from ...quantized.quantized_tensors import Scheme, exact, rescaled, scheme
from .quantized_patterns import W, X, between, bounds, product_range, result, source, zero_of

Number = TypeVar("Number", int, Fraction)
_BIAS = FirstOf(ResultOf("DequantizeLinear", AnyValue("b_integers"), rest=True, name="b"), ConstantOperand("b"))


def _conv(match: Match, make: Maker) -> Value | None:
    op, shape = match.node("anchor").op, match["w"].type.shape
    assert isinstance(op, Conv)
    x, w = source(match, "x"), _weights(match, 0)
    if x is None or w is None or not match["w"].type.is_static:
        return None
    zeros = zero_of(make, match["x"], x), _zero(match, make, w)
    total = make.node(ConvInteger(**vars(op)), match["x"], match["w"], *zeros)
    depth = math.prod(static(size) for size in shape[1:])
    return _products(match, make, total, x, w, depth, (static(shape[0]), *[1] * (len(shape) - 2)))


def _matrix(match: Match, make: Maker) -> Value | None:
    op, integers = match.node("anchor").op, match["w"]
    turned = isinstance(op, Gemm) and bool(op.transB)
    if isinstance(op, Gemm) and (op.alpha, op.beta, op.transA) != (1, 1, 0):
        return None
    x, w = source(match, "x"), _weights(match, 0 if turned else 1)
    if x is None or w is None or integers.type.rank != 2 or not integers.type.is_static:
        return None
    zeros = zero_of(make, match["x"], x), _zero(match, make, w)
    integers = make.node(Transpose((1, 0)), integers) if turned else integers
    depth, channels = integers.type.static_shape
    total = make.node(MatMulInteger(), match["x"], integers, *zeros)
    return _products(match, make, total, x, w, depth, (channels,))


def _weights(match: Match, axis: int) -> Scheme | None:
    found = scheme(match.node("w"))
    if found is None or found.dtype.bits != 8 or found.axis not in (None, axis) or len(set(found.zeros)) > 1:
        return None
    return found


def _zero(match: Match, make: Maker, w: Scheme) -> Value | None:
    return zero_of(make, match["w"], w) if w.zero else None


def _products(
    match: Match, make: Maker, total: Value, x: Scheme, w: Scheme, depth: int, shape: tuple[int, ...]
) -> Value | None:
    channels, y = shape[0], result(match)
    bias = _bias(match, make, shape)
    if bias is None or (bias.term is None and match["w"].constant is not None):
        return None
    low, high = product_range(x, w)
    reach = (min(low * depth, 0), max(high * depth, 0))
    factors = [[x.scale * scale / y.scale] for scale in _each(w.scales, channels)]
    terms, ranges = [total], [[reach]] * channels
    if bias.term is not None:
        terms.append(bias.term)
        factors = [[*factor, scale / y.scale] for factor, scale in zip(factors, bias.scales, strict=True)]
        ranges = [[reach, bias.reach]] * channels
    constants = [number / y.scale for number in bias.constants]
    return rescaled(make, terms, factors, constants, ranges, shape, y, bounds(match), proven=False)


class _Bias:
    """One number per channel; or integers that are computed, with their scales, and what is added to these."""

    def __init__(self, constants: Sequence[Fraction], scales: Sequence[Fraction] = (), term: Value | None = None):
        self.constants, self.scales, self.term = constants, scales, term
        self.reach = (int(term.type.dtype.low), int(term.type.dtype.high)) if term is not None else (0, 0)


def _bias(match: Match, make: Maker, shape: tuple[int, ...]) -> _Bias | None:
    channels = shape[0]
    if "b" not in match.nodes and match.get("b") is None:
        return _Bias([Fraction(0)] * channels)
    value = match.node("b").output if "b" in match.nodes else match["b"]
    if value.type.shape not in ((channels,), ()):
        return None
    if (known := exact(value)) is not None:
        return _Bias(_each(known[1], channels))
    found = scheme(match.node("b"))
    if found is None:
        return None
    scales = _each(found.scales, channels)
    less = [-zero * scale for zero, scale in zip(_each(found.zeros, channels), scales, strict=True)]
    integers = match["b_integers"]
    if len(shape) > 1 and value.type.rank:
        to = make.constant(np.array(shape, np.int64), f"{integers.name}/shape")
        integers = make.node(Reshape(), integers, to)
    return _Bias(less, scales, integers)


def _each(numbers: Sequence[Number], channels: int) -> list[Number]:
    return list(numbers) * channels if len(numbers) == 1 else list(numbers)


_PLAIN = ResultOf("MatMul", X, W, name="anchor", read_once=True)
COMPUTED_WEIGHTS = (
    between("conv_computed", ResultOf("Conv", X, W, OptionalOperand(_BIAS), name="anchor", read_once=True), _conv),
    between("gemm_computed", ResultOf("Gemm", X, W, OptionalOperand(_BIAS), name="anchor", read_once=True), _matrix),
    between("matmul_bias_computed", ResultOf("Add", _PLAIN, _BIAS, either_order=True, read_once=True), _matrix),
)
