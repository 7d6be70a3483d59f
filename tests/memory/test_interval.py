from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccompile.memory.interval import (
    Block,
    Part,
    Peak,
    _GrainRemainders,
    glue,
    lower_bound,
    naive_size,
    peak,
    placement_of,
    spans_of,
)


def buffer(name: str, start: int, end: int, size: int, align: int = 16, fixed: int | None = None) -> Block:
    return Block(name, (Part(start, end, 0, size),), align, fixed)


def test_peak_names_the_moment_and_the_blocks_that_are_live_then() -> None:
    blocks = [buffer("a", 0, 2, 64), buffer("b", 1, 3, 32), buffer("c", 2, 4, 16)]
    assert peak(blocks) == Peak(1, 96, ("a", "b"))


def test_blocks_that_only_touch_in_time_are_not_live_together() -> None:
    assert lower_bound([buffer("a", 0, 2, 64), buffer("b", 2, 4, 64)]) == 64


def test_parts_of_a_block_that_share_bytes_count_once() -> None:
    block = Block("a", (Part(0, 2, 0, 40), Part(1, 3, 24, 64)))
    assert peak([block]) == Peak(1, 64, ("a",))


def test_bound_counts_the_padding_that_alignment_forces() -> None:
    # Two of 20 bytes on multiples of 16: the lower one takes 32, only the upper one ends at 20.
    assert lower_bound([buffer("a", 0, 1, 20), buffer("b", 0, 1, 20)]) == 52


def test_bound_does_not_count_padding_that_another_block_can_fill() -> None:
    # b fits into the first half of a's first grain: 32 bytes do.
    blocks = [Block("a", (Part(0, 1, 8, 32), Part(2, 3, 0, 32))), buffer("b", 0, 1, 8)]
    assert lower_bound(blocks) == 32


def test_bound_of_a_tall_history_is_its_extent() -> None:
    assert lower_bound([Block("a", (Part(0, 1, 0, 16), Part(1, 2, 48, 64)))]) == 64


def test_bound_reaches_the_end_of_a_fixed_block() -> None:
    assert lower_bound([buffer("a", 0, 1, 16, fixed=160)]) == 176


def test_no_blocks_need_no_bytes() -> None:
    assert (lower_bound([]), naive_size([]), placement_of([], []).size) == (0, 0, 0)


def test_naive_size_aligns_each_block() -> None:
    assert naive_size([buffer("a", 0, 1, 20), buffer("b", 5, 6, 4)]) == 36


def test_glue_moves_the_lowest_byte_to_zero_and_says_how_far() -> None:
    block, shift = glue("a", [Part(0, 2, 0, 32), Part(1, 3, -16, 8)], fixed=32)
    assert (block.parts, shift, block.fixed) == ((Part(0, 2, 16, 48), Part(1, 3, 0, 24)), 16, 16)


@pytest.mark.parametrize("numbers", [(2, 2, 0, 4), (3, 2, 0, 4), (0, 1, 4, 0)])
def test_a_part_that_runs_backwards_is_refused(numbers: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="empty or runs backwards"):
        Part(*numbers)


def test_a_fixed_address_off_its_alignment_is_refused() -> None:
    with pytest.raises(ValueError, match="not a multiple of 16"):
        buffer("a", 0, 1, 4, fixed=8)


def test_a_block_that_does_not_start_at_byte_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="must be 0"):
        Block("a", (Part(0, 1, 4, 8),))


@given(st.lists(st.tuples(*(st.integers(0, high) for high in (9, 5, 60, 20))), min_size=1), st.sampled_from([1, 4, 16]))
def test_spans_count_the_bytes_that_parts_cover(rows: list[tuple[int, int, int, int]], grain: int) -> None:
    parts = [Part(start, start + time + 1, low, low + bytes) for start, time, low, bytes in rows]
    block, _ = glue("all", parts, 1)
    for span in spans_of(block, grain):
        for time in range(span.start, span.end):
            used = {byte for p in block.parts if p.start <= time < p.end for byte in range(p.low, p.high)}
            assert (span.bytes, span.grains) == (len(used), sum(byte % grain == 0 for byte in used))
            ends = [byte + 1 for byte in used if byte + 1 not in used]
            rests = [-end % grain for end in ends if set(range(end + -end % grain - grain, end)) <= used]
            assert span.rest == max(rests, default=0)


def test_the_work_for_many_parts_follows_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the operands of a large concat are: each has bytes of its own, the whole is read in the end."""
    asked = 0
    rest = _GrainRemainders._rest

    def counted(rests: _GrainRemainders, last: int) -> int:
        nonlocal asked
        asked += 1
        return rest(rests, last)

    monkeypatch.setattr(_GrainRemainders, "_rest", counted)
    counts = []
    for many in (100, 400):
        parts = [Part(at, many + 1, 20 * at, 20 * at + 20) for at in range(many)]
        asked = 0
        assert lower_bound([Block("whole", (*parts, Part(many, many + 2, 0, 20 * many)))]) == 20 * many
        counts.append(asked)
    assert counts[1] <= 4 * counts[0] + 20
