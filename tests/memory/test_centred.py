from __future__ import annotations

from mccompile.memory.centred import MOST, centred
from mccompile.memory.interval import Block, Part
from mccompile.memory.push_down import push_down


def _chain(*sizes: int) -> list[Block]:
    """Tensors of a chain of steps: each lives until the next one is made."""
    return [Block(f"b{i}", (Part(i, i + 2, 0, size),), 64) for i, size in enumerate(sizes)]


def test_blocks_that_take_turns_have_their_middles_in_one_place() -> None:
    blocks = _chain(2560, 6400, 2560, 5120, 1280, 5120, 640)
    found = centred(blocks)
    middles = [offset + block.size // 2 for offset, block in zip(found.offsets, blocks, strict=True)]
    assert {middle // 64 for middle in middles[1::2]} == {middles[1] // 64}, "the large ones"
    assert {middle // 64 for middle in middles[::2]} == {middles[0] // 64}, "the small ones"
    assert found.size == 6400 + 2560


def test_an_arena_that_would_grow_too_much_is_the_smallest_one() -> None:
    """One block at each time, but as many sizes as blocks that are alive together."""
    early = [Block(f"e{i}", (Part(0, 1, 0, 1000),), 1) for i in range(10)]
    late = Block("late", (Part(1, 2, 0, 10000),), 1)
    found = centred([*early, late])
    assert found == push_down([*early, late])
    assert found.size == 10000 < 19000 / MOST


def test_blocks_without_bytes_take_none() -> None:
    """Also behind blocks that end where nothing is aligned."""
    assert centred([Block("x", (Part(0, 2, 0, 140),), 16), Block("empty", (Part(1, 3, 0, 0),), 16)]).size == 140
