"""Random nodes of every operator that the fuzzer draws, and what their gradients come to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mccompile.base.errors import MccError, UnsupportedModel
from mccompile.judge.rules import NoWitness
from tests.fuzz.evaluate import one_node
from tests.judge.nodes import Case, cases

from .compare import compared


@dataclass(frozen=True)
class Outcome:
    title: str
    word: str  # right, wrong, refused, bends (nothing but kinks), unjudged, integers
    detail: str = ""
    checks: int = 0


def outcomes(seed: int, only: str = "") -> Iterator[tuple[Case, Outcome]]:
    chance = np.random.default_rng(seed)
    for case in cases(seed, only):
        yield case, outcome(case, chance)


def outcome(case: Case, chance: np.random.Generator) -> Outcome:
    if not any(array.dtype.kind == "f" or array.dtype.name == "bfloat16" for array in case.feeds.values()):
        return Outcome(case.title, "integers")
    wide = {name: _shaken(_as(array, np.float64), chance) for name, array in case.feeds.items()}
    narrow = {name: _as(array, np.float32) for name, array in wide.items()}
    found = Outcome(case.title, "unjudged")
    for feeds in (wide, narrow):
        model = one_node(case.node, list(feeds), feeds, case.opset)
        try:
            made = compared(model, feeds, chance)
        except UnsupportedModel as refused:
            if any(problem.what == "no gradient" for problem in refused.problems):
                return Outcome(case.title, "refused", refused.problems[0].why)
            found = Outcome(case.title, "unjudged", str(refused))
            continue
        except (MccError, NoWitness) as why:
            found = Outcome(case.title, "unjudged", str(why))
            continue
        if made.wrong:
            return Outcome(case.title, "wrong", "; ".join(made.wrong[:3]))
        return Outcome(case.title, "right" if made.checked else "bends", checks=made.checked)
    return found


def _as(array: np.ndarray, type: type[np.floating]) -> np.ndarray:
    return array.astype(type) if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else array


def _shaken(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Without ties and other places where functions bend; single numbers are attributes in disguise."""
    return array + 1e-3 * chance.normal(size=array.shape) if array.dtype == np.float64 and array.size > 1 else array
