"""A Fourier transform in integers of 16 bits, for cores without floats: numbers are divided by the radix before every
stage, so nothing overflows, and products are rounded to 16 bits.

Pairs of real samples are transformed as one complex number, and then taken apart: half the work.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .graph_writer import I16, I32, U32, Writer

_ONE, _BITS = 32767, 15  # what stands for 1, and its bits


def powers(to: Writer, x: str, frames: int, length: int) -> str:
    """Of the frequencies between 0 and the half, as [frames, length / 2 - 1]: x is [frames, length] of int16."""
    points = length // 2
    pairs = to.shaped(x, frames, points, 2)
    parts = [to.shaped(to.cut(pairs, part, part + 1, 2), frames, points) for part in (0, 1)]
    real, imaginary = _transform(to, parts, frames, points)
    half = points // 2
    here = [_divided(to, to.cut(each, 1, half + 1, 1), 2) for each in (real, imaginary)]
    back = [to.cut(each, points - 1, half - 1, 1, -1) for each in (real, imaginary)]
    negative = to.cast(to.cast(to.node("Neg", to.cast(back[1], I32)), I16), I32)
    there = [_divided(to, back[0], 2), _rounded(to, to.node("Mul", negative, to.of(I32, _ONE // 2)))]
    even = [to.node("Add", one, other) for one, other in zip(here, there, strict=True)]
    less = [to.node("Sub", one, other) for one, other in zip(here, there, strict=True)]
    odd = _turned(to, less, -np.pi * (np.arange(1, half + 1) / points + 0.5))
    first = [_half(to, to.node("Add", one, other)) for one, other in zip(even, odd, strict=True)]
    second = [_half(to, to.node("Sub", even[0], odd[0])), _half(to, to.node("Sub", odd[1], even[1]))]
    near, far = (to.node("Add", *(to.node("Mul", each, each) for each in both)) for both in (first, second))
    return to.node("Concat", to.cut(near, 0, half - 1, 1), to.cut(far, half - 1, -half - 1, 1, -1), axis=1)


def _transform(to: Writer, parts: list[str], frames: int, points: int) -> list[str]:
    radices = _radices(points)
    count = len(radices)
    turned = (0, *range(count, 0, -1))  # the order in which the first stage reads them
    parts = [to.node("Transpose", to.shaped(each, frames, *reversed(radices)), perm=turned) for each in parts]
    for stage in reversed(range(count)):
        radix, blocks = radices[stage], prod(radices[:stage])
        groups = points // (blocks * radix)
        parts = [_divided(to, to.shaped(each, frames, blocks, radix, groups), radix) for each in parts]
        if groups > 1:
            turns = np.outer(np.arange(radix), np.arange(groups)) * blocks / points
            parts = _turned(to, parts, -2 * np.pi * turns)
        parts = [to.shaped(each, frames, points) for each in _met(to, parts, radix)]
    return parts


def _radices(points: int) -> list[int]:
    fours, twos = divmod(points.bit_length() - 1, 2)
    return [4] * fours + [2] * twos


def _met(to: Writer, parts: list[str], radix: int) -> list[str]:
    """Sums of `radix` numbers that lie beside each other along axis 2."""
    r, i = ([to.cut(each, n, n + 1, 2) for n in range(radix)] for each in parts)

    def both(op: str, one: int, other: int) -> tuple[str, str]:
        return to.node(op, r[one], r[other]), to.node(op, i[one], i[other])

    if radix == 2:
        made = [both("Add", 0, 1), both("Sub", 0, 1)]
    else:
        (er, ei), (lr, li) = both("Add", 0, 2), both("Sub", 0, 2)
        (sr, si), (dr, di) = both("Add", 1, 3), both("Sub", 1, 3)
        made = [
            (to.node("Add", er, sr), to.node("Add", ei, si)),
            (to.node("Add", lr, di), to.node("Sub", li, dr)),
            (to.node("Sub", er, sr), to.node("Sub", ei, si)),
            (to.node("Sub", lr, di), to.node("Add", li, dr)),
        ]
    return [to.cast(to.node("Concat", *side, axis=2), I16) for side in zip(*made, strict=True)]


def _turned(to: Writer, parts: list[str], angles: np.ndarray) -> list[str]:
    """Times numbers of length 1."""
    c, s = (to.of(I32, np.floor(0.5 + _ONE * each(angles))) for each in (np.cos, np.sin))
    real, imaginary = parts
    made = to.node("Sub", to.node("Mul", real, c), to.node("Mul", imaginary, s))
    other = to.node("Add", to.node("Mul", real, s), to.node("Mul", imaginary, c))
    return [_rounded(to, made), _rounded(to, other)]


def _divided(to: Writer, x: str, by: int) -> str:
    return _rounded(to, to.node("Mul", to.cast(x, I32), to.of(I32, _ONE // by)))


def _rounded(to: Writer, x: str) -> str:
    return to.cast(low_bits(to, to.node("Add", x, to.of(I32, 1 << (_BITS - 1))), _BITS), I32)


def _half(to: Writer, x: str) -> str:
    return to.cast(low_bits(to, x, 1), I32)


def low_bits(to: Writer, x: str, shift: int) -> str:
    """16 bits of int32 from bit `shift` on, which for 16 bits is the same with and without a sign."""
    return to.cast(to.node("BitShift", to.cast(x, U32), to.of(U32, shift), direction="RIGHT"), I16)
