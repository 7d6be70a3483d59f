"""Rules for convolutions and matrix products of quantized tensors: sums of integers, requantized once or, where results
are not quantized, converted to floats once.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ....base.dtypes import f32, i32
from ....codegen.int8.dot import RAISED_SHIFTS
from ....graph.ir import Value
from ....ops.binary import Add, Mul
from ....ops.cast import Cast
from ....ops.conv import Conv, ConvInteger, ConvTranspose, ConvTransposeInteger
from ....ops.matmul import Gemm, MatMulInteger
from ....ops.quantize import QuantizeLinear
from ...pattern import Maker, Match, OptionalOperand, ResultOf, Rule
from ...quantized.quantized_tensors import Scheme, exact, rescaled
from .quantized_patterns import BIAS, W, X, between, bounds, product_range, result, source, zero_of
from .quantized_weights import Ranges, Weights

# Factors are about one over the largest sum, which is larger for sums of more products; see ShortRescale. Code contains
# the shift, so the usual one comes first, and models of one architecture should agree.
SHIFTS_OF_MANY = (3, 2, 4, 1, 5, 0, 6, 7, 8, *RAISED_SHIFTS)
SHIFTS_OF_FEW = (2, 3, 1, 4, 0, 5, 6, 7, 8, *RAISED_SHIFTS)
SHIFTS_OF_UPDATES = RAISED_SHIFTS[:1]  # keeps 31 bits of every factor


def _bias(match: Match, channels: int) -> list[Fraction] | None:
    """One number per channel, along the last axis that is longer than 1."""
    if "b" not in match.nodes and match.get("b") is None:
        return [Fraction(0)] * channels
    found = exact(match.node("b").output if "b" in match.nodes else match["b"])
    if found is None:
        return None
    shape, numbers = found
    if len(numbers) == 1:
        return numbers * channels
    return numbers if len(numbers) == channels and shape[-1] == channels else None


def _products(
    match: Match, make: Maker, total: Value, x: Scheme, w: Weights, folded: bool, shape: tuple[int, ...]
) -> Value | None:
    """Sums of products with weights, rescaled, or as floats where these are not quantized. `folded`: the zero point of
    x has not been subtracted."""
    bias = _bias(match, w.channels)
    if bias is None:
        return None
    less = [x.zero * total for total in w.sums()] if folded else [0] * w.channels
    if not isinstance(match.root.op, QuantizeLinear):
        ranges = [*w.ranges(x.low - x.zero, x.high - x.zero), *w.ranges(x.low, x.high)]
        if folded and match.get("x_zero") is not None and _fit_i32(ranges):
            counter = np.array([-number for number in less], np.int32).reshape(shape)
            total = make.node(Add(), total, make.constant(counter, f"{match.root.output.name}/zeros"))
        scales = [x.scale * scale for scale in w.scales]
        has_bias = "b" in match.nodes or match.get("b") is not None
        return _floats(match, make, total, ranges, scales, bias if has_bias else None, shape)
    y = result(match)
    factors = [x.scale * scale / y.scale for scale in w.scales]
    constants = [b / y.scale - f * number for b, f, number in zip(bias, factors, less, strict=True)]
    away = 0 if folded else x.zero
    ranges = w.ranges(x.low - away, x.high - away)
    numbers = [[f] for f in factors], constants, [[reach] for reach in ranges]
    op = match.node("anchor").op
    few = isinstance(op, Conv) and op.group > 1
    shifts: Sequence[int] = SHIFTS_OF_FEW if few else SHIFTS_OF_MANY
    if make.whole.updatable and not few:
        shifts = SHIFTS_OF_UPDATES
    return rescaled(make, [total], *numbers, shape, y, bounds(match), shifts=shifts)


def _conv(match: Match, make: Maker) -> Value | None:
    x, w, node = source(match, "x"), Weights(match, 0), match.node("anchor")
    op = node.op
    assert isinstance(op, Conv)
    if x is None or not w.usable:
        return None
    padded = any(op.window(node.site()).pads)
    zero = make.constant(np.array(x.zero, x.dtype.numpy), f"{match['x'].name}/zero") if padded else None
    weights = make.constant(w.array, match["w"].name)
    total = make.node(ConvInteger(**vars(op)), match["x"], weights, zero, w.zero_operand(match, make))
    return _products(match, make, total, x, w, not padded, (w.channels, *[1] * (node.output.type.rank - 2)))


def _conv_transpose(match: Match, make: Maker) -> Value | None:
    op, rank = match.node("anchor").op, match["w"].type.rank
    assert isinstance(op, ConvTranspose)
    x, w = source(match, "x"), Weights(match, 1, op.group)
    array = w.without_zeros(match, make) if w.usable else None
    if x is None or array is None:
        return None
    weights, zero = make.constant(array, match["w"].name), zero_of(make, match["x"], x)
    total = make.node(ConvTransposeInteger(**vars(op)), match["x"], weights, zero)
    return _products(match, make, total, x, w, False, (w.channels, *[1] * (rank - 2)))


def _matrix(match: Match, make: Maker) -> Value | None:
    """Gemm or MatMul with constant weights, and maybe a bias."""
    op = match.node("anchor").op
    turned = isinstance(op, Gemm) and bool(op.transB)
    if match["w"].type.rank != 2 or (isinstance(op, Gemm) and (op.alpha, op.beta, op.transA) != (1, 1, 0)):
        return None
    x, w = source(match, "x"), Weights(match, 0 if turned else 1)
    if x is None or not w.usable or match["x"].type.rank < 1:
        return None
    weights = make.constant(np.ascontiguousarray(w.array.T) if turned else w.array, match["w"].name)
    total = make.node(MatMulInteger(), match["x"], weights, None, w.zero_operand(match, make))
    return _products(match, make, total, x, w, True, (w.channels,))


def _matmul(match: Match, make: Maker) -> Value | None:
    """Of two matrices that are both computed."""
    a, b = source(match, "x"), source(match, "w")
    depth = match["x"].type.shape[-1:]
    if a is None or b is None or not depth or not isinstance(depth[0], int):
        return None
    zeros = [zero_of(make, match[name], found) for name, found in (("x", a), ("w", b))]
    total = make.node(MatMulInteger(), match["x"], match["w"], *zeros)
    low, high = product_range(a, b)
    reach = [(min(low * depth[0], 0), max(high * depth[0], 0))]
    if not isinstance(match.root.op, QuantizeLinear):
        return _floats(match, make, total, reach, [a.scale * b.scale], None, ())
    y, shifts = result(match), SHIFTS_OF_UPDATES if make.whole.updatable else SHIFTS_OF_MANY
    factors = [[a.scale * b.scale / y.scale]]
    return rescaled(make, [total], factors, [Fraction(0)], [reach], (), y, bounds(match), shifts=shifts)


def _floats(
    match: Match,
    make: Maker,
    total: Value,
    ranges: Ranges,
    scales: Sequence[Fraction],
    bias: Sequence[Fraction] | None,
    shape: tuple[int, ...],
) -> Value | None:
    """What sums of integers, within these ranges, stand for."""
    if not _fit_i32(ranges):
        return None
    name = match.root.output.name

    def constant(numbers: Sequence[Fraction], what: str) -> Value:
        return make.constant(np.array([float(number) for number in numbers], np.float32).reshape(shape), what)

    found = make.node(Mul(), make.node(Cast(f32.onnx), total), constant(scales, f"{name}/scale"))
    return found if bias is None else make.node(Add(), found, constant(bias, f"{name}/bias"))


def _fit_i32(ranges: Ranges) -> bool:
    return all(i32.low < low and high <= i32.high for low, high in ranges)


_PLAIN = ResultOf("MatMul", X, W, name="anchor", read_once=True)
PRODUCTS = (
    between("conv", ResultOf("Conv", X, W, OptionalOperand(BIAS), name="anchor", read_once=True), _conv),
    between(
        "conv_transpose",
        ResultOf("ConvTranspose", X, W, OptionalOperand(BIAS), name="anchor", read_once=True),
        _conv_transpose,
    ),
    between("gemm", ResultOf("Gemm", X, W, OptionalOperand(BIAS), name="anchor", read_once=True), _matrix),
    between("matmul", _PLAIN, _matrix),
    between("matmul_computed", _PLAIN, _matmul),
    between("matmul_bias", ResultOf("Add", _PLAIN, BIAS, either_order=True, read_once=True), _matrix),
)

# What is left of products of quantized tensors, whose results are floats.
FLOAT_RESULTS = (
    Rule("conv_to_floats", ResultOf("Conv", X, W, OptionalOperand(BIAS), name="anchor"), _conv),
    Rule(
        "conv_transpose_to_floats",
        ResultOf("ConvTranspose", X, W, OptionalOperand(BIAS), name="anchor"),
        _conv_transpose,
    ),
    Rule("gemm_to_floats", ResultOf("Gemm", X, W, OptionalOperand(BIAS), name="anchor"), _matrix),
    Rule("matmul_bias_to_floats", ResultOf("Add", _PLAIN, BIAS, either_order=True), _matrix),
    Rule("matmul_to_floats", ResultOf("MatMul", X, W, name="anchor"), _matrix),
    Rule("matmul_computed_to_floats", ResultOf("MatMul", X, W, name="anchor"), _matmul),
)
