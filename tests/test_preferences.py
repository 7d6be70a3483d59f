"""Which preferences the table of them calls dominated."""

from benchmarks.preferences import Figures, dominated
from mccompile.targets.api import Prefer

LEADING = {
    Prefer.RAM: Figures(900, 100, 700),
    Prefer.TIME: Figures(300, 400, 900),
    Prefer.FLASH: Figures(800, 300, 500),
    Prefer.BALANCED: Figures(500, 150, 700),
}


def test_each_that_leads_in_what_it_is_meant_for_is_not_dominated() -> None:
    assert not dominated(LEADING)


def test_the_one_that_is_clearly_better_is_named() -> None:
    assert dominated(LEADING | {Prefer.BALANCED: Figures(290, 99, 480)}) == {
        Prefer.TIME: Prefer.BALANCED,
        Prefer.FLASH: Prefer.BALANCED,
    }
