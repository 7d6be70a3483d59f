"""Taps of windows inside the image are worked out only where a window may hang over."""

from __future__ import annotations

import pytest

from mccompile.base.marked import plain
from mccompile.codegen.windows import Axis, Sliding


def axis(size: int, pad: int, stride: int = 1, dilation: int = 1) -> Axis:
    """Three taps, and one row of padding behind the image if there is one before it."""
    out = (size + 2 * pad - 2 * dilation - 1) // stride + 1
    return Sliding(size, out, 3, stride, dilation, pad, 1, 1)


def inside(made: Axis, position: int) -> tuple[int, int]:
    """The first tap inside and the end of them, as C computes them: with a division that rounds towards zero."""
    at = position * made.stride - made.pad
    found = []
    for text in (made.first_tap("at"), made.end_tap("at")):
        choice, _, other = plain(text).partition(" : ")
        test, question, value = choice.partition(" ? ")
        chosen = (value if eval(test, {"at": at}) else other) if question else test
        found.append(int(eval(chosen, {"at": at})))
    return found[0], found[1]


MADE = [axis(7, 1), axis(8, 1, stride=2), axis(9, 0), axis(9, 2, 1, 2), axis(8, 1, 3)]


@pytest.mark.parametrize("made", MADE)
def test_they_are_those_inside(made: Axis) -> None:
    for position in range(made.out):
        places = [position * made.stride - made.pad + tap * made.dilation for tap in range(made.kernel)]
        taps = [tap for tap, place in enumerate(places) if 0 <= place < made.size]
        assert inside(made, position) == (taps[0], taps[-1] + 1), position


def test_a_side_where_no_window_hangs_over_has_a_number() -> None:
    assert axis(9, 0).first_tap("at") == "0"
    assert plain(axis(8, 1, stride=2).end_tap("at")) == "3"
    assert plain(axis(7, 1, stride=2).end_tap("at")) != "3"
