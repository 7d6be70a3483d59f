"""When steps run and copies are on their way, in the order of a run: what the page draws as a timeline.

Invariant: rows that a call of a chain makes, and copies, are those of `plan/row_calls.py`, which the C follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.copies import Awaited, Copied
from ..plan.ir import Item, Plan, RowRegion, Stage, Step
from ..plan.row_calls import row_calls

MOST = 6000  # calls; of more, no picture says anything


def timeline(plan: Plan) -> dict[str, Any] | None:
    """`calls`: number of the step, and what part of it runs. `copies`: from the begin of which call to the end of which
    one, how many bytes, of which memory, and whether that is written. None: nothing is copied, or there are too many.
    """
    found = _Timeline({arena.base: arena.pool for arena in plan.arenas if arena.copied})
    for item in plan.items:
        found.add(item)
        if len(found.calls) > MOST:
            return None
    copies = sorted(found.copies, key=lambda copy: copy["first"])
    return {"calls": found.calls, "copies": copies} if copies else None


class _Timeline:
    def __init__(self, far: Mapping[str, str]) -> None:
        self.far = far
        self.calls: list[tuple[int, float]] = []
        self.copies: list[dict[str, Any]] = []
        self.begun: dict[Copied, int] = {}

    def add(self, item: Item) -> None:
        match item:
            case Copied():
                self.begun[item] = len(self.calls)
            case Awaited():
                begun = self.begun.pop(item.copy)
                self._copy(begun, max(begun, len(self.calls) - 1), item.copy.bytes, "weights", False)
            case RowRegion():
                self._rows(item)
            case Step():
                self.calls.append((item.number, 1.0))
                if item.function.kernel.copies:
                    self._moved(item, item.function.call.ins[0].type.max_bytes)

    def _rows(self, region: RowRegion) -> None:
        made, left = [0] * len(region.stages), None
        for number in row_calls(region):
            stage, begin = region.stages[number], made[number]
            made[number] = end = min(begin + stage.step, stage.height)
            function = stage.run.function
            if function.kernel.queued(function.call) and left is not None:  # it awaits the one before
                left["last"], left = len(self.calls) - 1, None
            self.calls.append((stage.run.number, (end - begin) / stage.height))
            if function.kernel.copies:
                copied = self._moved(stage.run, _bytes(stage, begin, end))
                left = copied if function.kernel.left(function.call, begin, end) else None

    def _moved(self, step: Step, nbytes: int) -> dict[str, Any]:
        there = next(argument for argument in step.arguments if argument.address.base in self.far)
        now = len(self.calls) - 1
        return self._copy(now, now, nbytes, self.far[there.address.base], there.written)

    def _copy(self, first: int, last: int, nbytes: int, memory: str, written: bool) -> dict[str, Any]:
        self.copies.append({"first": first, "last": last, "bytes": nbytes, "memory": memory, "written": written})
        return self.copies[-1]


def _bytes(stage: Stage, begin: int, end: int) -> int:
    return stage.run.function.call.ins[0].type.max_bytes * (end - begin) // stage.height
