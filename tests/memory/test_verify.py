from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from mccompile.memory.interval import Block, Part, Placement, placement_of
from mccompile.memory.verify import _disjoint_parts, verify

A = Block("a", (Part(0, 2, 0, 32),))
B = Block("b", (Part(1, 3, 0, 32),))


def test_a_right_placement_passes() -> None:
    assert verify([A, B], Placement((0, 32), 64)) == []


def test_an_overlap_names_both_blocks_the_bytes_and_the_time() -> None:
    assert verify([A, B], Placement((0, 16), 48)) == ["a and b share the bytes [16, 32) at time 1"]


def test_bytes_may_be_shared_at_different_times() -> None:
    late = Block("late", (Part(2, 3, 0, 32),))
    assert verify([A, late], Placement((0, 0), 32)) == []


def test_an_address_off_its_alignment_is_found() -> None:
    assert verify([A], Placement((8,), 40)) == ["a lies at 8, which is not a multiple of 16"]


def test_a_moved_fixed_block_is_found() -> None:
    assert verify([Block("f", A.parts, 16, 16)], Placement((0,), 32)) == ["f lies at 0 but is fixed at 16"]


def test_a_wrong_size_is_found() -> None:
    assert verify([A], Placement((0,), 16)) == ["the size is said to be 16, but the highest end is 32"]


def test_missing_and_negative_offsets_are_found() -> None:
    assert verify([A, B], Placement((0,), 32)) == ["2 blocks but 1 offsets"]
    assert verify([A], Placement((-16,), 16)) == ["a lies at the negative address -16"]


def test_agrees_with_a_byte_by_byte_check(make_blocks: Callable[..., list[Block]]) -> None:
    dice = random.Random(3)
    verdicts = set()
    for _ in range(600):
        blocks = make_blocks(dice, dice.randint(2, 4))
        offsets = [dice.randrange(40) for _ in blocks]
        used = [
            {(t, o + b) for p in block.parts for t in range(p.start, p.end) for b in range(p.low, p.high)}
            for block, o in zip(blocks, offsets, strict=True)
        ]
        disjoint = not any(one & other for one, other in itertools.combinations(used, 2))
        assert (verify(blocks, placement_of(blocks, offsets)) == []) == disjoint
        verdicts.add(disjoint)
    assert verdicts == {True, False}


def test_many_parts_are_cut_into_no_more_pieces_than_there_are() -> None:
    """As the operands of a large concat are: each has bytes of its own, the whole is read in the end."""
    parts = [Part(at, 301, 16 * at, 16 * at + 16) for at in range(300)]
    pieces = _disjoint_parts(Block("whole", (*parts, Part(300, 302, 0, 16 * 300))))
    assert sorted(pieces) == [(at, 302, 16 * at, 16 * at + 16) for at in range(300)]
