"""Every package says what comes in, what goes out, and which file to open first; the design is told in short
paragraphs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
PACKAGES = sorted((TOP / "mccompile").rglob("__init__.py"))
MOST_LINES = 15
MOST_WORDS = 120  # of a paragraph


@pytest.mark.parametrize("file", PACKAGES, ids=lambda file: file.parent.relative_to(TOP).as_posix())
def test_a_package_has_a_signpost(file: Path) -> None:
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    found = re.search(r"^In: .+\.\nOut: .+\.\nFirst: (.+)\.$", said, re.MULTILINE)
    assert found and len(said.splitlines()) <= MOST_LINES
    named = re.findall(r"`([\w/]+(?:\.py|/))`", found[1])
    assert named and all((file.parent / name).exists() for name in named)


def test_paragraphs_of_the_design_are_short() -> None:
    paragraphs = (TOP / "DESIGN.md").read_text(encoding="utf-8").split("\n\n")
    prose = (each.split() for each in paragraphs if not each.startswith(("|", "```")))
    assert not [" ".join(words[:9]) for words in prose if len(words) > MOST_WORDS]
