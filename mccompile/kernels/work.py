"""Work that several workers share: a kernel counts its units (tiles, rows, groups of channels), the compiler cuts them
into one piece per worker, and the C function computes the units from `begin` to `end`.

Invariant: units may be computed in any order and at the same time, but for those before a barrier, which are done
first; which piece a unit lies in changes no bit of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..base.marked import named


def pieces(units: Sequence[int], workers: int) -> tuple[tuple[int, int], ...]:
    """Runs of units of about equal size, given how much work each is: at most one for each worker, none empty."""
    total = sum(units)
    found: list[tuple[int, int]] = []
    begin = done = 0
    for worker in range(1, workers + 1):
        end, wanted = begin, total * worker / workers
        while end < len(units) and (worker == workers or abs(done + units[end] - wanted) <= abs(done - wanted)):
            done += units[end]
            end += 1
        if end > begin:
            found.append((begin, end))
        begin = end
    return tuple(found)


def phases(units: Sequence[int], workers: int, barrier: int = 0) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Pieces that run at the same time; where there is a barrier, units before it are done before any other begins."""
    cuts = (0, barrier, len(units)) if barrier else (0, len(units))
    return tuple(
        tuple((first + begin, first + end) for begin, end in pieces(units[first:last], workers))
        for first, last in itertools.pairwise(cuts)
    )


def slowest(units: Sequence[int], workers: int, barrier: int = 0) -> float:
    """How much longer the largest pieces take than a fair share of the work."""
    largest = (max(sum(units[begin:end]) for begin, end in phase) for phase in phases(units, workers, barrier))
    return sum(largest) * workers / sum(units)


class Units:
    """Opens loops over tiles, of which only those run that lie between `begin` and `end`: tiles are counted through all
    loops, in the order in which these are asked for. `first` is C of the first unit, where that is not 0."""

    def __init__(self, first: str = "") -> None:
        self.first = first
        self.sizes: list[int] = []

    def loop(self, counter: str, first: int, step: int, tiles: int, size: int) -> str:
        """C that opens a loop (or a block) in which `counter` is first, first + step, ...; `size` is how much work a
        tile is."""
        before, after = self._unit(len(self.sizes)), self._unit(len(self.sizes) + tiles)
        begin, end = named("begin"), named("end")
        self.sizes += [size] * tiles
        if tiles == 1:
            return f"if ({begin} <= {before} && {before} < {end}) {{\nconst mcc_index {counter} = {first};"
        unit = f"{counter}_unit"
        start = begin if before == "0" else f"{begin} > {before} ? {begin} : {before}"
        place = unit if before == "0" else f"({unit} - {f'({before})' if ' ' in before else before})"
        at = place if step == 1 else f"{place} * {step}"
        return (
            f"for (mcc_index {unit} = {start}; {unit} < {end} && {unit} < {after}; ++{unit}) {{\n"
            f"const mcc_index {counter} = {at}{f' + {first}' if first else ''};"
        )

    def _unit(self, number: int) -> str:
        return " + ".join(part for part in (self.first, str(number) if number or not self.first else "") if part)
