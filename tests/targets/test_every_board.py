"""A keyword spotter on boards of all sizes and cores; `python -m tests.targets.every_board` has all of them."""

from __future__ import annotations

from mccompile.targets.boards.catalogue import boards
from tests.targets.every_board import KWS, outcome
from tests.thorough import some

SAMPLE = {
    "nucleo_f446re": "fits",
    "pico": "fits",
    "esp32_s3_devkitc_1": "fits",
    "esp32_c3_devkitm_1": "fits",
    "ek_ra8m1": "fits",
    "nucleo_f030r8": "does not fit",
    "uno": "does not fit",
}


@some(3, "board", SAMPLE)
def test_the_model_fits_or_it_is_said_by_how_much_it_does_not(board: str) -> None:
    said = outcome(KWS, boards()[board])
    assert said.startswith(SAMPLE[board]), said
    if SAMPLE[board] != "fits":
        assert "over the budget; " in said and "--" in said.partition("; ")[2], said
