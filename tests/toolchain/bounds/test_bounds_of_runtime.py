"""Functions of the compiler's run-time, whose loops end by data: shifts end them after so many turns."""

from __future__ import annotations

import pytest

from mccompile.toolchain.bounds.running import Unbounded
from tests.toolchain.bounds.test_bounds_of_loops import followed, most

AROUND = 4  # instructions of f but for what it calls
CALLING = ".f:\nmov r4, lr\nbl <{name}>\nnop\nbx r4\n.{name}:\n"
NORMALIZED = "loop:\nlsls r0, r0, #1\ntst r0, #8388608\nadds r3, #1\nbeq <loop>\nbx lr"  # until bit 23 is set
COUNTED = "{start}\nloop:\ncmp r2, r3\nlsrs r1, r1, #4\nbne <loop>\nbx lr"


def bound(body: str, name: str = "__aeabi_fdiv") -> int:
    return most(CALLING.format(name=name) + body) - AROUND


def test_numbers_are_shifted_until_a_bit_is_set() -> None:
    assert bound(NORMALIZED) == 23 * 4 + 1
    run, _ = followed(CALLING.format(name="__aeabi_fdiv") + NORMALIZED)
    assert [*run.turns.values()] == [23]


@pytest.mark.parametrize(
    ("start", "turns"), [("mov r1, #8388608", 6), ("movs r1, #255", 2), ("ldr r1, [r0]", 8), ("mov r5, #1", 8)]
)
def test_numbers_are_shifted_to_the_right_until_none_is_left(start: str, turns: int) -> None:
    assert bound(COUNTED.format(start=start)) == 1 + 3 * turns + 1


@pytest.mark.parametrize(
    "other", ["mov r1, r0", "ldr r1, [r0]", "ldmia r0, {r1, r2}", "umull r0, r1, r2, r3", "pop {r1}"]
)
def test_what_is_written_besides_may_take_a_turn_for_each_bit(other: str) -> None:
    counted = COUNTED.format(start="mov r1, #8388608").replace("cmp r2, r3", other)
    assert bound(counted, "__ieee754_sqrtf") == 1 + 3 * 25 + 1
    normalized = NORMALIZED.replace("adds r3, #1", other.replace("r1", "r0"))
    assert bound(normalized, "__ieee754_sqrtf") == 4 * 25 + 1


def test_the_dearest_way_counts_and_not_all_of_them() -> None:
    ways = "cmp r0, #0\nbeq <other>\nnop\nnop\nb <end>\nother:\nnop\nend:\n"
    assert bound(ways + NORMALIZED) == 2 + 3 + 23 * 4 + 1


def test_a_turn_takes_the_dearest_way() -> None:
    loop = "loop:\ncmp r0, r1\nbne <other>\nnop\nnop\nb <end>\nother:\nnop\nend:\nsubs r2, r3\nbne <loop>\nbx lr"
    assert bound(loop) == 27 * (2 + 3 + 2) + 1


def test_all_blocks_of_a_loop_count_that_is_entered_in_the_middle() -> None:
    loop = "cmp r0, r1\nbne <end>\nloop:\ncmp r0, r1\nbne <end>\nnop\nend:\nsubs r2, r3\nbne <loop>\nbx lr"
    assert bound(loop) == 2 + 27 * (2 + 1 + 2) + 1


def test_what_is_called_there_counts() -> None:
    called = "mov r5, lr\nbl <g>\ntst r0, r1\nbx r5\n"
    assert bound(NORMALIZED + "\n.g:\nnop\nnop\nbx lr") == 23 * 4 + 1
    calling = NORMALIZED.replace("bx lr", called.rstrip()) + "\n.g:\nnop\nnop\nbx lr"
    assert bound(calling) == 23 * 4 + 4 + 3


def test_functions_that_end_in_one_have_a_bound() -> None:
    ending = CALLING.format(name="g") + "nop\nb <__aeabi_fdiv>\n.__aeabi_fdiv:\n"
    assert most(ending + NORMALIZED) - AROUND == 2 + 23 * 4 + 1


def test_other_functions_whose_loops_end_by_data_have_no_bound() -> None:
    with pytest.raises(Unbounded, match="a loop ends by data"):
        bound(NORMALIZED, "other")


def test_a_part_of_a_function_that_is_called_under_a_condition_goes_back() -> None:
    """As products of doubles shift subnormal factors."""
    body = "push {r4, lr}\ncmp r0, #0\nit eq\nbleq <part>\nnop\npop {r4, pc}\npart:\n"
    whole = bound(body + NORMALIZED, "__aeabi_dmul")
    assert whole == 4 + 52 * 4 + 1 + 2 - 4 * (52 - 23)


def test_divisors_are_shifted_back_as_often_as_they_were_shifted() -> None:
    loop = "adcs r2, r2\nbcs <back>\nbx lr\nback:\nlsrs r1, r1, #8\nb <loop>"
    start = ".f:\nmov r4, lr\nbl <__udivsi3>\nnop\nbx r4\n.__udivsi3:\ncmp r0, r1\nbcc <loop>\nlsls r1, r1, #8\nloop:\n"
    assert most(start + loop) - AROUND == 3 + 2 * 4 + 1


def test_divisions_of_known_numbers_have_known_results() -> None:
    start = ".f:\nmov r4, lr\nmovs r0, #14\nmovs r1, #2\nbl <__udivsi3>\nbx r4\n.__udivsi3:\nmovs r2, #0\n"
    run, state = followed(start + "loop:\nadds r2, #1\nsubs r0, r0, r1\nbne <loop>\nmov r0, r2\nbx lr")
    assert state.registers[0] == 7 and [*run.turns.values()] == [7]


def test_what_a_leaf_does_not_name_is_as_before() -> None:
    """Compilers know it of functions in the same file."""
    loop = ".f:\nmov r4, lr\nmov r2, r0\nadd r5, r0, #36\nloop:\nldr r0, [sp]\nbl <g>\nadds r2, #4\ncmp r2, r5\n"
    loop += "bne <loop>\nbx r4\n"
    leaf = ".g:\ncmp r0, r1\nit ls\nmovls r0, {register}\nbx lr"
    assert most(loop + leaf.format(register="r1")) == 3 + 9 * 9 + 1
    for other in (leaf.format(register="r2"), ".g:\nmov r3, lr\nbl <h>\nbx r3\n.h:\nmovs r2, #0\nbx lr"):
        with pytest.raises(Unbounded):
            most(loop + other)
