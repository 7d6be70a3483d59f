"""Stories see what goes wrong: a short one of each kind, told by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mccompile.emit import output
from tests.stories.models import FAMILIES, Network
from tests.stories.story import Story


@pytest.fixture
def story() -> Iterator[Story]:
    made = Story()
    yield made
    made.teardown()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_short_story_ends_well(family: str, story: Story) -> None:
    story.begins(Network(family, 0, 1))
    story.compiles((), "")
    story.writes_notes()
    story.saves(Network(family, 0, 2))
    story.brings_weights()
    story.runs(1)
    story.saves(Network(family, 1, 2))
    story.brings_weights()
    story.notes_are_there()
    assert story.code == Network(family, 0, 2)


def test_another_interface_under_the_same_code_is_seen(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "lasting", lambda seen: {})
    story.begins(Network("moved", 0, 0))
    story.compiles((), "")
    story.saves(Network("moved", 1, 0))
    with pytest.raises(AssertionError, match="variant=1"):
        story.brings_weights()


def test_a_wrong_result_is_seen(story: Story) -> None:
    story.begins(Network("dense", 0, 1))
    story.compiles((), "")
    story.code = Network("dense", 0, 2)
    with pytest.raises(AssertionError):
        story.runs(0)


def test_a_lost_file_of_the_user_is_seen(story: Story) -> None:
    story.begins(Network("dense", 0, 1))
    story.compiles((), "")
    story.writes_notes()
    story.mine.write_text("another one's")
    with pytest.raises(AssertionError):
        story.notes_are_there()
