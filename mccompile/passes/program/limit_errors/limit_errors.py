"""limit_errors: products in f32 are computed more exactly where their rounding errors would change an output by more
than LIMIT of its largest element: without those tiles of Winograd's method that have larger errors than a plain sum, or
with sums in short runs.

Most networks keep errors as small as they are made; some let those of their first layers grow by two orders of
magnitude. What comes of an error is estimated from weights (noise.py). Where the estimate is too large, the call is
chosen whose exactness takes the least time for what it gains, until the estimate is small enough or, if no limit was
asked for, the rest is not worth its time. What was chosen is a fact about the model's values, and recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from ....base.dtypes import f32
from ....base.records import dataclass
from ....base.summation_error import ANY, DIRECT, HALF_PLACE, PLAIN, SHORT
from ....kinds.conv import Conv
from ....kinds.gemm import Gemm
from ....program.ir import Call, Program
from ...api import Context
from .noise import steps
from .spreads import Step

LIMIT = 3e-5
TOO_LARGE = 1.25  # what estimates are over errors where these are large
DOUBT = 3.0  # an estimate of less than so many times LIMIT may be that much too large: nothing is done about it
WORTH = 1.0  # which part of the errors that are left has to go for one more part of the time
FACTS = {
    PLAIN: "is as exact as a plain sum",
    SHORT: "is as exact as a plain sum, and summed in short runs",
    DIRECT: "is as exact as a sum in short runs",
}


@dataclass(frozen=True)
class PrecisionOption:
    """How exactly a call can be made: what its errors come to at an output, and what it takes."""

    asked: int
    error: float
    time: float


def limit_errors(program: Program, context: Context) -> None:
    calls = [call for call in program.calls() if isinstance(call.kind, Conv | Gemm) and _in_floats(call)]
    if not calls or context.training.updatable:
        return
    if context.training.facts_known is not None:
        chosen = {
            n: asked for n, call in enumerate(calls) for asked in FACTS if context.training.may_use(_fact(call, asked))
        }
    else:
        chosen = _chosen(program, context, calls)
    for n, asked in chosen.items():
        program.assumptions[_fact(calls[n], asked)] = None
        calls[n].kind = _asked(calls[n], asked).kind


def _in_floats(call: Call) -> bool:
    return all(view.buffer.dtype is f32 for view in (*call.ins[:1], *call.outs))


def _fact(call: Call, asked: int) -> str:
    return f"{call.outs[0].buffer.name} {FACTS[asked]}"


def _asked(call: Call, asked: int) -> Call:
    assert isinstance(call.kind, Conv | Gemm)
    return replace(call, kind=replace(call.kind, rounding=asked))


def _chosen(program: Program, context: Context, calls: list[Call]) -> dict[int, int]:
    """Which calls, by number, are asked for more."""
    with np.errstate(all="ignore"):
        found = {id(step.call): step for step in steps(program)}
    products = [found[id(call)] for call in calls]
    asked = context.float_error
    limit, worth = ((asked or LIMIT) * TOO_LARGE) ** 2, 0.0 if asked else WORTH
    fastest = [way for step in products for way in _ways(step, context, (ANY,))]
    error, time = sum(way.error for way in fastest), sum(way.time for way in fastest)
    if error <= (limit if asked else (LIMIT * DOUBT) ** 2):
        return {}
    ways, picks = [_ways(step, context, (ANY, *FACTS)) for step in products], [0] * len(products)
    while error > limit:
        best, gain = None, worth
        for n, each in enumerate(ways):
            for pick in range(picks[n] + 1, len(each)):
                less, more = each[picks[n]].error - each[pick].error, each[pick].time - each[picks[n]].time
                gained = less / error / (more / time) if more > 0 else inf
                if gained > gain:
                    best, gain = (n, pick), gained
        if best is None:
            break
        n, pick = best
        error += ways[n][pick].error - ways[n][picks[n]].error
        time += ways[n][pick].time - ways[n][picks[n]].time
        picks[n] = pick
    return {n: ways[n][pick].asked for n, pick in enumerate(picks) if pick}


def _ways(step: Step, context: Context, levels: Sequence[int]) -> list[PrecisionOption]:
    """Each with smaller errors than the one before."""
    found: list[PrecisionOption] = []
    for asked in levels:
        call = _asked(step.call, asked)
        best = next(iter(context.registry.choose(call, context.target).candidates), None)
        if best is None:
            continue
        rounding = best.kernel.rounding(replace(call, blocks=best.needs.blocks))
        error = rounding * HALF_PLACE**2 * step.products * step.arrives
        if not found or error < found[-1].error:
            found.append(PrecisionOption(asked, error, best.cost.time))
    return found
