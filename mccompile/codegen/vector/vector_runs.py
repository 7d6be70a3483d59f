"""Sums that are cut into runs, whose sums are added up: of 16-bit floats always, of 32-bit ones where they are to be
more exact (base/summation_error.py)."""

from __future__ import annotations

from ...base.dtypes import DType, f16, f32
from ...base.marked import named
from ...base.records import dataclass
from ...base.summation_error import ANY, SHORT, in_short_runs, plain, short_run
from ...kernels.api import terms
from ...kinds.gemm import Gemm
from ...program.ir import Call
from ..tiles import Range

END_OF_RUN = 0.75  # steps of a sum that adding it to a total takes
HALF_RUN = 48  # terms at most that are added up in 16 bits: docs/speed.md says what that costs


def longest_run(depth: int, dtype: DType, rounding: int = ANY) -> int:
    """Into runs of how many terms a sum of so many is cut, whose sums are added up in 32 bits; 0: it is not."""
    run = HALF_RUN if dtype is f16 else short_run(depth) if rounding >= SHORT else depth
    return run if depth > run else 0


def cutting(depth: int, rounding: int) -> float:
    """How much longer sums of 32-bit floats take that are cut where that is asked for."""
    run = longest_run(depth, f32, rounding)
    return 1 + END_OF_RUN / run if run else 1.0


def of_sums(call: Call) -> float:
    """How far the sums of a call are off that are cut where that is asked for."""
    many = terms(call)
    return in_short_runs(many) if call.of(Gemm).rounding >= SHORT else plain(many)


@dataclass(frozen=True)
class Run:
    """Inputs of a sum that are added up before others are: a loop `around`, and one within; no loop around says all."""

    around: tuple[Range, ...]
    inputs: Range


def runs(counter: str, inputs: int, most: int, together: int) -> tuple[Run, ...]:
    """The inputs of a sum in runs of at most so many, as rounding errors grow with their length. Runs are whole
    multiples of `together` but for the rest."""
    longest = max(most // together * together, together)
    whole = inputs // together * together
    found = []
    if whole:
        many = -(-whole // longest)
        step = -(-whole // (many * together)) * together
        found.append(_run(counter, 0, whole, step))
    return (*found, _run(counter, whole, inputs, inputs - whole)) if whole < inputs else tuple(found)


def _run(counter: str, begin: int, end: int, step: int) -> Run:
    if end - begin == step:
        return Run((), Range(counter, step, str(begin), str(end)))
    start = f"{counter}0"
    stop = f"{named(start)} + {step}"
    if (end - begin) % step:
        stop = f"({stop} < {end} ? {stop} : {end})"
    return Run((Range(start, end, str(begin), step=step),), Range(counter, step, start, stop))
