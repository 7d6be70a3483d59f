"""A sample of the spellings, one of every third family; `make exporters` judges all of them."""

from __future__ import annotations

from tests.thorough import some

from . import families  # noqa: F401
from .spelling import FAMILIES, problems


@some(18, "family", sorted(FAMILIES)[::3])
def test_a_spelling_is_compiled_like_the_canonical_one(family: str) -> None:
    spelling = FAMILIES[family][-1]
    assert not problems(spelling), f"{family}/{spelling.name}"
