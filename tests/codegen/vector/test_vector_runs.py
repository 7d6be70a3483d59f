"""Sums in runs visit every term once, in runs that are no longer than asked for."""

from __future__ import annotations

import pytest

from mccompile.base.dtypes import f16, f32
from mccompile.base.marked import plain
from mccompile.base.summation_error import ANY, DIRECT, PLAIN, SHORT, short_run
from mccompile.codegen.tiles import Range
from mccompile.codegen.vector.vector_runs import HALF_RUN, cutting, longest_run, runs


def visited(inputs: int, most: int, together: int) -> list[list[int]]:
    """The inputs of each run."""
    found = []
    for run in runs("k", inputs, most, together):
        around = [_values(loop, {}) for loop in run.around]
        for start in around[0] if around else [0]:
            found.append(list(_values(run.inputs, {"k0": start})))
    return found


def _values(loop: Range, counters: dict[str, int]) -> range:
    begin, end = (_value(plain(text), counters) for text in (loop.begin, loop.end or str(loop.extent)))
    return range(begin, end, loop.step)


def _value(text: str, counters: dict[str, int]) -> int:
    """C happens to be Python but for the conditional."""
    if "?" not in text:
        return int(eval(text, {}, counters))
    condition, rest = text.removeprefix("(").removesuffix(")").split(" ? ")
    yes, no = rest.split(" : ")
    left, right = condition.split(" < ")
    return _value(yes if _value(left, counters) < _value(right, counters) else no, counters)


SIZES = [
    (1, 8, 1),
    (28, 8, 4),
    (8, 8, 1),
    (9, 8, 1),
    (67, 8, 4),
    (3, 8, 4),
    (33, 16, 4),
    (20, 2, 4),
    (100, 32, 1),
    (7, 0, 1),
]


@pytest.mark.parametrize(("inputs", "most", "together"), SIZES)
def test_runs_visit_every_input_once(inputs: int, most: int, together: int) -> None:
    assert [each for run in visited(inputs, most, together) for each in run] == list(range(inputs))


@pytest.mark.parametrize(("inputs", "most", "together"), SIZES)
def test_runs_are_no_longer_than_asked_for(inputs: int, most: int, together: int) -> None:
    """But for steps that are taken together."""
    assert max(map(len, visited(inputs, most, together))) <= max(most, together)


@pytest.mark.parametrize(("inputs", "most", "together"), SIZES)
def test_runs_but_the_last_are_taken_together(inputs: int, most: int, together: int) -> None:
    assert not any(len(run) % together for run in visited(inputs, most, together)[:-1])


@pytest.mark.parametrize("asked", [ANY, PLAIN])
def test_sums_of_32_bits_are_whole_where_that_is_exact_enough(asked: int) -> None:
    assert longest_run(2304, f32, asked) == 0 and cutting(2304, asked) == 1


@pytest.mark.parametrize("asked", [SHORT, DIRECT])
def test_sums_of_32_bits_are_cut_where_that_is_asked_for(asked: int) -> None:
    assert longest_run(2304, f32, asked) == short_run(2304) and 1 < cutting(2304, asked) < 1.2


@pytest.mark.parametrize(("depth", "longest"), [(8, 0), (9, 8)])
def test_a_sum_that_is_one_run_is_not_cut(depth: int, longest: int) -> None:
    assert longest_run(depth, f32, SHORT) == longest


def test_sums_of_16_bits_are_always_cut() -> None:
    assert longest_run(HALF_RUN + 1, f16) == HALF_RUN and longest_run(HALF_RUN, f16) == 0
