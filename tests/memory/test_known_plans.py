"""The same blocks give the same plan, byte for byte, on every machine and in every version: what changes one of these
numbers changes memory, and should say why."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable

import pytest

from mccompile.memory import order
from mccompile.memory import push_down as planner
from mccompile.memory.centred import centred
from mccompile.memory.conflicts import FilteredConflicts, Parts
from mccompile.memory.interval import Block, lower_bound, naive_size
from mccompile.memory.pools import share_out
from mccompile.memory.push_down import push_down, push_down_single
from tests.memory.test_order import random_graph

BlockMaker = Callable[..., list[Block]]


def digest(values: Iterable[object]) -> int:
    text = repr(list(values))
    assert "np." not in text
    return zlib.crc32(text.encode())


def sets(make_blocks: BlockMaker) -> list[list[Block]]:
    dice = random.Random(21)
    return [make_blocks(dice, count, aligns=(1, 4), fixed=bool(count % 2)) for count in (5, 6, 7, 8, 9, 11, 13, 16, 20)]


def test_push_down(make_blocks: BlockMaker) -> None:
    assert digest(push_down(blocks).offsets for blocks in sets(make_blocks)) == 1035661972


def test_push_down_of_blocks_that_are_not_listed(make_blocks: BlockMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "conflicts_of", lambda blocks: FilteredConflicts(blocks, Parts(blocks)))
    monkeypatch.setattr(planner, "_pushed_down", planner._pushed_down.__wrapped__)
    monkeypatch.setattr(planner, "START_WORK", 400)
    monkeypatch.setattr(planner, "REPAIR_WORK", 20_000)
    assert digest(push_down(blocks).offsets for blocks in sets(make_blocks)) == 3734654271


def test_others(make_blocks: BlockMaker) -> None:
    found = [
        (push_down_single(blocks).offsets, centred(blocks).offsets, lower_bound(blocks), naive_size(blocks))
        for blocks in sets(make_blocks)
    ]
    assert digest(found) == 3612139260


def test_pools(make_blocks: BlockMaker) -> None:
    dice = random.Random(22)
    blocks = [make_blocks(dice, count, aligns=(1, 4)) for count in (4, 9, 14, 19)]
    shares = [share_out(each, [dice.randrange(100) for _ in each], [14, 25, None], push_down) for each in blocks]
    assert digest([(share.members, share.placement.offsets) for share in each] for each in shares) == 1130062174


def test_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(23)
    graphs = [random_graph(dice, count) for count in (5, 9, 14, 30)]
    assert digest(order.best_order(*graph) for graph in graphs) == 894279276
    monkeypatch.setattr(order, "EXACT_NODES", 0)
    order._found.cache_clear()
    assert digest(order.best_order(*graph) for graph in graphs) == 2596331657
