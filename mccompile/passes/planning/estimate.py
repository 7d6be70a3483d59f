"""What a plan takes, as its kernels estimate it: seconds of a run, and bytes of code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...base.dims import upper
from ...kernels.api import Cost
from ...plan.ir import Plan
from ...program.ir import Call, Item, Loop, Program, Rows, View, bodies
from ..api import Context

ROW = 2e-8  # seconds: what a call in a region of rows takes besides its share of the work


@dataclass(frozen=True)
class Estimate:
    time: float
    code: int


NOT_ESTIMATED = Estimate(0.0, 0)


def estimate(program: Program, plan: Plan, context: Context) -> Estimate:
    code = sum(function.kernel.cost(function.call, context.target).code for function in plan.functions)
    return Estimate(total(program.body, context, lambda cost: cost.time), code)


def total(body: Sequence[Item], context: Context, value: Callable[[Cost], float], times: int = 1) -> float:
    """The sum over all calls, as often as they run; of an If over both branches."""
    found = 0.0
    for item in body:
        if isinstance(item, Call):
            found += times * value(context.registry[item.kernel].cost(item, context.target))
        elif isinstance(item, Rows):
            for stage in item.stages:
                cost = value(context.registry[stage.call.kernel].cost(stage.call, context.target))
                found += times * (cost + ROW * -(-stage.height // stage.step))
        else:
            trips = upper(item.trips) if isinstance(item, Loop) and not isinstance(item.trips, View) else 1
            found += sum(total(inner, context, value, times * trips) for inner in bodies(item))
    return found
