"""choose_kernels: chooses kernels where memory comes first: those of the plan with the smallest product of time and a
power of the arena (the power says how many percent of time one percent of memory may cost); or, where memory may cost
any time, those of the fastest plan among the ones with the smallest arena.

A kernel's workspace counts only where the peak is, and one that cannot run by rows breaks a chain; both show when
memory is planned, so plans are made on trial. The search sets out from what each call would get alone, gives calls at
the peak kernels that may need less as long as that makes the arena smaller, then gives calls faster kernels back where
the arena stays as small. Where there are few combinations it tries all.

Invariant: the plan is never worse than what each call would get alone, and trials are counted, so the outcome is the
same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from ....base.budgets import budgets
from ....program.ir import Program
from ....targets.api import Prefer
from ...api import Context, TriedPlan
from .trial_plans import Trial, TrialPlans

Picks = tuple[int, ...]  # per open call one of its candidates; 0 is what it would get alone
Score = tuple[float, float, int]  # bytes over what is enough or their product with time; time, bytes


def choose_kernels(program: Program, context: Context) -> None:
    if context.target.prefer != Prefer.RAM:
        return
    plans = TrialPlans(program, context)
    if plans.among:
        search = Search(plans)
        plans.give(program, search.best())
        if search.worth and len(search.tried) > 1:
            picks = min(search.tried, key=lambda picks: (search.tried[picks].bytes, search.tried[picks].time))
            context.smallest.append(TriedPlan(search.tried[picks].bytes, plans.cycles(picks)))


class Search:
    """The best plan of a program that can be found in a number of trials."""

    def __init__(self, plans: TrialPlans) -> None:
        self.plans, self.enough = plans, plans.context.memory.enough
        self.worth = plans.context.memory.worth
        self.product = False  # what counts: of arena and time, or the arena first
        self.left = min(budgets().trials, budgets().tried_calls // plans.count)
        self.tried: dict[Picks, Trial] = {}
        self.least: Score = (math.inf, math.inf, 0)
        self.picks: Picks = (0,) * len(plans.among)  # of the best so far
        self.last: Picks = tuple(len(candidates) - 1 for candidates in plans.among)

    def best(self) -> Picks:
        if not self.better(self.picks):
            return self.picks  # there are too many calls for a trial
        if math.prod(map(len, self.plans.among)) <= self.left:
            for picks in product(*(range(len(candidates)) for candidates in self.plans.among)):
                self.better(picks)
            if self.worth:
                self.weigh()
            return self.picks
        while self.least[0] and any(self.better(picks) for picks in self.smaller()):
            pass
        self.faster()
        if self.worth:
            self.weigh()
            self.faster()
        return self.picks

    def weigh(self) -> None:
        """From here on the product of time and a power of the arena counts."""
        self.product = True
        self.least, self.picks = min((self.score(trial, trial.bytes), picks) for picks, trial in self.tried.items())

    def better(self, picks: Picks) -> bool:
        """Is this plan better than all before? Then it is the best so far. Its arena's size is worked out only where
        its peak, which is no larger, does not tell."""
        if picks in self.tried or not self.left:
            return False
        self.left -= 1
        trial = self.tried[picks] = self.plans.trial(picks)
        if self.score(trial, trial.peak) >= self.least or self.score(trial, trial.bytes) >= self.least:
            return False
        self.least, self.picks = self.score(trial, trial.bytes), picks
        return True

    def score(self, trial: Trial, nbytes: int) -> Score:
        over = nbytes**self.worth * trial.time if self.product else max(0, nbytes - self.enough)
        return over, trial.time, nbytes

    def smaller(self) -> Iterator[Picks]:
        """Plans that may need less: the frugal kernels for all calls at the peak, for one of them, for all calls."""
        here = self.tried[self.picks].at_peak
        if self.worth:
            yield self.changed(here, tuple(map(min, (pick + 1 for pick in self.picks), self.last)))
        yield self.changed(here, self.last)
        if len(here) > 1:
            for number in here:
                yield self.changed([number], self.last)
        yield self.last

    def faster(self) -> None:
        """Gives calls faster kernels back: the fastest, then the next; to all at once, and to half of them where that
        fails."""
        for least in (True, False):
            waiting = [[n for n, pick in enumerate(self.picks) if pick]]
            while waiting:
                numbers, goal = waiting.pop(0), tuple(0 if least else max(0, pick - 1) for pick in self.picks)
                if not self.better(self.changed(numbers, goal)) and len(numbers) > 1:
                    waiting += [numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]]

    def changed(self, numbers: Sequence[int], goal: Picks) -> Picks:
        return tuple(goal[n] if n in numbers else pick for n, pick in enumerate(self.picks))
