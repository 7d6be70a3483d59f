"""The cost of a plan, as estimated by its kernels or as measured: cycles of a run, and bytes of code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...base.dims import upper
from ...base.records import dataclass
from ...kernels.api import Cost
from ...kernels.registry import Registry
from ...plan.ir import Plan, Step, with_steps
from ...program.ir import CONSTANT, Call, Item, Loop, Program, Rows, View, bodies
from ...targets.api import Target
from ..api import Context


class Run(NamedTuple):
    """A call, how often it is done in a run, and in how many pieces each time."""

    call: Call
    times: int
    pieces: int


@dataclass(frozen=True)
class Estimate:
    time: float
    code: int
    runs: tuple[Run, ...] = ()

    def time_by(self, registry: Registry, target: Target) -> float:
        """What the same plan takes as these kernels say."""
        return _sum(self.runs, registry, target, lambda cost: cost.time)


NOT_ESTIMATED = Estimate(0.0, 0)


def estimate(program: Program, plan: Plan, context: Context) -> Estimate:
    code = sum(function.kernel.cost(function.call, context.target).code for function in plan.functions)
    runs = tuple(runs_of(program.body))
    return Estimate(_sum(runs, context.registry, context.target, lambda cost: cost.time), code, runs)


def with_cycles(plan: Plan, context: Context) -> Plan:
    """What its steps take, where that says how much of copies is hidden behind them."""
    if not any(arena.copied for arena in plan.arenas):
        return plan

    def told(step: Step) -> Step:
        kernel, call = step.function.kernel, step.function.call
        return replace(step, cycles=context.registry.cost(kernel, call, context.target).time)

    return replace(plan, items=with_steps(plan.items, told), mhz=context.target.mhz)


def total(body: Sequence[Item], context: Context, value: Callable[[Cost], float]) -> float:
    """The sum over all calls, as often as they run; of an If over both branches."""
    return _sum(tuple(runs_of(body)), context.registry, context.target, value)


def runs_of(body: Sequence[Item], times: int = 1) -> Iterator[Run]:
    for item in body:
        if isinstance(item, Call):
            yield Run(item, times, 0)
        elif isinstance(item, Rows):
            yield from (Run(stage.call, times, -(-stage.height // stage.step)) for stage in item.stages)
        else:
            trips = upper(item.trips) if isinstance(item, Loop) and not isinstance(item.trips, View) else 1
            for inner in bodies(item):
                yield from runs_of(inner, times * trips)


def taken(run: Run, context: Context) -> float:
    """Cycles of a run of the program that all runs of one call take."""
    return _sum((run,), context.registry, context.target, lambda cost: cost.time)


def _sum(runs: Sequence[Run], registry: Registry, target: Target, value: Callable[[Cost], float]) -> float:
    found = 0.0
    for call, times, pieces in runs:
        found += times * (value(registry.cost(registry[call.kernel], call, target)) + target.machine.row * pieces)
        if target.machine.weight_byte:
            found += times * target.machine.weight_byte * _weights(call) * max(1, pieces)
    return found


def _weights(call: Call) -> int:
    """Bytes of constants that a call reads."""
    buffers = {id(view.buffer): view.buffer for view in call.ins if view.buffer.role == CONSTANT}
    return sum(buffer.type.max_bytes for buffer in buffers.values())
