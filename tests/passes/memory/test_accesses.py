"""What is known of accesses is what going through all of them would tell, and does not cost as much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mccompile.passes.memory.accesses import Access, Accesses

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(-8, 40), st.integers(0, 12)), max_size=12)


def known(rows: list[tuple[int, int, int]]) -> Accesses:
    accesses = Accesses()
    for time, low, bytes in rows:
        accesses.add(Access(time, low, low + bytes))
    return accesses


@given(ROWS, ROWS, st.integers(-8, 8), st.integers(-1, 9), st.integers(-20, 60), st.integers(1, 30))
def test_bytes_are_used_later_where_an_access_says_so(
    own: list[tuple[int, int, int]],
    other: list[tuple[int, int, int]],
    shift: int,
    now: int,
    low: int,
    bytes: int,
) -> None:
    accesses = known(own)
    accesses.take(known(other), shift)
    rows = [*own, *((time, start + shift, size) for time, start, size in other)]
    later = any(time > now and start < low + bytes and low < start + size for time, start, size in rows if size)
    assert accesses.used_after(now, low, low + bytes) == later
    assert (accesses.first >= now) == all(time >= now for time, _, _ in rows)
    assert (accesses.last <= now) == all(time <= now for time, _, _ in rows)


def test_what_is_used_for_the_last_time_together_is_one_piece() -> None:
    accesses = known([(0, 0, 800), *((time + 1, 8 * time, 8) for time in range(100))])
    assert len(accesses._edges) == 102
    accesses.add(Access(101, 0, 800))
    assert len(accesses._edges) == 3
