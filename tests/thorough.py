"""Which tests `make test` leaves out: those that go through all cases of a kind where a few show the same, that draw
many networks, or that take long for what only one change in many can break. `make test-more` runs them; CI runs both.

Invariant: each feature has a test that is not marked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(count: int, names: str | tuple[str, ...], cases: Iterable[Any], **more: Any) -> pytest.MarkDecorator:
    """`pytest.mark.parametrize`, where `make test` tries so many of the cases, spread evenly."""
    every = list(cases)
    kept = {number * len(every) // count for number in range(count)}
    several = isinstance(names, tuple)
    marked = [case if number in kept else _marked(case, several) for number, case in enumerate(every)]
    return pytest.mark.parametrize(names, marked, **more)


def _marked(case: Any, several: bool) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.thorough])
    return pytest.param(*(case if several else (case,)), marks=pytest.mark.thorough)
