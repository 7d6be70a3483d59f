"""Three commands lead to scores of an emulated board; that they work from nothing is for `tests.docs.first_boards`."""

from __future__ import annotations

import pytest

from mccompile.targets.boards.catalogue import find
from tests.docs.first_boards import BOARDS, MODEL, road
from tests.docs.pages import TOP


@pytest.mark.parametrize("maker", BOARDS)
def test_three_commands_lead_to_scores(maker: str) -> None:
    deploy, configure, emulate = road(maker).commands
    assert f"mccompile deploy {MODEL} --board {find(BOARDS[maker]).key} --for cmake --main loop -o {maker}" == deploy
    assert configure == f"cmake -S {maker} -B {maker}/build"
    assert emulate == f"cmake --build {maker}/build --target emulate"
    assert (TOP / MODEL).is_file()
