"""Trial plans: the plan of a program if its open calls get certain kernels.

A trial runs the passes from the choice of kernels to the binding of storage on a copy of the program, and measures the
peak; the arena's size, which takes longer, only where somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from ....base.records import dataclass
from ....kernels.api import static_views
from ....kernels.registry import Candidate, Choice, effort
from ....kernels.remembered import remembered
from ....memory.interval import Block, lower_bound, peak
from ....memory.push_down import push_down
from ....program.clone import clone
from ....program.ir import Call, Program, Rows, walk
from ...api import Context
from ...planning.estimate import total
from ..bufferize import best_choice, blocks_after
from ..fuse_line_buffers import fuse_line_buffers
from ..order_calls import order_calls
from ..select_kernels import select_kernels
from ..share_work import share_work


@dataclass(frozen=True)
class Trial:
    blocks: Sequence[Block]
    time: float  # estimated; bytes of code and weights count as when one call's kernel is chosen
    at_peak: tuple[int, ...]  # open calls that run when most is alive

    @cached_property
    def peak(self) -> int:
        return lower_bound(self.blocks)

    @cached_property
    def bytes(self) -> int:
        return push_down(self.blocks).size


class TrialPlans:
    """Of one program. `among` has the candidates of each open call, the fastest first: each of the others may need less
    memory than all before it."""

    def __init__(self, program: Program, context: Context) -> None:
        registry = remembered(context.registry, context.target)
        self.program, self.context = program, replace(context, registry=registry, explanations=[])
        calls = _calls(program)
        self.count = len(calls)
        found = {}
        for number, call in enumerate(calls):
            if not static_views(call) and not call.kernel:
                candidates = _worth_trying(registry.choose(call, context.target))
                if len(candidates) > 1:
                    found[number] = candidates
        self.positions, self.among = tuple(found), tuple(found.values())

    def give(self, program: Program, picks: Sequence[int]) -> list[Call]:
        """Gives the open calls of a copy their kernels."""
        calls = _calls(program)
        opened = [calls[position] for position in self.positions]
        for call, candidates, pick in zip(opened, self.among, picks, strict=True):
            call.kernel = candidates[pick].kernel.id
        return opened

    def trial(self, picks: Sequence[int]) -> Trial:
        context, (program, opened) = self.context, self.given(picks)
        blocks = blocks_after(program, context, best_choice(program, context, thorough=False))
        running = _running(program, peak(blocks).time)
        at_peak = tuple(n for n, call in enumerate(opened) if any(call is other for other in running))
        return Trial(blocks, total(program.body, context, lambda cost: effort(cost, context.target)), at_peak)

    def cycles(self, picks: Sequence[int]) -> float:
        """Estimated, without bytes."""
        program, _ = self.given(picks)
        return total(program.body, self.context, lambda cost: cost.time)

    def given(self, picks: Sequence[int]) -> tuple[Program, list[Call]]:
        """A copy with these kernels, up to the binding of storage, and its open calls."""
        program = clone(self.program)
        opened = self.give(program, picks)
        for step in (select_kernels, order_calls, fuse_line_buffers, share_work):
            step(program, self.context)
        return program, opened


def _calls(program: Program) -> list[Call]:
    return [item for item in walk(program.body) if isinstance(item, Call)]


def _running(program: Program, time: int) -> list[Call]:
    """The calls of the item that runs at a time of liveness, which counts from 1."""
    item = next((item for number, item in enumerate(walk(program.body), 1) if number == time), None)
    if isinstance(item, Rows):
        return [stage.call for stage in item.stages]
    return [item] if isinstance(item, Call) else []


def _worth_trying(choice: Choice) -> tuple[Candidate, ...]:
    """The best one, and those that may need less memory than all better ones."""
    kept: list[Candidate] = []
    for candidate in choice.candidates:
        if not kept or all(_may_save(candidate, better) for better in kept):
            kept.append(candidate)
    return tuple(kept)


def _may_save(candidate: Candidate, better: Candidate) -> bool:
    mine, other = candidate.needs, better.needs
    return bool(
        mine.scratch < other.scratch
        or mine.rows - other.rows
        or mine.alias.keys() - other.alias.keys()
        or other.dense - mine.dense
        or other.dense_outs - mine.dense_outs
        or other.slack.keys() - mine.slack.keys()
    )
