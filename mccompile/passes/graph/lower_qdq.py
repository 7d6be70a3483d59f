"""lower_qdq: DequantizeLinear, operator, QuantizeLinear become one operator over integers.

The result is the rational value of everything between the integers that go in and the one that comes out, rounded to
the nearest once, halves to even, and saturated; scales are the rational numbers that their floats are. Where fixed
point cannot be proven to give exactly that, or an operator has no integer form, floats stay; `graph.left_in_float` says
where and why. In four steps:

1. Operators that only move elements are applied to the integers (`move_integers`).
2. The rules below, each rooted at a QuantizeLinear; then those for products of quantized tensors whose results are
   not quantized: integers are summed, and become floats once.
3. Chains of what came out become tables (`join_tables`).
4. What is left is noted.

That a zero point of weights is 0, or that two tensors are quantized alike, is a fact about values and recorded.
Invariant: folding has left DequantizeLinear of weights alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from ...base.dims import static
from ...base.dtypes import f32, i32
from ...base.provenance import show
from ...graph.ir import Graph, Value, all_nodes
from ...graph.pattern import (
    Anything,
    ConstantOperand,
    Either,
    Made,
    Maker,
    Match,
    Maybe,
    Rule,
    rewrite,
)
from ...ops.binary import Add, Mul
from ...ops.cast import Cast
from ...ops.concat import Concat
from ...ops.conv import Conv, ConvInteger, ConvTranspose, ConvTransposeInteger
from ...ops.fixed_point import Lookup, ProductInteger, SumPool, times_taken
from ...ops.matmul import Gemm, MatMulInteger
from ...ops.pool import AveragePool
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ..api import Context
from .eliminate_dead import eliminate_dead
from .fold_constants import fold_constants
from .join_tables import join_tables
from .lookup_table import table
from .move_integers import MOVES, move_integers
from .quantized import Bounds, Scheme, bytes_rescaled, dequantized, exact, rescaled, scheme
from .quantized_normalization import normalizations, normalized, softmax
from .quantized_weights import Ranges, Weights

# Factors are about one over the largest sum, which is larger for sums of more products; see ShortRescale.
SHIFT_OF_FEW, SHIFT_OF_MANY = 2, 3


def lower_qdq(graph: Graph, context: Context) -> None:
    if not any(isinstance(node.op, DequantizeLinear) for node in all_nodes(graph)):
        return
    move_integers(graph)
    fold_constants(graph, context)
    rewrite(graph, RULES)
    rewrite(graph, FLOAT_RESULTS)
    eliminate_dead(graph, context)
    join_tables(graph)
    _note(graph)


def _linear(name: str) -> Made:
    """The floats behind integers called `name`."""
    return Made(
        "DequantizeLinear",
        Anything(name),
        ConstantOperand(f"{name}_scale"),
        Maybe(ConstantOperand(f"{name}_zero")),
        name=name,
    )


X, W = _linear("x"), _linear("w")
BIAS = Either(Made("DequantizeLinear", ConstantOperand("b_integers"), rest=True, name="b"), ConstantOperand("b"))


def _quantized(name: str, inside: Made, build: Callable[[Match, Maker], Value | None]) -> Rule:
    """`inside`, maybe an activation, QuantizeLinear."""
    relu = Made("Relu", inside, name="activation", read_once=True)
    clip = Made(
        "Clip", inside, Maybe(ConstantOperand("low")), Maybe(ConstantOperand("high")), name="activation", read_once=True
    )
    pattern = Made(
        "QuantizeLinear", Either(relu, clip, inside), ConstantOperand("y_scale"), Maybe(ConstantOperand("y_zero"))
    )
    return Rule(name, pattern, build, lambda match: _target(match) is not None)


def _target(match: Match) -> Scheme | None:
    found = scheme(match.root)
    return found if found is not None and found.is_short else None


def _result(match: Match) -> Scheme:
    found = _target(match)
    assert found is not None  # the condition of every rule
    return found


def _source(match: Match, name: str) -> Scheme | None:
    """How the integers called `name` are quantized, where it is one for all and of 8 or 16 bits."""
    found = scheme(match.node(name))
    return found if found is not None and found.is_short else None


def _bounds(match: Match) -> Bounds:
    activation = match.nodes.get("activation")
    if activation is None:
        return Bounds(None, None)
    if activation.op.name == "Relu":
        return Bounds(0, None)
    scale = _result(match).scale

    def bound(name: str) -> int | None:
        if match.get(name) is None:
            return None
        number = float(match.array(name).reshape(-1)[0])
        return round(Fraction(number) / scale) if math.isfinite(number) else None

    return Bounds(bound("low"), bound("high"))


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
    y = _result(match)
    factors = [x.scale * scale / y.scale for scale in w.scales]
    constants = [b / y.scale - f * number for b, f, number in zip(bias, factors, less, strict=True)]
    away = 0 if folded else x.zero
    ranges = w.ranges(x.low - away, x.high - away)
    numbers = [[f] for f in factors], constants, [[reach] for reach in ranges]
    op = match.node("anchor").op
    shift = SHIFT_OF_FEW if isinstance(op, Conv) and op.group > 1 else SHIFT_OF_MANY
    return rescaled(make, [total], *numbers, shape, y, _bounds(match), shift=shift)


def _conv(match: Match, make: Maker) -> Value | None:
    x, w, node = _source(match, "x"), Weights(match, 0), match.node("anchor")
    op = node.op
    assert isinstance(op, Conv)
    if x is None or not w.usable:
        return None
    padded = any(op.window(node.site()).pads)
    zero = make.constant(np.array(x.zero, x.dtype.numpy), f"{match['x'].name}/zero") if padded else None
    weights = make.constant(w.array, match["w"].name)
    integer = ConvInteger(op.auto_pad, op.dilations, op.group, op.kernel_shape, op.pads, op.strides)
    total = make.node(integer, match["x"], weights, zero, w.zero_operand(match, make))
    return _products(match, make, total, x, w, not padded, (w.channels, *[1] * (node.output.type.rank - 2)))


def _conv_transpose(match: Match, make: Maker) -> Value | None:
    op, rank = match.node("anchor").op, match["w"].type.rank
    assert isinstance(op, ConvTranspose)
    x, w = _source(match, "x"), Weights(match, 1, op.group)
    array = w.without_zeros(match, make) if w.usable else None
    if x is None or array is None:
        return None
    weights, zero = make.constant(array, match["w"].name), _zero(make, match["x"], x)
    integer = ConvTransposeInteger(
        op.auto_pad, op.dilations, op.group, op.kernel_shape, op.output_padding, op.output_shape, op.pads, op.strides
    )
    total = make.node(integer, match["x"], weights, zero)
    return _products(match, make, total, x, w, False, (w.channels, *[1] * (rank - 2)))


def _matrix(match: Match, make: Maker) -> Value | None:
    """Gemm or MatMul with constant weights, and maybe a bias."""
    op = match.node("anchor").op
    turned = isinstance(op, Gemm) and bool(op.transB)
    if match["w"].type.rank != 2 or (isinstance(op, Gemm) and (op.alpha, op.beta, op.transA) != (1, 1, 0)):
        return None
    x, w = _source(match, "x"), Weights(match, 0 if turned else 1)
    if x is None or not w.usable or match["x"].type.rank < 1:
        return None
    weights = make.constant(np.ascontiguousarray(w.array.T) if turned else w.array, match["w"].name)
    total = make.node(MatMulInteger(), match["x"], weights, None, w.zero_operand(match, make))
    return _products(match, make, total, x, w, True, (w.channels,))


def _matmul(match: Match, make: Maker) -> Value | None:
    """Of two matrices that are both computed."""
    a, b = _source(match, "x"), _source(match, "w")
    depth = match["x"].type.shape[-1:]
    if a is None or b is None or not depth or not isinstance(depth[0], int):
        return None
    zeros = [_zero(make, match[name], found) for name, found in (("x", a), ("w", b))]
    total = make.node(MatMulInteger(), match["x"], match["w"], *zeros)
    low, high = _product_range(a, b)
    reach = [(min(low * depth[0], 0), max(high * depth[0], 0))]
    if not isinstance(match.root.op, QuantizeLinear):
        return _floats(match, make, total, reach, [a.scale * b.scale], None, ())
    y = _result(match)
    return rescaled(make, [total], [[a.scale * b.scale / y.scale]], [Fraction(0)], [reach], (), y, _bounds(match))


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


def _zero(make: Maker, value: Value, found: Scheme) -> Value:
    return make.constant(np.array(found.zero, found.dtype.numpy), f"{value.name}/zero")


def _product_range(a: Scheme, b: Scheme) -> tuple[int, int]:
    corners = [(p - a.zero) * (q - b.zero) for p in (a.low, a.high) for q in (b.low, b.high)]
    return min(corners), max(corners)


def _add(match: Match, make: Maker) -> Value | None:
    a, b, y = _source(match, "x"), _source(match, "w"), _result(match)
    if a is None or b is None:
        return None
    factors = [a.scale / y.scale, b.scale / y.scale]
    constant = -factors[0] * a.zero - factors[1] * b.zero
    terms = [match["x"], match["w"]]
    return _bytes_rescaled(match, make, terms, [a, b], factors, constant, y)


def _bytes_rescaled(
    match: Match,
    make: Maker,
    terms: Sequence[Value],
    sources: Sequence[Scheme],
    factors: Sequence[Fraction],
    constant: Fraction,
    y: Scheme,
) -> Value | None:
    if all(found.is_bytes for found in (*sources, y)):
        short = bytes_rescaled(make, terms, sources, factors, constant, y, _bounds(match))
        if short is not None:
            return short
    taken = [times_taken(found.dtype) for found in sources]
    ranges = [(found.low * unit, found.high * unit) for found, unit in zip(sources, taken, strict=True)]
    units = [factor / unit for factor, unit in zip(factors, taken, strict=True)]
    return rescaled(make, terms, [units], [constant], [ranges], (), y, _bounds(match), min(taken))


def _mul(match: Match, make: Maker) -> Value | None:
    a, b, y = _source(match, "x"), _source(match, "w"), _result(match)
    if a is None or b is None:
        return None
    zeros = [_zero(make, match[name], found) for name, found in (("x", a), ("w", b))]
    total = make.node(ProductInteger(), match["x"], match["w"], *zeros)
    factor = a.scale * b.scale / y.scale
    return rescaled(make, [total], [[factor]], [Fraction(0)], [[_product_range(a, b)]], (), y, _bounds(match))


def _requantize(match: Match, make: Maker) -> Value | None:
    x, y, q = _source(match, "x"), _result(match), match["x"]
    if x is None:
        return None
    bounds = _bounds(match)
    if x == y and bounds == Bounds(None, None):
        make.used(f"{q.name} and {match.root.output.name} are quantized alike")
        return q
    factor = x.scale / y.scale
    return _bytes_rescaled(match, make, [q], [x], [factor], -factor * x.zero, y)


def _pool(match: Match, make: Maker) -> Value | None:
    """Means of as many elements everywhere."""
    x, y, node = _source(match, "x"), _result(match), match.node("anchor")
    type = match["x"].type
    if x is None or not type.is_static:
        return None
    space = type.static_shape[2:]
    if isinstance(node.op, AveragePool):
        window, out = node.op.window(node.site())
        steps = zip(window.kernel, window.strides, window.dilations, out, space, strict=True)
        if any(window.pads) or any((static(n) - 1) * s + (k - 1) * d + 1 > size for k, s, d, n, size in steps):
            return None
        pool = SumPool(window.kernel, window.strides, window.dilations, window.pads, node.op.ceil_mode)
    else:
        ones = (1,) * len(space)
        pool = SumPool(space, ones, ones, (0,) * (2 * len(space)))
    count = math.prod(pool.kernel_shape)
    factor = x.scale / (count * y.scale)
    total = make.node(pool, match["x"])
    reach = [(count * x.low, count * x.high)]
    constant = -factor * count * x.zero
    shift = max(0, count.bit_length() - 3)
    return rescaled(make, [total], [[factor]], [constant], [reach], (), y, _bounds(match), shift=shift)


def _concat(match: Match, make: Maker) -> Value | None:
    """Parts are quantized before they are joined."""
    node, root = match.node("anchor"), match.root
    if not all(found is not None and found.is_short for found in map(dequantized, node.inputs)):
        return None
    assert isinstance(root.op, QuantizeLinear) and isinstance(node.op, Concat)
    return make.node(node.op, *(make.node(root.op, part, *root.inputs[1:]) for part in node.inputs))


def _normalization(
    build: Callable[[Match, Maker, Scheme, Scheme], Value | None],
) -> Callable[[Match, Maker], Value | None]:
    def made(match: Match, make: Maker) -> Value | None:
        x = _source(match, "x")
        y, plain = _result(match), _bounds(match) == Bounds(None, None)
        return build(match, make, x, y) if x is not None and x.is_bytes and y.is_bytes and plain else None

    return made


def _lookup(match: Match, make: Maker) -> Value | None:
    found = table(match["x"], _result(match))
    if found is None:
        return None
    source, entries = found
    return make.node(Lookup(), source, make.constant(entries, f"{match.root.output.name}/table"))


_PLAIN = Made("MatMul", X, W, name="anchor", read_once=True)
RULES = (
    _quantized("conv", Made("Conv", X, W, Maybe(BIAS), name="anchor", read_once=True), _conv),
    _quantized(
        "conv_transpose", Made("ConvTranspose", X, W, Maybe(BIAS), name="anchor", read_once=True), _conv_transpose
    ),
    _quantized("gemm", Made("Gemm", X, W, Maybe(BIAS), name="anchor", read_once=True), _matrix),
    _quantized("matmul", _PLAIN, _matrix),
    _quantized("matmul_computed", _PLAIN, _matmul),
    _quantized("matmul_bias", Made("Add", _PLAIN, BIAS, either_order=True, read_once=True), _matrix),
    _quantized("add", Made("Add", X, W, read_once=True), _add),
    _quantized("mul", Made("Mul", X, W, read_once=True), _mul),
    _quantized("pool", Made("AveragePool GlobalAveragePool", X, name="anchor", read_once=True), _pool),
    _quantized("requantize", X, _requantize),
    _quantized("softmax", Made("Softmax", X, name="anchor", read_once=True), _normalization(softmax)),
    *(_quantized("normalization", made, _normalization(normalized)) for made in normalizations(X)),
    _quantized("concat", Made("Concat", rest=True, name="anchor", read_once=True), _concat),
    Rule("lookup", Made("QuantizeLinear", Anything("x"), rest=True), _lookup, lambda match: _target(match) is not None),
)

# What is left of products of quantized tensors, whose results are floats.
FLOAT_RESULTS = (
    Rule("conv_to_floats", Made("Conv", X, W, Maybe(BIAS), name="anchor"), _conv),
    Rule("conv_transpose_to_floats", Made("ConvTranspose", X, W, Maybe(BIAS), name="anchor"), _conv_transpose),
    Rule("gemm_to_floats", Made("Gemm", X, W, Maybe(BIAS), name="anchor"), _matrix),
    Rule("matmul_bias_to_floats", Made("Add", _PLAIN, BIAS, either_order=True), _matrix),
    Rule("matmul_to_floats", Made("MatMul", X, W, name="anchor"), _matrix),
    Rule("matmul_computed_to_floats", Made("MatMul", X, W, name="anchor"), _matmul),
)


def _note(graph: Graph) -> None:
    for node in all_nodes(graph):
        if (
            isinstance(node.op, (DequantizeLinear, QuantizeLinear, *MOVES))
            or not node.outputs
            or node.outputs[0] is None
        ):
            continue
        sources = [value for value in node.present_inputs if dequantized(value) is not None]
        readers = [reader for reader, _ in node.output.uses]
        into = [reader for reader in readers if isinstance(reader.op, QuantizeLinear)]
        if not node.output.type.dtype.is_float or not (sources or into):
            continue
        others = [value for value in node.present_inputs if value.constant is None and value not in sources]
        if len(into) != len(readers) or not readers:
            why = "its result is not quantized"
        elif [value for value in others if value.type.dtype.is_float]:
            why = "its operands are not all quantized"
        else:
            why = f"{node.op.name} has no integer form with these attributes and types, or its sums may not fit 32 bits"
        graph.left_in_float[show(node.provenance)] = why
