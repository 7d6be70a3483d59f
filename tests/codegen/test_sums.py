"""Blocked sums visit every element once and keep their accumulators short."""

from __future__ import annotations

import pytest

from mccompile.base.marked import plain
from mccompile.codegen.loops import Loop
from mccompile.codegen.sums import BLOCK, levels


def visited(extents: list[int], passes: int = 0) -> tuple[list[tuple[int, ...]], int]:
    """Positions in order, and the longest run of one loop; the C texts happen to be Python but for the conditional."""
    loops = [Loop(f"r{i}", extent) for i, extent in enumerate(extents)]
    nest = levels(loops, blocked=True, passes=passes)
    found: list[tuple[int, ...]] = []
    longest = 0

    def value(text: str, counters: dict[str, int]) -> int:
        if "?" not in text:
            return int(eval(text, {}, counters))
        condition, rest = text.removeprefix("(").removesuffix(")").split(" ? ", 1)
        yes, no = rest.split(" : ", 1)
        left, right = condition.split(" < ", 1)
        return value(yes, counters) if value(left, counters) < value(right, counters) else value(no, counters)

    def run(depth: int, counters: dict[str, int]) -> None:
        nonlocal longest
        if depth == len(nest):
            found.append(tuple(counters[loop.counter] for loop in loops))
            return
        level = nest[depth]
        positions = range(value(level.first, counters), value(plain(level.limit), counters), level.step)
        longest = max(longest, len(positions))
        for position in positions:
            run(depth + 1, counters | {level.counter: position})

    run(0, {})
    return found, longest


@pytest.mark.parametrize("extents", [[1], [100], [128], [129], [300], [384], [20000], [3, 200], [150, 2]])
def test_every_element_once_in_order(extents: list[int]) -> None:
    found, _ = visited(extents)
    expected: list[tuple[int, ...]] = [()]
    for extent in extents:
        expected = [(*head, i) for head in expected for i in range(extent)]
    assert found == expected


@pytest.mark.parametrize("extents", [[20], [515], [300, 7], [20000]])
def test_every_element_once_in_passes(extents: list[int]) -> None:
    assert visited(extents, passes=8) == (visited(extents)[0], max(8, -(-extents[0] // 8)))


@pytest.mark.parametrize("extents", [[129], [20000], [150, 2]])
def test_no_loop_is_longer_than_a_block(extents: list[int]) -> None:
    assert visited(extents)[1] <= BLOCK


def test_short_sums_have_one_accumulator() -> None:
    assert not any(level.opens for level in levels([Loop("r0", 7), Loop("r1", 7)], blocked=True))
