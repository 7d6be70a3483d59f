"""Where a view begins in the trips of the loops around it: at the counters' multiples, or at what they choose."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import gcd, prod

from ..base.dims import Dim, bounds, evaluate, is_linear, symbols

_MOST = 1 << 12  # trips that are worked out one by one


def offsets_along(offset: Dim, last: Mapping[str, int]) -> tuple[int, list[tuple[int, int]]]:
    """An offset, and (count, stride) of axes along which it moves; `last` has the largest value of each counter. Other
    sizes are the largest. Of an offset that is not a sum of multiples, such as a remainder, the first is the least."""
    at = {s.name: 0 if s.name in last else s.high for s in symbols(offset)}
    names = [name for name in sorted(at) if name in last]
    first = evaluate(offset, at)
    if is_linear(offset):
        return first, [(last[name] + 1, evaluate(offset, at | {name: 1}) - first) for name in names]
    counts = [last[name] + 1 for name in names]
    if prod(counts) > _MOST:
        low, high = bounds(offset)
        return low, [(high - low + 1, 1)]
    trips = itertools.product(*map(range, counts))
    found = {evaluate(offset, at | dict(zip(names, each, strict=True))) for each in trips}
    low, high = min(found), max(found)
    stride = gcd(*(each - low for each in found)) or 1
    return low, [((high - low) // stride + 1, stride)]
