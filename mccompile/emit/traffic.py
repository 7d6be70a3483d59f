"""What weights that come through a window move over their bus in a run."""

from __future__ import annotations

from itertools import pairwise

from ..plan.copies import Awaited, Copied, copies
from ..plan.ir import Plan


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
