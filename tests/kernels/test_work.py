"""Pieces of work: all units, each once, about evenly; loops in C run over the units of a piece and no others."""

from __future__ import annotations

import pytest

from mccompile.base.marked import plain
from mccompile.kernels.work import Units, phases, pieces, slowest


@pytest.mark.parametrize("units", [(1,), (1, 1, 1), (4, 4, 4, 1), (1,) * 7, (9, 1, 1, 1), (1, 1, 9), (2,) * 64])
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_every_unit_is_in_one_piece(units: tuple[int, ...], workers: int) -> None:
    found = pieces(units, workers)
    assert [unit for begin, end in found for unit in range(begin, end)] == list(range(len(units)))
    assert len(found) <= workers and all(begin < end for begin, end in found)


def test_pieces_are_as_even_as_units_allow() -> None:
    assert pieces((1,) * 7, 2) in (((0, 3), (3, 7)), ((0, 4), (4, 7)))
    assert pieces((4, 4, 4, 1), 2) == ((0, 2), (2, 4))
    assert slowest((1,) * 8, 2) == 1.0 and slowest((1,), 2) == 2.0


def test_what_comes_before_a_barrier_is_shared_for_itself() -> None:
    first, second = phases((1,) * 3 + (6, 6), 2, 3)
    assert first in (((0, 1), (1, 3)), ((0, 2), (2, 3))) and second == ((3, 4), (4, 5))
    assert phases((1,) * 4, 2) == (((0, 2), (2, 4)),)
    assert slowest((1,) * 3 + (6, 6), 2, 3) == 2 * (2 + 6) / 15


def test_tiles_are_counted_through_all_loops() -> None:
    units = Units()
    first, rest = plain(units.loop("p", 0, 4, 3, 4)), plain(units.loop("p", 12, 2, 1, 2))
    assert units.sizes == [4, 4, 4, 2]
    assert "p_unit < end && p_unit < 3" in first and "p = p_unit * 4" in first
    assert rest == "if (begin <= 3 && 3 < end) {\nconst mcc_index p = 12;"
