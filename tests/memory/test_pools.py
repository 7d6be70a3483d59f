"""Blocks shared out among memories: limits are kept, nothing is lost, heat decides."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from mccompile.memory.interval import Block, Part, Placement, placement_of
from mccompile.memory.pools import share_out
from mccompile.memory.push_down import push_down
from mccompile.memory.verify import verify


def block(name: str, bytes: int, start: int = 0, end: int = 10) -> Block:
    return Block(name, (Part(start, end, 0, bytes),), 1)


def test_random_blocks_stay_within_limits_and_never_overlap(make_blocks: Callable[..., list[Block]]) -> None:
    dice = random.Random(3)
    for _ in range(60):
        blocks = make_blocks(dice, dice.randint(1, 12), aligns=(1, 4))
        heat = [dice.randrange(100) for _ in blocks]
        limits = [dice.randrange(30), dice.randrange(60), None]
        shares = share_out(blocks, heat, limits, push_down)
        assert sorted(i for share in shares for i in share.members) == list(range(len(blocks)))
        for share, limit in zip(shares, limits, strict=True):
            assert verify([blocks[i] for i in share.members], share.placement) == []
            assert limit is None or share.placement.size <= limit
        assert shares == share_out(blocks, heat, limits, push_down)


def test_the_hottest_byte_for_byte_is_in_the_fast_memory() -> None:
    blocks = [block("large", 100), block("cold", 10), block("hot", 10)]
    shares = share_out(blocks, [500, 20, 90], [15, None], push_down)
    assert [share.members for share in shares] == [(2,), (0, 1)]


def test_memory_of_the_dead_is_used_again_in_the_fast_memory() -> None:
    blocks = [block("first", 10, 0, 2), block("second", 10, 2, 4), block("third", 10, 3, 5)]
    shares = share_out(blocks, [30, 30, 20], [10, None], push_down)
    assert [share.members for share in shares] == [(0, 1), (2,)]


def test_what_only_one_memory_can_hold_goes_there_however_cold() -> None:
    blocks = [block("large", 100), block("hot", 10)]
    shares = share_out(blocks, [1, 1000], [105, 20], push_down)
    assert [share.members for share in shares] == [(0,), (1,)]


def test_heat_gives_way_where_the_last_memory_would_overflow() -> None:
    blocks = [block("hot", 10), block("a", 60), block("b", 60)]
    shares = share_out(blocks, [1000, 60, 60], [60, 70], push_down)
    assert [share.placement.size for share in shares] == [60, 70]


def test_the_last_memory_shows_that_nothing_fits() -> None:
    shares = share_out([block("a", 60), block("b", 60)], [1, 1], [50, 70], push_down)
    assert shares[-1].placement.size == 120


def test_a_planner_is_asked_a_few_times_however_many_blocks_go_back() -> None:
    """All but 100 of 400 blocks that are never alive together, by a planner that does not see that."""
    blocks = [block(str(n), 10, n, n + 1) for n in range(400)]
    asked = list[int]()

    def one_above_the_other(blocks: Sequence[Block]) -> Placement:
        asked.append(len(blocks))
        return placement_of(blocks, [10 * n for n in range(len(blocks))])

    shares = share_out(blocks, [1] * 400, [1005, None], one_above_the_other)
    assert [len(share.members) for share in shares] == [100, 300]
    assert len(asked) < 24
