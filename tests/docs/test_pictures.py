"""The pictures of README and of the site are those that the code draws now."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from xml.etree import ElementTree

import pytest

from mccompile import compile
from tests.docs.pages import TOP, script

IMAGES = TOP / "docs" / "images"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return script("pictures")


def test_the_memory_map_is_that_of_the_example(pictures: ModuleType) -> None:
    drawn = (IMAGES / "memory_map.svg").read_text(encoding="utf-8")
    assert drawn == pictures.memory_map(), "run: python docs/pictures.py"
    ElementTree.fromstring(drawn)


def test_the_recording_shows_the_figures_of_the_example(pictures: ModuleType) -> None:
    root = ElementTree.parse(IMAGES / "demo.svg").getroot()
    text = "\n".join("".join(group.itertext()) for group in root.iter() if group.get("class", "").startswith("l"))
    report = compile(pictures.MODEL).report
    for figure in ("arena_bytes", "arena_naive_bytes", "weights_bytes", "macs"):
        assert f"{report[figure]:,}" in text, f"{figure} is another one now; run: python docs/pictures.py"
    assert "$ make demo" in text and "agree on every picture" in text


def test_lines_are_recorded_with_their_colours_and_moments(pictures: ModuleType) -> None:
    code = "print('\\x1b[1mA <b>\\x1b[0m'); print('\\x1b[48;5;240m  \\x1b[0m c')"
    lines = pictures.record([sys.executable, "-c", code])
    assert [line for _, line in lines] == ["\x1b[1mA <b>\x1b[0m", "\x1b[48;5;240m  \x1b[0m c"]
    drawn = pictures.recording(lines, "two lines")
    ElementTree.fromstring(drawn)
    assert re.search(r'class="bold">A &lt;b&gt;</text>', drawn)
    assert 'fill="rgb(88,88,88)"' in drawn
    assert drawn.count("@keyframes l") == 2


def test_long_lines_are_broken_at_the_end_of_the_terminal(pictures: ModuleType) -> None:
    assert [len(line) for _, line in pictures.folded([(0.0, "x" * 150), (1.0, "")])] == [106, 44, 0]


def test_a_command_that_fails_is_no_recording(pictures: ModuleType) -> None:
    with pytest.raises(SystemExit):
        pictures.record([sys.executable, "-c", "raise SystemExit(3)"])
