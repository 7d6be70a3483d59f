"""Views begin where the counters of loops say, whether by multiples or by what is chosen with them."""

from __future__ import annotations

import pytest

from mccompile.base.dims import bounds, parse, symbol
from mccompile.program.offsets import offsets_along

LAST = {"i": 4, "j": 2}
TABLE = {"i": symbol("i", 0, 4), "j": symbol("j", 0, 2), "n": symbol("n", 1, 7)}


@pytest.mark.parametrize(
    ("text", "first", "axes"),
    [
        ("3", 3, []),
        ("3 + 2*i + 5*j", 3, [(5, 2), (3, 5)]),
        ("4 - i", 4, [(5, -1)]),
        ("2*n + i", 14, [(5, 1)]),
        ("((i + 2) % (4))", 0, [(4, 1)]),
        ("6*((i) // (2)) + 1", 1, [(3, 6)]),
        ("8*((i) % (2)) + 4*j", 0, [(5, 4)]),
    ],
)
def test_offsets_move_along_axes(text: str, first: int, axes: list[tuple[int, int]]) -> None:
    assert offsets_along(parse(text, TABLE), LAST) == (first, axes)


def test_many_trips_count_as_all_in_between() -> None:
    counter = symbol("k", 0, 9999)
    offset = parse("3*((k) % (5))", {"k": counter})
    low, high = bounds(offset)
    assert offsets_along(offset, {"k": 9999}) == (low, [(high - low + 1, 1)])
