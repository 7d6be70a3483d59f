"""What a run moves over a bus: weights that come through a window, and tensors of a memory that is `copied`."""

from __future__ import annotations

from itertools import pairwise

from ..plan.copies import Awaited, Copied, copies
from ..plan.ir import Plan, RowRegion, Step, max_bytes
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
    """By memory that is `copied` the bytes that a run reads and writes there, those of them that are copied while steps
    run, the least that any plan copies, and microseconds that it takes where it is known how fast that memory is."""
    found = {}
    for arena in (arena for arena in plan.arenas if arena.copied):
        steps = [step for step in plan.steps() if step.function.kernel.copies]
        read, written = (_bytes(steps, arena.base, way) for way in (False, True))
        bound = {} if plan.copied_bound is None else {"traffic_bound_bytes": plan.copied_bound}
        time = {} if not arena.rate else {"traffic_us": -(-(read + written) // arena.rate)}
        each = {"read_bytes": read, "written_bytes": written, "traffic_bytes": read + written}
        each["overlapped_bytes"] = sum(_overlapped(item) for item in plan.items if isinstance(item, RowRegion))
        found[arena.pool] = each | bound | time
    return found


def _overlapped(region: RowRegion) -> int:
    """Bytes that are on their way while stages of a chain compute."""
    found, made = 0, [0] * len(region.stages)
    for number, following in pairwise(row_calls(region)):
        function, before = region.stages[number].run.function, made[number]
        made[number] = min(before + region.stages[number].step, region.stages[number].height)
        then = region.stages[following].run.function
        if not then.kernel.queued(then.call):
            found += function.kernel.left(function.call, before, made[number])
    return found


def _bytes(steps: list[Step], base: str, written: bool) -> int:
    arguments = (argument for step in steps for argument in step.arguments if argument.written == written)
    return sum(max_bytes(argument.type) for argument in arguments if argument.address.base == base)
