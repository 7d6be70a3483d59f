"""Cuts into chains: the least peak first, then the least of what chains add up to."""

from __future__ import annotations

from mccompile.passes.rows.row_cuts import row_cut

COSTS = {(0, 0): 9, (1, 1): 9, (2, 2): 5, (0, 1): 6, (0, 2): 7, (1, 2): 6}
CALLS = {(first, last): last - first for first, last in COSTS}


def test_without_a_limit_the_peak_is_the_least() -> None:
    assert row_cut(3, COSTS, CALLS, None) == (6, [(0, 1), (2, 2)])


def test_below_a_limit_what_chains_add_up_to_is_the_least() -> None:
    assert row_cut(3, COSTS, CALLS, 9)[1] == [(0, 0), (1, 1), (2, 2)]
    assert row_cut(3, COSTS, CALLS, 7)[1] == [(0, 1), (2, 2)]
    assert row_cut(3, COSTS, CALLS | {(0, 1): 4}, 7)[1] == [(0, 2)]
    assert row_cut(3, COSTS, CALLS | {(0, 1): 4}, 6)[1] == [(0, 1), (2, 2)]
