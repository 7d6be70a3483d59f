"""Which of two equivalent programs leads to the better plan where memory is preferred, judged with the first kernels
and with those that need least memory."""

from __future__ import annotations

from ....program.ir import Program
from ...api import Context
from .choose_kernels import Score, Search
from .trial_plans import TrialPlans


def is_better(program: Program, other: Program, context: Context) -> bool:
    return _score(program, context) < _score(other, context)


def _score(program: Program, context: Context) -> Score:
    plans = TrialPlans(program, context)
    search = Search(plans)
    search.product = bool(search.worth)
    trials = [plans.trial(picks) for picks in {search.picks, search.last}]
    return min(search.score(trial, trial.bytes) for trial in trials)
