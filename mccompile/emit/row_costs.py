"""What running steps row by row costs: more calls of kernels, and weights that are read again for every piece."""

from __future__ import annotations

from ..base.records import dataclass
from ..plan.ir import BLOB, Argument, Plan, RowRegion, Step, is_arena
from ..plan.row_calls import regions
from ..program.ir import CONSTANT


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
    return [_cost(region) for region in regions(plan.items)]


def _cost(region: RowRegion) -> RowCost:
    calls, weights, read = 0, 0, 0
    for stage in region.stages:
        times = -(-stage.height // stage.step)
        own = sum(a.high - a.low for a in weights_of(stage.run))
        calls, weights, read = calls + times, weights + own, read + own * times
    return RowCost(len(region.stages), max(stage.step for stage in region.stages), calls, weights, read)


def weights_of(step: Step) -> list[Argument]:
    """What a step reads of the blob, or of copies of it."""
    call = step.function.call
    operands = zip(step.arguments[len(call.outs) :], call.ins, strict=False)
    copied = [a for a, view in operands if view.buffer.role == CONSTANT and is_arena(a.address.base)]
    return [a for a in step.arguments if a.address.base == BLOB] + copied
