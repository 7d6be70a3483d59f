"""Intervals of integers: the smallest and the largest value that an operation of expr/functions.py may give.

Invariant: sound for every element of the intervals. `exact` says that no element leaves the type and no operand has to
be guarded (a divisor of 0, a shift beyond the width); None, that nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.dtypes import DType

Range = tuple[int, int] | None  # None: no integer
Pair = tuple[int, int]


def of_type(dtype: DType) -> Range:
    if dtype.kind == "bool":
        return 0, 1
    if not dtype.is_integer:
        return None
    return (0, (1 << dtype.bits) - 1) if dtype.kind == "uint" else (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1)


def sum_range(products: int, a: Pair, b: Pair, a_zero: Pair, b_zero: Pair) -> tuple[int, int, int]:
    """Of products of a less its zero point and b less its one, any number of which may be missing (padding); and the
    largest size of any partial sum of any way to compute it: in any order, zero points subtracted before or after."""
    terms = _product(_minus(a, a_zero), _minus(b, b_zero))
    sizes = [max(map(abs, pair)) for pair in (a, b, a_zero, b_zero)]
    most = products * (sizes[0] + sizes[2]) * (sizes[1] + sizes[3])
    return min(0, products * terms[0]), max(0, products * terms[1]), most


def converted(source: Range, dtype: DType) -> tuple[Range, bool | None]:
    whole = of_type(dtype)
    if whole is None or source is None:
        return whole, None
    if dtype.kind == "bool":
        return whole, True
    return _held(source, whole)


def applied(function: str, given: Sequence[Range], dtype: DType) -> tuple[Range, bool | None]:
    whole, ranges = of_type(dtype), [pair for pair in given if pair is not None]
    if whole is None or dtype.kind == "bool" or len(ranges) < len(given):
        return whole, None
    if function in _SHIFTS:
        a, by = ranges
        if not 0 <= by[0] <= by[1] < dtype.bits:
            return whole, False
        return _held(_SHIFTS[function](a, by), whole)
    if function == "shift_even":
        return _shift_even(ranges[0], ranges[1], whole)
    if function == "fixed_round":
        return _fixed_round(ranges[0], ranges[1], whole)
    if function not in _EXACTLY:
        return whole, None
    return _held(_EXACTLY[function](*ranges), whole)


def _held(found: Pair, whole: Pair) -> tuple[Range, bool]:
    is_exact = whole[0] <= found[0] and found[1] <= whole[1]
    return (found if is_exact else whole), is_exact


def _corners(a: Pair, b: Pair, of: Callable[[int, int], int]) -> Pair:
    found = [of(x, y) for x in a for y in b]
    return min(found), max(found)


def _minus(a: Pair, b: Pair) -> Pair:
    return a[0] - b[1], a[1] - b[0]


def _product(a: Pair, b: Pair) -> Pair:
    return _corners(a, b, lambda x, y: x * y)


def _absolute(a: Pair) -> Pair:
    return (0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def _shift_even(total: Pair, by: Pair, whole: Pair) -> tuple[Range, bool]:
    """What is added in front of the shift is 4 at most."""
    if by[0] < 2 or by[1] > 30 or total[1] + 4 > whole[1]:
        return whole, False
    return _held(_corners((total[0], total[1] + 4), by, lambda x, n: x >> n), whole)


def _fixed_round(total: Pair, shift: Pair, whole: Pair) -> tuple[Range, bool]:
    """A shift of 64 and more rounds halves to even, which takes 1 at most."""
    if not 0 <= shift[0] <= shift[1] < 128:
        return whole, False
    bits = {each & 63 for each in range(shift[0], shift[1] + 1)}
    low = min(total[0] >> each for each in bits) - (shift[1] >= 64)
    return _held((low, max(total[1] >> each for each in bits)), whole)


_SHIFTS: dict[str, Callable[[Pair, Pair], Pair]] = {
    "shift_left": lambda a, by: _corners(a, by, lambda x, n: x << n),
    "shift_right": lambda a, by: _corners(a, by, lambda x, n: x >> n),
}
_EXACTLY: dict[str, Callable[..., Pair]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": _minus,
    "mul": _product,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "select": lambda condition, a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "saturate_i8": lambda a: (max(-128, min(127, a[0])), max(-128, min(127, a[1]))),
    "saturate_u8": lambda a: (max(0, min(255, a[0])), max(0, min(255, a[1]))),
    "high_sum": lambda total, a, b: (
        total[0] + (_product(a, b)[0] >> 32),
        total[1] + (_product(a, b)[1] >> 32),
    ),
    "fixed_product": lambda a, b: (_product(a, b)[0] >> 32, _product(a, b)[1] >> 32),
}
