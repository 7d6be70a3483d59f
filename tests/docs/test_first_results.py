"""README leads to a first result in few commands; that they work from nothing is for `tests.docs.first_results`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.first_results import MOST, Road, followed, roads


def test_each_road_is_short_and_begins_with_nothing() -> None:
    found = list(roads())
    assert [road.about.split()[1].strip(",:") for road in found] == ["a", "a", "a", "CI"]
    assert all(len(road.commands) <= MOST and road.commands[0] == "pip install ." for road in found)


def test_programs_that_are_not_there_are_named() -> None:
    assert Road("on a board: no-such-gcc make; more", ()).absent == ["no-such-gcc"]
    assert Road("in CI: results and RAM stay", ()).absent == []


def test_a_road_that_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert followed(Road("here", ("cd /", "echo $PWD")), tmp_path, {})
    assert capsys.readouterr().out.strip() == str(tmp_path)
    assert not followed(Road("fails", ("true", "echo why && false", "true")), tmp_path, {"PATH": "/usr/bin:/bin"})
    assert "$ echo why && false\nwhy\nexit code 1" in capsys.readouterr().out
