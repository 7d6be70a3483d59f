"""What sums of 8-bit integers take: instructions, fitted to counts over grids of sizes (`python -m benchmarks.ranks`
compares what comes of it with counts)."""

from __future__ import annotations

from ...base.records import dataclass
from ...program.ir import Call
from ...targets.api import Target
from ..traffic import of_results

SCALAR_PRODUCT = 1.8  # over what it takes where an instruction makes two: bytes of a window become words first
SCALAR_COPIED = 1.2  # of what a product takes in plain C
SCALAR_RESULT, SCALAR_WINDOW = 8.0, 100.0  # instructions
INSTRUCTION = 1 / 1.2  # of what a product takes by itself where an instruction makes two


@dataclass(frozen=True)
class Work:
    """What a call does, each so often. Sums are as long, and results as many, as blocks of the kernel make them."""

    products: int
    copied: int  # elements of windows or rows that are laid out
    results: int
    rest: int  # results that have more to their epilogue than to be rescaled
    windows: int
    runs: int  # of elements that lie side by side in windows
    loose: int = 0  # elements of runs that are not whole words


@dataclass(frozen=True)
class Rates:
    product: float
    copied: float
    result: float
    rest: float = 9.0
    window: float = 0.0
    run: float = 0.0
    loose: float = 0.0

    def cycles(self, work: Work, target: Target) -> float:
        instructions = (
            self.product * work.products
            + self.copied * work.copied
            + self.result * work.results
            + self.rest * work.rest
            + self.window * work.windows
            + self.run * work.runs
            + self.loose * work.loose
        )
        return instructions * INSTRUCTION * target.machine.short_mac


def scalar_cycles(work: Work, call: Call, target: Target, product: float = 1.0, result: float = 0.0) -> float:
    """On cores without SIMD, where a result takes a little more than in plain C: `result` more than otherwise, and each
    product so much of its usual time."""
    machine = target.machine
    products = SCALAR_PRODUCT * product * work.products * machine.short_mac
    copied = SCALAR_COPIED * work.copied * machine.mac
    results = of_results(call, target) + (SCALAR_RESULT + result) * work.results
    return products + copied + results + SCALAR_WINDOW * work.windows
