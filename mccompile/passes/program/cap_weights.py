"""cap_weights: limits the flash that weights may take to save time, on microcontrollers.

Kernels pack weights for themselves: in 16 bits, or transformed for Winograd's method. Beyond `MOST` times the smallest
weights of a network, a run must be as many times faster as the weights are larger; up to `FREE` bytes all is allowed.
Calls give up the kernels that take most bytes for the time that they gain; then those that still fit get faster ones
back.

Invariant: only calls that give something up are given a kernel here; the others are left to those who choose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...base.records import dataclass
from ...kernels.registry import Candidate
from ...program.ir import CONSTANT, Program, reads, walk
from ...targets.api import WORTH, Prefer
from ..api import Context
from ..planning.estimate import runs_of

MOST = 1.5  # times the smallest weights
FREE = 256 << 10  # bytes of flash that nearly every part has that is fast enough to have such kernels


@dataclass(frozen=True)
class KernelOption:
    """A kernel for a call, and what all runs of it take."""

    kernel: str
    time: float
    bytes: int  # more than the constants themselves


def cap_weights(program: Program, context: Context) -> None:
    balanced = context.memory.worth == WORTH[Prefer.BALANCED]
    if context.target.hosted or not (balanced or context.target.prefer == Prefer.TIME):
        return
    runs = list(runs_of(program.body))
    among = [_ways(context.registry.choose(run.call, context.target).candidates, run.times) for run in runs]
    picks = Cap(among, _constants(program)).picks()
    for run, ways, pick in zip(runs, among, picks, strict=True):
        if pick:
            run.call.kernel = ways[pick].kernel


class Cap:
    """Of each call's kernels, the fastest first and each smaller than all before it, those that fit together."""

    def __init__(self, among: Sequence[Sequence[KernelOption]], constants: int) -> None:
        self.among, self.constants = among, constants
        smallest = tuple(len(ways) - 1 for ways in among)
        self.least, self.longest = self.bytes(smallest), self.time(smallest)

    def bytes(self, picks: Sequence[int]) -> int:
        return self.constants + sum(ways[n].bytes for ways, n in zip(self.among, picks, strict=True) if ways)

    def time(self, picks: Sequence[int]) -> float:
        return math.fsum(ways[n].time for ways, n in zip(self.among, picks, strict=True) if ways)

    def fits(self, picks: Sequence[int]) -> bool:
        gain = self.longest / max(self.time(picks), 1)
        return self.bytes(picks) <= max(FREE, self.least * max(MOST, gain))

    def picks(self) -> list[int]:
        picks = [0] * len(self.among)
        while not self.fits(picks):
            steps = [
                ((way.time - ways[picks[n]].time) / (ways[picks[n]].bytes - way.bytes), n, later)
                for n, ways in enumerate(self.among)
                for later, way in enumerate(ways[picks[n] + 1 :], picks[n] + 1)
            ]
            if not steps:
                break
            _, n, picks[n] = min(steps)
        return self.given_back(picks)

    def given_back(self, picks: list[int]) -> list[int]:
        """Faster kernels for calls where that still fits; those first that gain most."""
        gains = [ways[n].time - ways[0].time if ways else 0.0 for ways, n in zip(self.among, picks, strict=True)]
        for n in sorted(range(len(picks)), key=lambda n: -gains[n]):
            tried = ([*picks[:n], earlier, *picks[n + 1 :]] for earlier in range(picks[n]))
            picks = next((changed for changed in tried if self.fits(changed)), picks)
        return picks


def _constants(program: Program) -> int:
    read = {id(view.buffer): view.buffer for item in walk(program.body) for view in reads(item)}
    return sum(buffer.type.max_bytes for buffer in read.values() if buffer.role == CONSTANT)


def _ways(candidates: Sequence[Candidate], times: int) -> list[KernelOption]:
    """The fastest, and those that take fewer bytes than all faster ones."""
    kept: list[KernelOption] = []
    for kernel, _, cost in candidates:
        if not kept or cost.blob < kept[-1].bytes:
            kept.append(KernelOption(kernel.id, cost.time * times, cost.blob))
    return kept
