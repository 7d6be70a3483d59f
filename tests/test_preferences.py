"""Which preferences the table of them calls dominated, and that none that is recorded is."""

from benchmarks.preferences import Figures, dominated, recorded
from mccompile.targets.api import Prefer

LEADING = {
    Prefer.RAM: Figures(9000, 1000, 7000),
    Prefer.TIME: Figures(3000, 4000, 9000),
    Prefer.FLASH: Figures(8000, 3000, 5000),
    Prefer.BALANCED: Figures(5000, 1500, 7000),
}


def test_each_that_leads_in_what_it_is_meant_for_is_not_dominated() -> None:
    assert not dominated(LEADING)


def test_the_one_that_is_clearly_better_is_named() -> None:
    assert dominated(LEADING | {Prefer.BALANCED: Figures(2900, 990, 4800)}) == {
        Prefer.TIME: Prefer.BALANCED,
        Prefer.FLASH: Prefer.BALANCED,
    }


def test_no_recorded_preference_is_dominated() -> None:
    rows = recorded()
    assert len(rows) >= 40
    assert not {row: found for row, found in ((row, dominated(each)) for row, each in rows.items()) if found}


def test_a_few_bytes_are_no_lead() -> None:
    small = {Prefer.RAM: Figures(90, 10, 700), Prefer.TIME: Figures(30, 40, 900)}
    assert not dominated({**small, Prefer.FLASH: Figures(80, 30, 764)})
    assert dominated({**small, Prefer.FLASH: Figures(80, 30, 765)}) == {Prefer.FLASH: Prefer.RAM}
