"""What a run moves over a bus: weights that come through a window, and tensors of a memory that is `copied`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import ceil

from ..base.dims import static
from ..base.records import dataclass
from ..plan.copies import Awaited, Copied, copies
from ..plan.ir import Arena, Item, Plan, RowRegion, Step
from ..plan.row_calls import row_calls


def traffic(plan: Plan) -> dict[str, int] | None:
    """None: weights are read in place."""
    if not plan.window:
        return None
    found = copies(plan.items)
    at_once = [one for one, other in pairwise(plan.items) if isinstance(one, Copied) and other == Awaited(one)]
    return {
        "window_bytes": plan.window,
        "read_bytes": sum(copy.bytes for copy in found),
        "copies": len(found),
        "largest_bytes": max((copy.bytes for copy in found), default=0),
        "overlapped_bytes": sum(copy.bytes for copy in found) - sum(copy.bytes for copy in at_once),
    }


def transfers(plan: Plan) -> dict[str, dict[str, int]]:
    """By memory that is `copied` the bytes that a run reads and writes there, in how many copies, those of them on
    their way while steps run, and the least that any plan copies. Where it is known how fast that memory is also the
    microseconds that it takes; where the core's clock is known, those of them that no step computes in."""
    found = {}
    for arena in (arena for arena in plan.arenas if arena.copied):
        steps = [step for step in plan.steps() if step.function.kernel.copies]
        read, written = (_bytes(steps, arena.base, way) for way in (False, True))
        bound = {} if plan.copied_bound is None else {"traffic_bound_bytes": plan.copied_bound}
        early = [each for item in plan.items if isinstance(item, RowRegion) for each in _early(item)]
        copied = {"read_bytes": read, "written_bytes": written, "traffic_bytes": read + written}
        copied |= {"copies": sum(map(_copies, plan.items)), "overlapped_bytes": sum(each.bytes for each in early)}
        found[arena.pool] = copied | bound | (_times(plan, arena, copied, early) if arena.rate else {})
    return found


@dataclass(eq=False)
class _Early:
    """A copy that is on its way while stages of a chain compute for so many cycles."""

    bytes: int
    cycles: float = 0.0


def _times(plan: Plan, arena: Arena, copied: Mapping[str, int], early: Iterable[_Early]) -> dict[str, int]:
    def taken(nbytes: int, copies: int) -> float:
        return nbytes / (arena.rate or 1) + copies * arena.latency_ns / 1000

    whole = taken(copied["traffic_bytes"], copied["copies"])
    found = {"traffic_us": ceil(whole)}
    if plan.mhz:
        hidden = sum(min(taken(each.bytes, 1), each.cycles / plan.mhz) for each in early)
        found["waited_us"] = ceil(whole - hidden)
    return found


def _early(region: RowRegion) -> list[_Early]:
    found, left, made = list[_Early](), _Early(0), [0] * len(region.stages)
    for number in row_calls(region):
        stage, before = region.stages[number], made[number]
        function = stage.run.function
        made[number] = min(before + stage.step, stage.height)
        if function.kernel.queued(function.call):
            left = _Early(function.kernel.left(function.call, before, made[number]))
        elif left.bytes:
            found += [left] if left not in found[-1:] else []
            left.cycles += stage.run.cycles * (made[number] - before) / stage.height
    return found


def _copies(item: Item) -> int:
    """Of chains row by row, and of steps that copy tensors as a whole."""
    if isinstance(item, Step):
        function = item.function
        if not function.kernel.copies:
            return 0
        return function.kernel.moves(function.call, 0, static(function.call.ins[0].shape[0]))
    if not isinstance(item, RowRegion):
        return 0
    found = 0
    for stage in item.stages:
        function = stage.run.function
        starts = range(0, stage.height, stage.step)
        found += sum(function.kernel.moves(function.call, b, min(b + stage.step, stage.height)) for b in starts)
    return found


def _bytes(steps: list[Step], base: str, written: bool) -> int:
    arguments = (argument for step in steps for argument in step.arguments if argument.written == written)
    return sum(argument.type.max_bytes for argument in arguments if argument.address.base == base)
