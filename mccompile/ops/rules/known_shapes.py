"""Shapes and known elements: how type rules read shapes from operands, and move elements that are known.

Invariant: a known value has the shape of its tensor, its elements are ints (bools for bool tensors) or dimensions, and
there are few of them (`may_be_known`). Those of a float tensor are whole numbers that its type holds exactly, and no
negative zeros: sizes on their way through floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...base.dims import Dim, bounds, product, static, upper
from ...base.tensor import Shape, TensorType, may_be_equal
from ...graph.ir import Fact
from ...graph.known import may_be_known
from ..api import Invalid, Site, Unsupported

FIX_DIMENSIONS = "fix the free dimensions with --dim or --shape"


def objects(items: Sequence[object]) -> np.ndarray:
    """A vector of ints or dimensions (numpy must not look inside them)."""
    array = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):
        array[position] = item
    return array


def fits(type: TensorType) -> bool:
    """May the elements be known? Only those of small static tensors are."""
    return type.is_static and may_be_known(type.dtype, static(type.count))


def fact(type: TensorType, value: np.ndarray | None = None) -> Fact:
    """A fact that keeps the value only where it may be known."""
    return Fact(type, value if fits(type) else None)


def moved(site: Site, type: TensorType, move: Callable[[np.ndarray], np.ndarray]) -> Fact:
    """The fact for a result whose elements are those of operand 0, moved by a numpy function."""
    value = site.value(0)
    if value is None or not fits(type):
        return Fact(type)
    result = np.empty(type.static_shape, dtype=object)
    result[...] = move(value)
    return Fact(type, result)


def sizes(site: Site, index: int, what: str) -> Shape:
    """An operand that holds dimensions (none negative)."""
    found = tuple(site.known(index, what))
    for dim in found:
        if bounds(dim)[1] < 0:
            raise Invalid(f"{what} {show(found)} has a negative size")
    return found


def scalar(site: Site, index: int, what: str) -> Dim:
    """The one element of an operand that must be known."""
    found = site.known(index, what)
    if len(found) != 1:
        raise Invalid(f"{what} (operand {index}) has {len(found)} elements instead of one")
    return found[0]


def single(value: np.ndarray | None) -> Dim | None:
    """The one element of a known value, where it has one."""
    return value.item() if value is not None and value.size == 1 else None


def same_count(a: Shape, b: Shape) -> None:
    """Raises unless both shapes have as many elements, or may have at run time; then b does not have more, and whoever
    goes by that checks it."""
    left, right = product(a), product(b)
    if left == right:
        return
    text = f"{show(a)} has {left} elements, {show(b)} has {right}"
    if not may_be_equal(left, right):
        raise Invalid(text)
    if isinstance(left, int) or isinstance(right, int):
        raise Unsupported(f"{text}: equal only for some sizes", FIX_DIMENSIONS)
    if upper(right) > upper(left):
        fix = "bound all sizes that follow from data with --bound, those that are equal by the same number"
        raise Unsupported(f"{text}: at most {upper(left)} and {upper(right)}", fix)


def show(shape: Shape) -> str:
    return f"[{','.join(str(dim) for dim in shape)}]"
