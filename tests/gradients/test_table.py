"""The table of docs/learning_operators.md is what its tool writes now."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.fuzz.operators.registry import entries
from tests.gradients.__main__ import COUNT, SEED, Words, _of_operator, page

TABLE = (Path(__file__).resolve().parents[2] / "docs" / "learning_operators.md").read_text(encoding="utf-8")
QUICK = ("ConvTranspose", "GRU", "Gemm", "LayerNormalization", "LogSoftmax", "Tanh")


def rows(text: str) -> dict[str, str]:
    return {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines() if line.startswith("| ")}


@pytest.mark.parametrize("title", QUICK)
def test_rows_are_those_of_the_tool(title: str) -> None:
    words: Words = defaultdict(Counter)
    _of_operator(title, argparse.Namespace(seed=SEED, count=COUNT, seconds=60), words)
    made = page(words, SEED, COUNT)
    assert rows(TABLE)[title] == rows(made)[title]
    assert TABLE.partition("| operator")[0] == made.partition("| operator")[0]


def test_nothing_in_it_is_wrong_or_unknown() -> None:
    found = rows(TABLE)
    del found["operator"]
    assert found.keys() <= set(entries())
    assert all(row.split(" | ")[3] == "0" for row in found.values())


def test_every_row_but_those_of_random_numbers_was_compared() -> None:
    found = rows(TABLE)
    del found["operator"]
    empty = {title for title, row in found.items() if not any(char in "123456789" for char in row.partition(" | ")[2])}
    assert empty == {"Bernoulli", "RandomNormalLike", "RandomUniformLike"}
