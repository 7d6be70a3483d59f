from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mccompile.base.errors import InternalError
from mccompile.memory.best_fit import best_fit
from mccompile.memory.greedy_by_size import greedy_by_size
from mccompile.memory.interval import Block, Part, lower_bound
from mccompile.memory.push_down import push_down, push_down_single, stretched_order
from mccompile.memory.verify import verify
from tests.counting import calls

BlockMaker = Callable[..., list[Block]]


def buffers(*spans: tuple[int, int, int]) -> list[Block]:
    return [Block(f"b{i}", (Part(start, end, 0, size),), 1) for i, (start, end, size) in enumerate(spans)]


def fits(blocks: list[Block], height: int) -> bool:
    """Whether any placement fits under a height: tries every address of every block."""
    order = sorted(range(len(blocks)), key=lambda i: -blocks[i].size * (blocks[i].end - blocks[i].start))
    busy: set[tuple[int, int]] = set()

    def place(k: int) -> bool:
        if k == len(order):
            return True
        block = blocks[order[k]]
        cells = {(t, b) for p in block.parts for t in range(p.start, p.end) for b in range(p.low, p.high)}
        for at in range(0, height - block.size + 1, block.align):
            moved = {(t, b + at) for t, b in cells}
            if not moved & busy:
                busy.update(moved)
                if place(k + 1):
                    return True
                busy.difference_update(moved)
        return False

    return place(0)


def test_stretching_keeps_who_lies_above_whom() -> None:
    # c does not fit into the hole that a left, so the hole is stretched and b is lifted.
    assert stretched_order(buffers((0, 1, 8), (0, 3, 4), (1, 3, 12))) == [0, 2, 1]


def test_single_start_lets_blocks_sink_in_that_order() -> None:
    assert push_down_single(buffers((0, 1, 8), (0, 3, 4), (1, 3, 12))).offsets == (0, 12, 0)


def test_many_starts_meet_the_bound_where_each_plain_planner_misses_it(make_blocks: BlockMaker) -> None:
    dice = random.Random(11)
    missed = 0
    for _ in range(30):
        blocks = make_blocks(dice, 25, moments=25, bytes_=60, several_parts=0)
        bound = lower_bound(blocks)
        missed += min(p(blocks).size for p in (push_down_single, best_fit, greedy_by_size)) > bound
        assert push_down(blocks).size == bound
    assert missed > 0


def test_small_sets_reach_the_exhaustive_optimum(make_blocks: BlockMaker) -> None:
    dice = random.Random(4)
    sets = 300
    missed = above = 0
    for _ in range(sets):
        several_parts = dice.choice((0.0, 0.3, 0.6))
        blocks = make_blocks(dice, dice.randint(2, 7), bytes_=6, aligns=(1, 2), several_parts=several_parts)
        size = push_down(blocks).size
        if size > lower_bound(blocks):
            above += 1
            missed += fits(blocks, size - 1)
    assert above > 30
    assert missed <= sets // 100


def test_never_larger_than_the_plain_planners(make_blocks: BlockMaker) -> None:
    dice = random.Random(5)
    for _ in range(6):
        blocks = make_blocks(dice, 16, aligns=(1, 4), fixed=True)
        assert push_down(blocks).size <= min(p(blocks).size for p in (push_down_single, best_fit, greedy_by_size))


def test_a_hole_below_a_fixed_block_is_used() -> None:
    blocks = [Block("fixed", (Part(0, 2, 0, 16),), 16, 32), Block("low", (Part(0, 2, 0, 32),))]
    assert push_down(blocks).offsets == (32, 0)


def test_fixed_blocks_that_overlap_are_refused() -> None:
    with pytest.raises(InternalError, match="one and two share the bytes"):
        push_down([Block("one", (Part(0, 2, 0, 32),), 16, 0), Block("two", (Part(1, 2, 0, 32),), 16, 16)])


def test_blocks_of_several_parts_interlock() -> None:
    # A staircase that goes down and one that goes down beside it: together no taller than two steps and one.
    one = Block("one", (Part(0, 1, 8, 16), Part(1, 2, 0, 8)), 1)
    two = Block("two", (Part(0, 1, 8, 16), Part(1, 2, 0, 8)), 1)
    assert push_down([one, two]).size == 24


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import random\n"
        "from conftest import random_blocks\n"
        "from mccompile.memory.push_down import push_down\n"
        "print(push_down(random_blocks(random.Random(8), 40, moments=12, aligns=(1, 2, 4))))\n"
    )
    here = Path(__file__).parent
    path = os.pathsep.join((str(here), str(here.parents[1])))
    plans = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        plans.add(subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, check=True).stdout)
    assert len(plans) == 1


@pytest.mark.parametrize(("life", "count"), [(6, 400), (2000, 250)])
def test_twice_the_blocks_are_at_most_twice_the_work(make_blocks: BlockMaker, life: int, count: int) -> None:
    few, many = (
        make_blocks(random.Random(6), n, moments=n, life=life, bytes_=5000, aligns=(16,), several_parts=0.1)
        for n in (count, 2 * count)
    )
    assert calls(lambda: push_down(many)) < 2 * calls(lambda: push_down(few))
    assert verify(many, push_down(many)) == []


@pytest.mark.parametrize("seed", [48, 97, 131])
def test_blocks_that_are_always_alive_part_no_room(seed: int) -> None:
    """Among the others they do, and the bound is missed."""
    chance = random.Random(seed)
    blocks = [Block(f"w{n}", (Part(0, 60, 0, 16 * chance.randint(1, 40)),)) for n in range(chance.randint(3, 12))]
    for n in range(60):
        start = chance.randint(0, 56)
        part = Part(start, min(60, start + chance.randint(1, 12)), 0, 16 * chance.choice([2, 4, 8, 40, 60, 64]))
        blocks.append(Block(f"t{n}", (part,)))
    chance.shuffle(blocks)
    assert push_down(blocks).size == lower_bound(blocks)
