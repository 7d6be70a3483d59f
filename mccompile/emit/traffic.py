"""What a run moves over a bus: weights that come through a window, and tensors of a memory that is `copied`."""

from __future__ import annotations

from itertools import pairwise

from ..plan.copies import Awaited, Copied, copies
from ..plan.ir import Plan, Step, max_bytes


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
    """By memory that is `copied` the bytes that a run reads and writes there, the least that any plan does, and
    microseconds that it takes where it is known how fast that memory is."""
    found = {}
    for arena in (arena for arena in plan.arenas if arena.copied):
        steps = [step for step in plan.steps() if step.function.kernel.copies]
        read, written = (_bytes(steps, arena.base, way) for way in (False, True))
        bound = {} if plan.copied_bound is None else {"traffic_bound_bytes": plan.copied_bound}
        time = {} if not arena.rate else {"traffic_us": -(-(read + written) // arena.rate)}
        each = {"read_bytes": read, "written_bytes": written, "traffic_bytes": read + written}
        found[arena.pool] = each | bound | time
    return found


def _bytes(steps: list[Step], base: str, written: bool) -> int:
    arguments = (argument for step in steps for argument in step.arguments if argument.written == written)
    return sum(max_bytes(argument.type) for argument in arguments if argument.address.base == base)
