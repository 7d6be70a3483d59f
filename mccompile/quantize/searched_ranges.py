"""Ranges of activations that bring the outputs closest to those of floats, found by trying.

The range over all samples contains each of them; later samples may exceed it. So each sample is judged twice: with the
range over all samples, and with the range over all others. First all ranges become narrower or wider together, then
each by itself, where the gain is more than chance (`agreement.py`). One session is fed other scales and zero points.
Invariant: a range holds 0, and stays what it was unless outputs come closer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from ..check.oracle import Oracle
from ..frontend.open_scales import scales_in, with_open_scales
from .agreement import Agreement, mean_decibels
from .samples import Feed

LEAST = 8  # samples, below which half of them say nothing
COMPARED = 32  # samples, by which choices are made that concern many layers
_RUNS = 4000  # of the network, about
_EACH = 4  # of them per tensor and sample
_FEW, _MOST = 16, 48  # samples
_STEPS = (0.9, 0.8, 0.7, 0.6), (1.1, 1.25, 1.5)
_WORTH = 0.05  # dB that another range has to bring
_ERRORS = 0.5  # of one step among many: it is small, and right on average
_LOW, _HIGH = -128, 127

Range = tuple[float, float]
Ranges = Mapping[str, Range]
Pair = tuple[np.ndarray, np.ndarray]


def ranges_in(file: Path) -> dict[str, Range]:
    """The ranges that scales of a quantized file stand for."""
    found = {name: (float(scale.value), float(zero.value)) for name, (scale, zero) in scales_in(file).items()}
    return {name: ((_LOW - zero) * scale, (_HIGH - zero) * scale) for name, (scale, zero) in found.items()}


def samples_for(file: Path) -> int:
    """How many samples the ranges of a quantized file are searched with, as that has to take each of them in turn."""
    return min(max(_RUNS // (_EACH * max(1, len(scales_in(file)))), _FEW), _MOST)


class Search:
    """Of the ranges of a quantized file, whose outputs are held against those of a float file."""

    def __init__(
        self, plain: Path, file: Path, feeds: Sequence[Feed], scratch: Path, symmetric: bool, compared: int
    ) -> None:
        found = scales_in(file)
        self._tensors = {name: (scale.name, zero.name) for name, (scale, zero) in found.items()}
        exact = Oracle(plain)
        inner = [name for name in self._tensors if name in exact.original.inner]
        watched = Oracle(plain, inner)
        runs = [{**feed, **watched.run(feed)} for feed in feeds]
        self._ranges = ranges_in(file)
        self._others = _without_each(self._ranges, runs)[:compared]
        self._feeds = feeds[:compared]
        self._wanted = [{name: run[name] for name in exact.original.outputs} for run in runs[:compared]]
        scratch.write_bytes(with_open_scales(file))
        self._oracle = Oracle(scratch)
        self._symmetric = symmetric

    def factors(self) -> dict[str, float]:
        """By what each range is multiplied, where that is not 1."""
        together, best = 1.0, self.quality({})
        together, best = self._best(together, best, lambda factor: dict.fromkeys(self._tensors, factor))
        found = dict.fromkeys(self._tensors, together)
        for name in self._tensors:
            rest = {other: factor for other, factor in found.items() if other != name}
            found[name], best = self._best(found[name], best, partial(_joined, rest, name))
        return {name: factor for name, factor in found.items() if factor != 1}

    def _best(self, now: float, best: Agreement, tried: Callable[[float], dict[str, float]]) -> tuple[float, Agreement]:
        """Goes on in a direction as long as that helps, the other way where its first step does not."""
        start = now
        for steps in _STEPS:
            for step in steps:
                quality = self.quality(tried(start * step))
                if quality.gain(best, _ERRORS) < _WORTH:
                    break
                now, best = start * step, quality
            if now != start:
                break
        return now, best

    def quality(self, factors: Mapping[str, float]) -> Agreement:
        """Of each sample without its own part in ranges; of all together so, where what lies outside counts as much as
        it costs, and within their ranges."""
        within, alone = [], []
        for feed, exact, ranges in zip(self._feeds, self._wanted, self._others, strict=True):
            within.append(self._pairs(feed, exact, self._ranges, factors))
            alone.append(within[-1] if ranges == self._ranges else self._pairs(feed, exact, ranges, factors))
        without = Agreement.of(list(zip(*alone, strict=True)))
        seen = mean_decibels(list(zip(*within, strict=True)))
        return Agreement((seen + without.together) / 2, without.each)

    def _pairs(self, feed: Feed, exact: Feed, ranges: Ranges, factors: Mapping[str, float]) -> list[Pair]:
        scales: Feed = {}
        for name, operands in self._tensors.items():
            (low, high), factor = ranges[name], factors.get(name, 1.0)
            scales |= zip(operands, _scale(low * factor, high * factor, self._symmetric), strict=True)
        return [(exact[name], array) for name, array in self._oracle.run({**feed, **scales}).items()]


def _without_each(ranges: Ranges, runs: Sequence[Feed]) -> list[dict[str, Range]]:
    """For each run the ranges that the other ones lead to."""
    found: list[dict[str, Range]] = [{} for _ in runs]
    for name, (low, high) in ranges.items():
        seen = [run[name] for run in runs if name in run]
        lows, highs = ([min(each.min(), 0.0) for each in seen], [max(each.max(), 0.0) for each in seen])
        for number, others in enumerate(found):
            others[name] = low * _share(lows, number), high * _share(highs, number)
    return found


def _share(limits: Sequence[float], number: int) -> float:
    """Of the largest limit, what is the largest of all but one; 1 where that is not known."""
    magnitudes = np.abs(limits)
    rest = np.delete(magnitudes, number).max(initial=0.0) if len(limits) else 0.0
    return float(rest / magnitudes.max()) if rest > 0 else 1.0


def _joined(rest: Mapping[str, float], name: str, factor: float) -> dict[str, float]:
    return {**rest, name: factor}


@cache
def _scale(low: float, high: float, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    if symmetric:
        high = max(-low, high)
        low = -high
    scale = max((high - low) / (_HIGH - _LOW), 1e-30)
    zero = 0 if symmetric else round(_LOW - low / scale)
    return np.array(scale, np.float32), np.array(np.clip(zero, _LOW, _HIGH), np.int8)
