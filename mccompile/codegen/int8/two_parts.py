"""Requantization in 32 bits for cores whose products have no upper half (mcc_scalar_round.h):

    (sum * m + (sum * low >> LOW_BITS) + addend) >> shift

in place of bias, multiplier and addend of a channel. `m` and `low` are the parts of one multiplier. What a sum can be
follows from the channel's weights, so it is known that nothing overflows.

Invariant: what is found gives the same 8 bits as the numbers it stands for, for every sum that the weights permit. Both
sides grow with the sum, so it is enough that they take each step at the same sum.
"""

from __future__ import annotations

import numpy as np

from ...base.dtypes import DType, u8
from ...targets.api import Prefer, Target
from .dot import Rescaling

LOW_BITS = 12  # as many as mcc_scalar_round.h shifts by
MOST = 1 << 31  # of all numbers
STEEPEST = 1 << 15  # of the upper part: its sign says that there are two
SHIFTS = 3  # that are tried, beginning with the highest
PARTS = 32  # of what a sum of 1 makes, in which the addend moves
MOVES = sorted(range(-PARTS // 2, PARTS // 2 + 1), key=abs)
READ_UNSIGNED = (0, 255)  # elements of patches
READ_FLIPPED = (-127, 128)  # of those that mcc_scalar_wide.h reads, less the constants in biases
SLOW_PRODUCT = 1.2  # of 8-bit integers: what multiplies and adds at once takes less
SLOW_RESULT = 40.0  # what a sum takes besides its products, in plain C, where there are no upper halves


def saves(target: Target) -> bool:
    """Is it worth the code?"""
    return target.machine.result >= SLOW_RESULT and target.prefer != Prefer.FLASH


def are_apart(target: Target) -> bool:
    """Does it take an instruction to multiply and one to add, though products have upper halves?"""
    return target.machine.result < SLOW_RESULT and target.machine.short_mac >= SLOW_PRODUCT


def less_zero(dtype: DType) -> tuple[int, int]:
    """Elements less some zero point of their type."""
    reach = int(dtype.high - dtype.low)
    return -reach, reach


def in_two_parts(
    values: np.ndarray, rows: np.ndarray, elements: tuple[int, int], found: Rescaling, lanes: int
) -> np.ndarray:
    """Bias, multiplier and addend [3, channels] of a rescaling, for weights [channels, sum] and elements between
    these bounds: each group of so many channels that can have two parts has them. A group that is not full has not."""
    channels = rows.shape[0] - rows.shape[0] % lanes
    products = np.stack([rows.astype(np.int64) * bound for bound in elements])
    first, last = np.minimum(products.min(0), 0).sum(1), np.maximum(products.max(0), 0).sum(1)
    table, shift, dtype = values.copy(), found.shift, found.dtype
    for begin in range(0, channels, lanes):
        parts = []
        for at in range(begin, begin + lanes):
            bias, multiplier, addend = values[:, at].tolist()
            parts.append(_parts(bias, multiplier, addend, int(first[at]), int(last[at]), shift, dtype))
        if all(part is not None for part in parts):
            table[:, begin : begin + lanes] = np.array(parts, np.int64).T
    return table


def _parts(
    bias: int, multiplier: int, addend: int, first: int, last: int, shift: int, dtype: DType
) -> tuple[int, int, int] | None:
    """The numbers of a channel whose sums lie between `first` and `last`."""
    reach = max(-first, last) + 1
    if reach << LOW_BITS - 1 >= MOST or multiplier <= 0:
        return None
    low = 0 if dtype is u8 else -128
    steps = np.arange(low + 1, low + 256, dtype=np.int64)
    places = -((addend - (steps << shift) << 32) // multiplier) - bias  # the smallest sum that gives so much
    ends = [(addend * 2.0**32 + (end + bias) * multiplier) / 2.0 ** (32 + shift) for end in (first, last)]
    highest = 30 - int(max(map(abs, ends)) + 2).bit_length()
    for finer in range(min(highest, 30), max(highest - SHIFTS, 0), -1):
        unit = multiplier * 2.0 ** (finer - 32 - shift)  # what a sum of 1 makes
        if not 1.5 <= unit < STEEPEST - 1:
            continue
        middle = (addend + bias * multiplier / 2.0**32) * 2.0 ** (finer - shift)
        for move in MOVES:
            added = round(middle + move * unit / PARTS)
            factor = _factor(steps, places, (first, last), added, finer, round(unit * (1 << LOW_BITS)))
            if factor is not None and _fits(factor, added, (first, last)):
                lower = (factor + (1 << LOW_BITS - 1) & (1 << LOW_BITS) - 1) - (1 << LOW_BITS - 1)
                upper = factor - lower >> LOW_BITS
                if 0 < upper <= STEEPEST:
                    return added, (-upper << 16) + (lower & 65535), finer
    return None


def _factor(
    steps: np.ndarray, places: np.ndarray, reach: tuple[int, int], addend: int, shift: int, wanted: int
) -> int | None:
    """The multiplier nearest to the wanted one that takes every step at its place: `sum * factor >= needed` there, but
    not for the sum before it."""
    first, last = reach
    needed = (steps << shift) - addend << LOW_BITS
    at = places <= last
    before = places > first
    sums = np.concatenate([np.maximum(places, first)[at], -np.minimum(places - 1, last)[before]])
    least = np.concatenate([needed[at], 1 - needed[before]])
    if np.any(least[sums == 0] > 0):
        return None
    up, down = sums > 0, sums < 0
    lowest = int(np.max(-(-least[up] // sums[up]), initial=1))
    highest = int(np.min(-least[down] // -sums[down], initial=MOST - 1))
    return min(max(wanted, lowest), highest) if lowest <= highest else None


def _fits(factor: int, addend: int, reach: tuple[int, int]) -> bool:
    """Do the addend and the sums before they are shifted fit 32 bits?"""
    return abs(addend) < MOST and all(abs((end * factor >> LOW_BITS) + addend) < MOST for end in reach)
