"""What running steps row by row costs: more calls of kernels, and weights that are read again for every piece."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..plan.ir import BLOB, Branch, Item, Plan, Repeat, RowRegion


@dataclass(frozen=True)
class RowCost:
    """Of one region."""

    steps: int
    height: int  # rows that a call makes
    calls: int  # of kernels
    weights: int  # bytes
    read: int  # bytes of weights that are read

    def to_json(self) -> dict[str, int]:
        return {
            "steps": self.steps,
            "rows_at_a_time": self.height,
            "kernel_calls": self.calls,
            "weights_bytes": self.weights,
            "weights_read_bytes": self.read,
        }


def costs_of_rows(plan: Plan) -> list[RowCost]:
    return [_cost(region) for region in _regions(plan.items)]


def _regions(items: Iterable[Item]) -> Iterable[RowRegion]:
    for item in items:
        match item:
            case RowRegion():
                yield item
            case Branch():
                yield from _regions((*item.then, *item.otherwise))
            case Repeat():
                yield from _regions(item.items)


def _cost(region: RowRegion) -> RowCost:
    calls, weights, read = 0, 0, 0
    for stage in region.stages:
        times = -(-stage.height // stage.step)
        own = sum(a.high - a.low for a in stage.run.arguments if a.address.base == BLOB)
        calls, weights, read = calls + times, weights + own, read + own * times
    return RowCost(len(region.stages), max(stage.step for stage in region.stages), calls, weights, read)
