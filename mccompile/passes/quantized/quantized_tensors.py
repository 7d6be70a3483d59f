"""Quantized tensors of a graph: their scales and zero points from DequantizeLinear and QuantizeLinear, in exact
numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from ...base.dtypes import SHORT, DType, f32, i8, u8
from ...base.records import dataclass
from ...codegen.int8.dot import RAISED_SHIFTS
from ...graph.ir import Node, Value
from ...ops.api import Operator
from ...ops.fixed_point import ByteRescale, PartRescale, Rescale, ShortRescale
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ..pattern import Maker
from .byte_rounding import SHIFT_OF_ALL, SHIFTS, byte_rounding
from .fixed_point import fixed_point
from .short_rounding import Rescaling, ShortRounding, short_numbers, short_roundings
from .two_part_rounding import two_part_rounding


@dataclass(frozen=True)
class Scheme:
    """An integer q stands for (q - zero) * scale: one of each, or one per position of an axis."""

    dtype: DType
    scales: tuple[Fraction, ...]
    zeros: tuple[int, ...]
    axis: int | None  # None: one for all

    @property
    def is_bytes(self) -> bool:
        """Is it one for all, and of 8 bits?"""
        return self.axis is None and self.dtype in (i8, u8)

    @property
    def is_short(self) -> bool:
        """Is it one for all, and of 8 or 16 bits?"""
        return self.axis is None and self.dtype in SHORT

    @property
    def scale(self) -> Fraction:
        return self.scales[0]

    @property
    def zero(self) -> int:
        return self.zeros[0]

    @property
    def low(self) -> int:
        """The lowest q."""
        return int(self.dtype.low)

    @property
    def high(self) -> int:
        return int(self.dtype.high)


def scheme(node: Node | None) -> Scheme | None:
    """Of the integers that a DequantizeLinear reads or a QuantizeLinear makes; None for what is not constant, not
    positive, in blocks, or not about f32."""
    if node is None or not isinstance(node.op, DequantizeLinear | QuantizeLinear) or node.op.block_size:
        return None
    is_read = isinstance(node.op, DequantizeLinear)
    source, result = node.inputs[0], node.output
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    scale = node.inputs[1]
    if source is None or scale is None or scale.constant is None or (zero is not None and zero.constant is None):
        return None
    integers, floats = (source, result) if is_read else (result, source)
    if scale.type.dtype is not f32 or floats.type.dtype is not f32 or not integers.type.dtype.is_integer:
        return None
    numbers = scale.constant.array.reshape(-1)
    if not np.isfinite(numbers).all() or not (numbers > 0).all():
        return None
    scales = tuple(Fraction(float(number)) for number in numbers)
    points = zero.constant.array.reshape(-1).astype(np.int64) if zero is not None and zero.constant else [0]
    zeros = tuple(int(point) for point in points)
    if scale.type.count == 1 and scale.type.rank < 2:
        return Scheme(integers.type.dtype, scales[:1], zeros[:1], None)
    axis = node.op.along(scale.type.shape, integers.type.shape)
    return Scheme(integers.type.dtype, scales, zeros * len(scales) if len(zeros) == 1 else zeros, axis)


def maker(value: Value | None) -> Node | None:
    return None if value is None else value.producer


def dequantized(value: Value | None) -> Scheme | None:
    """How the integers behind a value are quantized, if a DequantizeLinear makes it."""
    node = maker(value)
    return scheme(node) if node is not None and isinstance(node.op, DequantizeLinear) else None


def exact(value: Value | None) -> tuple[tuple[int, ...], list[Fraction]] | None:
    """Shape and elements of a float constant, also of one that is still quantized."""
    if value is None:
        return None
    if value.constant is not None:
        array = value.constant.array
        if not value.type.dtype.is_float or not np.isfinite(array.astype(np.float64)).all():
            return None
        return array.shape, [Fraction(float(number)) for number in array.reshape(-1)]
    found, node = dequantized(value), maker(value)
    if found is None or node is None or node.inputs[0] is None or node.inputs[0].constant is None:
        return None
    array = node.inputs[0].constant.array.astype(np.int64)
    index = np.zeros(array.shape, np.int64)
    if found.axis is not None:
        index += np.arange(array.shape[found.axis]).reshape([-1 if a == found.axis else 1 for a in range(array.ndim)])
    pairs = zip(array.reshape(-1).tolist(), index.reshape(-1).tolist(), strict=True)
    return array.shape, [(number - found.zeros[at]) * found.scales[at] for number, at in pairs]


@dataclass(frozen=True)
class Bounds:
    """What an activation before the quantization leaves: results in this range, relative to the zero point."""

    low: int | None
    high: int | None

    def operands(self, make: Maker, target: Scheme) -> list[Value | None]:
        """As constants; None where the type of the result has the same bound."""
        found: list[Value | None] = []
        for value, kept, what in ((self.low, target.low, "low"), (self.high, target.high, "high")):
            name = f"{make.match.root.output.name}/{what}"
            bound = kept if value is None else min(max(value + target.zero, target.low), target.high)
            same = f"{name} is that of the type"
            if value is None or (bound == kept and make.whole.may_use(same)):
                found.append(None)
                if value is not None:
                    make.used(same)
            else:
                found.append(make.constant(np.array(bound, target.dtype.numpy), name))
        return found


def rescaled(
    make: Maker,
    terms: Sequence[Value],
    factors: Sequence[Sequence[Fraction]],
    constants: Sequence[Fraction],
    ranges: Sequence[Sequence[tuple[int, int]]],
    shape: tuple[int, ...],
    target: Scheme,
    bounds: Bounds,
    unit: int = 1,
    shifts: Sequence[int] = (),
    proven: bool = True,
) -> Value | None:
    """round(sum of terms times factors + constant), quantized; None where no fixed-point numbers are exact. Factors,
    constants and ranges (of each term) are given per channel; `shape` is that of all numbers of one kind. Terms are
    multiples of `unit`. `shifts`: of 32-bit numbers, which are tried first. That they
    are exact with a certain shift, which the code contains, is a fact about values. `proven`: as of `fixed_point`."""
    name, last = make.match.root.output.name, bounds.operands(make, target)
    few = [bits for bits in shifts if make.whole.may_use(_in_two_numbers(name, bits))] if make.whole.few_numbers else []
    is_short = bool(shifts) and target.is_bytes
    shifts = [bits for bits in shifts if make.whole.may_use(_in_32_bits(name, bits))]

    def constant(values: Sequence[int], kind: type[np.generic], what: str) -> Value:
        return make.constant(np.array(values, kind).reshape(shape), f"{name}/{what}")

    low, high = target.low - target.zero, target.high - target.zero
    channels = zip(factors, constants, ranges, strict=True)
    wanted = [Rescaling(factor, addend, reach, low, high) for (factor, *_), addend, (reach, *_) in channels]
    if few and target.is_bytes:
        bits, short = _of_two_numbers(wanted, few)
        if short:
            make.used(_in_two_numbers(name, bits))
            bias = constant([number.bias for number in short], np.int32, "bias")
            multiplier = constant([number.multiplier for number in short], np.int32, "multiplier")
            addend = make.constant(np.array(short[0].addend + (target.zero << bits), np.int32), f"{name}/addend")
            rescale = ShortRescale(bits, target.dtype.onnx, int(bits in RAISED_SHIFTS))
            return make.node(rescale, *terms, bias, multiplier, addend, *last)
    if shifts and target.is_bytes:
        spare = 1 if make.whole.updatable and make.whole.facts_known is None else 0
        bits, short = _short(wanted, shifts, spare)
        if short:
            make.used(_in_32_bits(name, bits))
            numbers = [
                constant([number.bias for number in short], np.int32, "bias"),
                constant([number.multiplier for number in short], np.int32, "multiplier"),
                constant([number.addend + (target.zero << bits) for number in short], np.int32, "addend"),
            ]
            raises = [number.raised for number in short]
            raised = constant(raises, np.int32, "raise") if bits in RAISED_SHIFTS else None
            return make.node(ShortRescale(bits, target.dtype.onnx), *terms, *numbers, *last, raised)
    if is_short and not shape and not make.whole.updatable:
        tried = _few_rescaled(make, terms, factors[0], constants[0], ranges[0], target, bounds)
        if tried is not None:
            return tried
    found = [
        fixed_point(factor, constant, reach, low, high, unit, proven)
        for factor, constant, reach in zip(factors, constants, ranges, strict=True)
    ]
    wide = [number for number in found if number is not None]
    if len(wide) != len(found):
        return None
    multipliers = [
        constant([number.multipliers[term] for number in wide], np.int64, "multiplier") for term in range(len(terms))
    ]
    addend = constant([number.addend for number in wide], np.int64, "addend")
    wide_shifts = constant([number.shift for number in wide], np.uint8, "shift")
    zero = make.constant(np.array(target.zero, target.dtype.numpy), f"{name}/zero")
    return make.node(Rescale(terms=len(terms)), *terms, *multipliers, addend, wide_shifts, zero, *last)


def bytes_rescaled(
    make: Maker,
    terms: Sequence[Value],
    sources: Sequence[Scheme],
    factors: Sequence[Fraction],
    constant: Fraction,
    target: Scheme,
    bounds: Bounds,
) -> Value | None:
    """The same for terms that are bytes themselves, with shorter numbers, where these are exact."""
    return _few_rescaled(make, terms, factors, constant, [(found.low, found.high) for found in sources], target, bounds)


def _few_rescaled(
    make: Maker,
    terms: Sequence[Value],
    factors: Sequence[Fraction],
    constant: Fraction,
    ranges: Sequence[tuple[int, int]],
    target: Scheme,
    bounds: Bounds,
) -> Value | None:
    """The same for terms of so few values that all their sums are tried."""
    name = make.match.root.output.name
    usual = (SHIFT_OF_ALL,) if make.whole.updatable else SHIFTS

    def made(rescale: Operator, numbers: Sequence[int], *behind: Value) -> Value:
        operands = [make.constant(np.array(number, np.int32), f"{name}/number") for number in numbers]
        return make.node(rescale, *terms, *operands, *behind, *bounds.operands(make, target))

    def in_upper_halves() -> Value | None:
        shifts = [bits for bits in usual if make.whole.may_use(_in_32_bits(name, bits))]
        found = byte_rounding(factors, constant, ranges, target.low, target.high, target.zero, shifts)
        if found is None:
            return None
        make.used(_in_32_bits(name, found.shift))
        rescale = ByteRescale(len(terms), found.left, found.shift, target.dtype.onnx)
        return made(rescale, [*found.multipliers, found.addend])

    def in_parts(halves: bool) -> Value | None:
        shifts = [bits for bits in usual if make.whole.may_use(_in_parts(name, bits, halves))]
        found = two_part_rounding(factors, constant, ranges, target.low, target.high, target.zero, shifts, halves)
        if found is None:
            return None
        make.used(_in_parts(name, found.shift, halves))
        rescale = PartRescale(len(terms), found.low_bits, found.shift, target.dtype.onnx, int(halves))
        zero = make.constant(np.array(target.zero, target.dtype.numpy), f"{name}/zero")
        return made(rescale, [*found.multipliers, found.addend, *found.low], *[zero] * halves)

    forms: list[Callable[[], Value | None]] = [in_upper_halves]
    if not make.whole.updatable:
        forms += [partial(in_parts, False), partial(in_parts, True)]
    if make.whole.in_vectors:
        forms.append(forms.pop(0))
    return next((value for form in forms if (value := form()) is not None), None)


def _in_32_bits(name: str, shift: int) -> str:
    return f"{name} is rescaled in 32 bits with a shift of {shift}"


def _in_parts(name: str, shift: int, halves: bool) -> str:
    return f"{name} is rescaled by parts with a shift of {shift}{', halves to even' if halves else ''}"


def _in_two_numbers(name: str, shift: int) -> str:
    return f"{name} is rescaled by two numbers of each channel with a shift of {shift}"


def _of_two_numbers(wanted: Sequence[Rescaling], shifts: Sequence[int]) -> tuple[int, tuple[ShortRounding, ...]]:
    """The first shift with which all channels have one addend, and their numbers, or none. Each shift has functions of
    its own, so the one behind the usual one is that of sums that are raised, which suits most."""
    raised = [bits for bits in shifts if bits in RAISED_SHIFTS[:1]]
    plain = [bits for bits in shifts if bits not in RAISED_SHIFTS]
    return _first(short_numbers, wanted, (*plain[:1], *raised, *plain[1:]))


def _short(wanted: Sequence[Rescaling], shifts: Sequence[int], spare: int) -> tuple[int, tuple[ShortRounding, ...]]:
    """The first shift with numbers for all channels, and these, or none. `spare`: by how many bits factors may grow."""
    largest = max(each.factor for each in wanted)
    room = [bits for bits in shifts if bits in RAISED_SHIFTS or largest < Fraction(1, 2 << bits + spare)]
    return _first(short_roundings, wanted, room)


def _first(
    rounding: Callable[[tuple[Rescaling, ...], int, bool], tuple[ShortRounding, ...]],
    wanted: Sequence[Rescaling],
    shifts: Sequence[int],
) -> tuple[int, tuple[ShortRounding, ...]]:
    """The first shift with numbers for all channels, and these, or none."""
    for bits in shifts:
        if found := rounding(tuple(wanted), bits, bits in RAISED_SHIFTS):
            return bits, found
    return 0, ()
