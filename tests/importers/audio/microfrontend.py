"""audio_microfrontend's definition written down once more: one frame after the other, one number after the other."""

from __future__ import annotations

import cmath
from math import floor, isqrt, pi

import numpy as np

RATE, FFT, MELS = 16000, 512, 40


def rounded(product: int) -> int:
    return (product + (1 << 14)) >> 15


def turned(x: tuple[int, int], angle: float) -> tuple[int, int]:
    turn = cmath.exp(1j * angle)
    c, s = floor(0.5 + 32767 * turn.real), floor(0.5 + 32767 * turn.imag)
    return rounded(x[0] * c - x[1] * s), rounded(x[0] * s + x[1] * c)


def divided(x: tuple[int, int], by: int) -> tuple[int, int]:
    return rounded(x[0] * (32767 // by)), rounded(x[1] * (32767 // by))


def transform(x: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Every fourth (or second) number apart, then together: in 16 bits."""
    if len(x) == 1:
        return x
    radix = 4 if len(x) % 4 == 0 else 2
    size = len(x) // radix
    parts = [transform(x[n::radix]) for n in range(radix)]
    made = [(0, 0)] * len(x)
    for k in range(size):
        here = [turned(divided(part[k], radix), -2 * pi * n * k / len(x)) for n, part in enumerate(parts)]
        for q in range(radix):
            total = sum((complex(*value) * 1j ** (-n * q) for n, value in enumerate(here)), 0j)
            wrapped = np.array([round(total.real), round(total.imag)]).astype(np.int16)
            made[q * size + k] = (int(wrapped[0]), int(wrapped[1]))
    return made


def powers(x: np.ndarray) -> list[int]:
    """Of all frequencies but the first and the last."""
    points = len(x) // 2
    z = transform([(int(x[2 * n]), int(x[2 * n + 1])) for n in range(points)])
    made = [0] * (points + 1)
    for k in range(1, points // 2 + 1):
        one, other = divided(z[k], 2), divided((z[points - k][0], -z[points - k][1]), 2)
        even, less = (one[0] + other[0], one[1] + other[1]), (one[0] - other[0], one[1] - other[1])
        odd = turned(less, -pi * (k / points + 0.5))
        made[k] = ((even[0] + odd[0]) >> 1) ** 2 + ((even[1] + odd[1]) >> 1) ** 2
        made[points - k] = ((even[0] - odd[0]) >> 1) ** 2 + ((odd[1] - even[1]) >> 1) ** 2
    return made


def filtered(power: list[int], low: float, high: float) -> list[int]:
    def mel(hertz: float) -> np.float32:
        return np.float32(1127) * np.float32(np.log1p(np.float64(np.float32(hertz) / np.float32(700))))

    def fixed(weight: np.float32) -> int:
        return floor(weight * np.float32(4096) + np.float32(0.5))

    first, step = mel(low), RATE / FFT
    spacing = np.float32((mel(high) - first) / np.float32(MELS + 1))
    centres = [first + spacing * np.float32(n + 1) for n in range(MELS + 1)]
    sums, bin = [0] * (MELS + 2), int(1.5 + low / step)
    for channel, centre in enumerate(centres):
        before = centres[channel - 1] if channel else first
        while mel(bin * step) <= centre:
            weight = (centre - mel(bin * step)) / (centre - before)
            sums[channel] += fixed(weight) * power[bin]
            sums[channel + 1] += fixed(np.float32(1) - weight) * power[bin]
            bin += 1
    return sums[1:-1]


def gain(noise: int) -> int:
    def at(x: int) -> int:
        base = np.float32(x) / np.float32(128) + np.float32(80)
        return int(min(np.float32(1 << 21) * np.float32(base ** np.float32(-0.95)) + np.float32(0.5), 32767))

    if noise < 2:
        return at(noise)
    low = 1 << (noise.bit_length() - 1)
    one, two, three = at(low), at(low + low // 2), at(2 * low)
    slope = 4 * (two - one) - (three - one)
    bend = three - one - slope
    part = (noise << 10) // low - 1024
    return one + (((((bend * part) >> 5) + (slope << 5)) * part + (1 << 14)) >> 15)


def logarithm(x: int) -> int:
    if x < 2:
        return 0
    whole = x.bit_length() - 1
    part = ((x << 16) >> whole) - 65536
    segment = part >> 9
    table = [round(65536 * (np.log2(1 + n / 128) - n / 128)) for n in (segment, segment + 1)]
    binary = (whole << 16) + part + table[0] + (((table[1] - table[0]) * (part - 512 * segment)) >> 16)
    natural = (45426 * binary + 32768) >> 16
    return min(((natural << 6) + 32768) >> 16, 65535)


def features(samples: np.ndarray, window: int, hop: int, low: float = 125, high: float = 7500) -> np.ndarray:
    """[frames, filters]."""
    turns = np.float32(2 * np.pi / window) * (np.arange(window, dtype=np.float32) + np.float32(0.5))
    waves = np.float32(0.5) * np.cos(turns.astype(np.float64)).astype(np.float32)
    weights = np.floor((np.float32(0.5) - waves) * np.float32(4096) + np.float32(0.5)).astype(np.int64)
    noise, found = [0] * MELS, []
    for start in range(0, len(samples) - window + 1, hop):
        x = (samples[start : start + window].astype(np.int64) * weights) >> 12
        shift = 15 - int(np.abs(x[x > -32768]).max(initial=0)).bit_length()
        raised = np.zeros(FFT, np.int16)
        raised[:window] = (x << shift).astype(np.int16)
        row = []
        for channel, total in enumerate(filtered(powers(raised), low, high)):
            root = isqrt(total)
            value = (root + (total - root * root > root and root != 65535)) >> shift
            part = 983 if channel % 2 else 409
            noise[channel] = ((value << 10) * part + noise[channel] * (16384 - part)) >> 14
            less = ((value << 10) - min(noise[channel], value << 10)) >> 10
            ratio = (max(less, (value * 819) >> 14) * gain(noise[channel])) >> 6
            shrunk = (ratio * ratio) >> 20 if ratio < 8192 else (ratio >> 6) - 64
            row.append(logarithm(shrunk << 3))
        found.append(row)
    return np.array(found)
