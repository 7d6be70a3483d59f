"""Automata find what Python's `re` finds, where both understand an expression."""

from __future__ import annotations

import random
import re

import pytest

from mccompile.tokenizer.automaton import automaton
from mccompile.tokenizer.regex import NotUnderstood

_ALIKE = [
    r"a|ab|abc",
    r"abc|ab|a",
    r"[^\r\n]?[a-c]+|\d{1,3}|\s+(?!\S)|\s+",
    r"(?:ab|a)(?:c|bcd)?|b{2}|c{2,}",
    r"a*b|a+",
    r"[a-]+(?=b)|[b-c]",
    r"(?:a|b)*c|\.",
    r"(?i:'s|b) |[^b]",
    r"a*+a|b++c|b|c?+cd|c",
    r"[a-c]++c|ab?+b|\s++$|b+$|-",
]


_REFUSED = ["a*", "a+?", "(?:a)++", "a++?", "(a)", "^a", "(?<=a)b", r"\bA", "[[a]b]", "a{,2}", "(?:a"]


@pytest.mark.parametrize("expression", _ALIKE)
def test_matches_are_those_of_re(expression: str) -> None:
    made, known, chance = automaton(expression), re.compile(expression, re.MULTILINE), random.Random(expression)
    for _ in range(2000):
        text = "".join(chance.choice("aabbcd-12 \n'sS.") for _ in range(chance.randint(1, 9)))
        for at in range(len(text)):
            found = known.match(text, at)
            assert made.match(text, at) == (found.end() if found else at), (text, at)


def test_a_repetition_is_repeated_as_oniguruma_does() -> None:
    made = automaton(r"\d{1,3}+|[a-b]{2}+")
    assert [made.match(text, 0) for text in ("12345a", "ababa", "b")] == [5, 4, 0]


def test_characters_have_the_categories_of_unicode_16() -> None:
    made = automaton(r"\p{Lu}|\p{Nd}{2}")
    assert [made.match(text, 0) for text in ("\u1c89", "\U00010d40\U0001e5f1", "\U000e0fff")] == [1, 2, 0]


@pytest.mark.parametrize("expression", _REFUSED)
def test_what_dialects_differ_in_is_refused(expression: str) -> None:
    with pytest.raises(NotUnderstood):
        automaton(expression)
