"""Weights that learn in the integers of their file: no floats are kept of them.

A step makes floats of the integers, moves these as the optimizer says, and adds to each integer by how many of its
scale that was, rounded up or down at random, so that steps much smaller than a scale still move weights as far on
average. As integers move by the gradient of the float over the scale, this is Quantization-Aware Scaling (Lin et al.
2022) for whatever optimizer. Invariant: the chance follows from the position and from how many steps there were, and a
gradient of zero moves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import prod

from ...base.dtypes import DType, f32, i8, i32, i64, u8, u32
from ...expr.ir import Expr, apply, cast, index, literal
from ...graph.ir import Graph, Value
from ...ops.quantize import DequantizeLinear, dequantized
from ...ops.rules.backward import Writer
from .optimizers import add, div, mul, sub

STEPS = "steps"  # how many there were, modulo 2^32
FARTHEST = 2.0**24  # that a step moves an integer: as far as f32 counts


class LearnDtype(StrEnum):
    """What integers of a file learn as."""

    F32 = "f32"
    INT8 = "int8"  # as they are: weights of 8 bits, biases of 32


def learns_in_integers(graph: Graph, value: Value) -> bool:
    """Is it made of integers of its own, with a scale for all or one for each position of an axis?"""
    node = value.producer
    if node is None or not isinstance(node.op, DequantizeLinear) or node.op.block_size:
        return False
    integers, scale, *_ = operands = [*node.present_inputs]
    alone = len(list(integers.uses)) == 1 and not graph.is_output(integers)
    known = all(operand.constant is not None for operand in operands)
    return known and alone and integers.type.dtype in (i8, u8, i32) and scale.type.dtype is f32


def stored(weight: Value) -> Value:
    """What is kept of a weight: the integers that it is made of, or itself."""
    if weight.producer is None:
        return weight
    assert weight.producer.inputs[0] is not None
    return weight.producer.inputs[0]


def scheme(writer: Writer, weight: Value) -> dict[str, Value]:
    """Scale and zero point by name, as they broadcast to the weight; none of floats."""
    node = weight.producer
    if node is None:
        return {}
    assert isinstance(node.op, DequantizeLinear)
    rank, found = weight.type.rank, dict[str, Value]()
    for name, value in zip(("scale of integers", "zero"), node.inputs[1:], strict=False):
        if value is not None:
            count = prod(value.type.static_shape)
            axis = node.op.along(value.type.shape, weight.type.shape) if count > 1 else 0
            found[name] = writer.reshape(value, (count, *[1] * (rank - 1 - axis)) if count > 1 else ())
    return found


def as_float(places: Mapping[str, Expr]) -> Expr:
    """Of a weight as it is kept, with its scheme."""
    if "scale of integers" not in places:
        return places["weight"]
    return dequantized(places["weight"], places["scale of integers"], places.get("zero"), f32)


def as_kept(moved: Expr, places: Mapping[str, Expr], shape: Sequence[int]) -> Expr:
    """What is kept of a weight that has moved."""
    if "scale of integers" not in places:
        return moved
    before = places["weight"]
    far = div(sub(moved, as_float(places)), places["scale of integers"])
    far = apply("max", apply("min", far, literal(FARTHEST, f32)), literal(-FARTHEST, f32))
    work = i64 if before.dtype is i32 else i32
    whole = cast(apply("floor", add(far, _chance(shape, places[STEPS]))), work)
    return cast(_bounded(apply("add", cast(before, work), whole), before.dtype, work), before.dtype)


def _bounded(value: Expr, dtype: DType, work: DType) -> Expr:
    return apply("max", apply("min", value, literal(dtype.high, work)), literal(dtype.low, work))


def _chance(shape: Sequence[int], steps: Expr) -> Expr:
    """From 0 to below 1, as a hash of position and step has it."""
    position = literal(0, u32)
    for axis, size in enumerate(shape):
        position = apply("add", apply("mul", position, literal(size, u32)), cast(index(axis), u32))
    mixed = apply("add", _times(position, 0x9E3779B1), _times(steps, 0x85EBCA77))
    mixed = _times(apply("bit_xor", mixed, apply("shift_right", mixed, literal(15, u32))), 0x2C1B3C6D)
    return mul(2.0**-24, cast(apply("shift_right", mixed, literal(8, u32)), f32))


def _times(value: Expr, factor: int) -> Expr:
    return apply("mul", value, literal(factor, u32))
