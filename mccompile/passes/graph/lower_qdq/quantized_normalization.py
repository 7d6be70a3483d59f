"""Softmax and normalizations between quantized tensors: computes the parameters of the operators in
ops/byte_normalization.py.

Invariant: nothing is made where a number would not have the bits that the definitions of the kinds count on.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from ....base.dims import product
from ....base.dtypes import f32
from ....graph.ir import Value
from ....kinds.byte_norm import LARGEST, Precision
from ....ops.api import normal_axis
from ....ops.byte_normalization import NormInteger, SoftmaxInteger
from ....ops.normalization import GroupNormalization, InstanceNormalization, LayerNormalization, RMSNormalization
from ....ops.softmax import Softmax
from ...pattern import ConstantOperand, FirstOf, Maker, Match, OptionalOperand, Pattern, ResultOf
from ...quantized.quantized_tensors import Scheme, exact

TABLE_BITS = 30  # of an exponential
FEWEST_BITS = 8  # of a result behind the point; 16 are usual
MOST_BITS = 30
Normalization = LayerNormalization | RMSNormalization | InstanceNormalization | GroupNormalization


def numbers(name: str) -> Pattern:
    """Constant floats, or integers that stand for such."""
    quantized = ResultOf("DequantizeLinear", ConstantOperand(f"{name}_integers"), rest=True, name=name)
    return FirstOf(quantized, ConstantOperand(name))


def normalizations(x: Pattern) -> tuple[ResultOf, ...]:
    """Normalizations of x, with constant gain and bias."""
    both = "LayerNormalization InstanceNormalization GroupNormalization"
    return (
        ResultOf(both, x, numbers("gain"), OptionalOperand(numbers("bias")), name="anchor", read_once=True),
        ResultOf("RMSNormalization", x, numbers("gain"), name="anchor", read_once=True),
    )


def softmax(match: Match, make: Maker, x: Scheme, y: Scheme) -> Value | None:
    op, source = match.node("anchor").op, match["x"]
    assert isinstance(op, Softmax)
    inverse = 1 / y.scale
    whole = -(-inverse.numerator // inverse.denominator)
    shift = 61 - whole.bit_length()  # the factor stays below 2^62
    if not 32 <= shift <= 60:
        return None
    name = match.root.output.name
    zero = np.array(y.zero, y.dtype.numpy)
    return make.node(
        SoftmaxInteger(op.axes(source.type.rank)),
        source,
        make.constant(exponentials(x.scale), f"{name}/exponentials"),
        make.constant(np.array(round(inverse * 2**shift), np.int64), f"{name}/factor"),
        make.constant(np.array(shift, np.uint8), f"{name}/shift"),
        make.constant(zero, f"{name}/zero"),
    )


def exponentials(step: Fraction) -> np.ndarray:
    """exp(-d * step) for d from 0 to 255, as multiples of 2^-TABLE_BITS; the same on every machine."""
    with localcontext() as context:
        context.prec = 60
        unit = Decimal(step.numerator) / Decimal(step.denominator)
        powers = [(-unit * d).exp() * (1 << TABLE_BITS) for d in range(256)]
        return np.array([int(power.to_integral_value()) for power in powers], np.uint32)


def normalized(match: Match, make: Maker, x: Scheme, y: Scheme) -> Value | None:
    op, source = match.node("anchor").op, match["x"]
    assert isinstance(op, Normalization)
    axes, groups = _extent(op, source)
    shape = source.type.static_shape if source.type.is_static else ()
    if not shape:
        return None
    count = product(shape[axis] for axis in axes) if not groups else product(shape[1:]) // groups
    found = [_spread(match, name, op, len(shape)) for name in ("gain", "bias")]
    if not isinstance(count, int) or not 0 < count <= LARGEST or None in found:
        return None
    (gain_shape, gains), (bias_shape, biases) = (part for part in found if part is not None)
    precision = Precision(count)
    epsilon = round(Fraction(float(op.epsilon)) * count * count / x.scale**2 * 2**precision.fraction)
    bits = _bits_behind(precision, [gain / y.scale for gain in gains], [bias / y.scale + y.zero for bias in biases])
    if epsilon >= 1 << 60 or bits is None:
        return None
    factor = Fraction(2) ** (bits + 32 - precision.places)
    wide_gains = [round(gain / y.scale * factor) for gain in gains]
    addends = [_rounding(bias / y.scale, bits) + (y.zero << bits) for bias in biases]
    name = match.root.output.name
    measure = "rms" if isinstance(op, RMSNormalization) else "standardize"
    return make.node(
        NormInteger(measure, y.dtype.onnx, () if groups else axes, groups),
        source,
        make.constant(np.array(x.zero, x.dtype.numpy), f"{name}/x_zero"),
        make.constant(np.array(max(epsilon, 1), np.int64), f"{name}/epsilon"),
        make.constant(np.array(wide_gains, np.int32).reshape(gain_shape), f"{name}/gain"),
        make.constant(np.array(addends, np.int32).reshape(bias_shape), f"{name}/bias"),
        make.constant(np.array(bits, np.uint8), f"{name}/shift"),
    )


def _rounding(bias: Fraction, bits: int) -> int:
    """What to add so that rounding down rounds to the nearest; a half to the even number, since that is what is left
    where all elements are alike."""
    nearest: int = round((bias + Fraction(1, 2)) * (1 << bits))
    return nearest - (bias.denominator == 2 and (bias - Fraction(1, 2)) % 2 == 0)


def _extent(op: Normalization, x: Value) -> tuple[tuple[int, ...], int]:
    """The axes that are normalized together, or the number of groups of channels."""
    rank = x.type.rank
    match op:
        case LayerNormalization() | RMSNormalization():
            return tuple(range(normal_axis(op.axis, rank), rank)), 0
        case InstanceNormalization():
            return tuple(range(2, rank)), 0
        case GroupNormalization():
            return (), op.num_groups


def _spread(match: Match, name: str, op: Normalization, rank: int) -> tuple[tuple[int, ...], list[Fraction]] | None:
    """A gain or bias, in a shape that broadcasts to x; a bias that is absent is 0."""
    if name not in match.nodes and match.get(name) is None:
        return (), [Fraction(0)]
    value = match.node(name).output if name in match.nodes else match[name]
    found = exact(value)
    if found is None or value.type.dtype is not f32:
        return None
    shape, elements = found
    of_channels = isinstance(op, InstanceNormalization | GroupNormalization)
    return ((*shape, *[1] * (rank - 2)) if of_channels else shape), elements


def _bits_behind(precision: Precision, gains: Sequence[Fraction], addends: Sequence[Fraction]) -> int | None:
    """How many bits a result has behind the point before it is rounded, so that all numbers fit."""
    gain, addend = max(map(abs, gains)), max(map(abs, addends))
    for bits in range(MOST_BITS, FEWEST_BITS - 1, -1):
        factor = Fraction(2) ** (bits + 32 - precision.places)
        if gain * factor < (1 << 31) - 1 and (addend + 1) * 2**bits < 1 << 29:
            return bits
    return None
