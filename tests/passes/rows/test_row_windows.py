"""Windows over tables: every row that is read lies in them, and few others do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mccompile.passes.rows.row_play import Window
from mccompile.passes.rows.row_windows import _over


@pytest.mark.parametrize(("before", "after"), [(7, 14), (7, 17), (20, 13), (9, 3), (1, 5), (5, 1), (16, 16)])
@pytest.mark.parametrize("taps", [1, 2, 4])
def test_a_window_holds_what_a_table_names(before: int, after: int, taps: int) -> None:
    places = np.floor((np.arange(after) + 0.5) * before / after - 0.5).astype(int)
    table = np.clip(places[:, None] + np.arange(taps) - taps // 2 + 1, 0, before - 1)
    window = _over(table, Fraction(before, after))
    for row, named in enumerate(table):
        assert window.low(row) <= named.min() and named.max() < window.end(row + 1, before)
    assert window.size <= taps + 1


@pytest.mark.parametrize("window", [Window(0, 1, 1, 3), Window(0, 2, 0, 2), Window(0, 1, 1, 2, 2), Window(0, 1, 0, 1)])
@pytest.mark.parametrize("together", [2, 3])
def test_rows_that_are_made_together_hold_those_of_a_window(window: Window, together: int) -> None:
    of_all = window.of(together)
    for row in range(24):
        assert of_all.low(row) * together <= window.low(row)
        assert of_all.end(row + 1, 100) * together >= window.end(row + 1, 100 * together)


def test_a_pull_asks_for_what_a_window_needs() -> None:
    for window in (Window(0, 2, 3, 5, 3), Window(0, 1, 1, 2, 2), Window(0, 3, 0, 4)):
        scale, shift, parts = window.pull
        assert [(end * scale + shift) // parts for end in range(5, 20)] == [window.end(end, 99) for end in range(5, 20)]
