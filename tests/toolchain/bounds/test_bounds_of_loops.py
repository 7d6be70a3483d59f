"""Bounds of small programs in Thumb, as binutils prints them: exact where nothing depends on data."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mccompile.toolchain.bounds.blocks import Code
from mccompile.toolchain.bounds.known import State
from mccompile.toolchain.bounds.loops import _same
from mccompile.toolchain.bounds.running import Run, Unbounded
from mccompile.toolchain.bounds.values import holds
from mccompile.toolchain.disassembly import functions

FIRST = 0x100


class Image:
    """Constant memory: words by address."""

    def __init__(self, words: dict[int, int]) -> None:
        self.words = words

    def read(self, address: int, nbytes: int) -> int | None:
        word = self.words.get(address & ~3)
        return None if word is None else word >> 8 * (address & 3) & ((1 << 8 * nbytes) - 1)


def most(text: str, words: dict[int, int] | None = None, aligned: int = 0) -> int:
    """The bound of f."""
    return followed(text, words, aligned)[1].cost


def followed(text: str, words: dict[int, int] | None = None, aligned: int = 0) -> tuple[Run, State]:
    """f, to its return. Instructions are two bytes each; `name:` is a label, `.f:` the begin of a function."""
    places: dict[str, int] = {}
    at, lines = FIRST, []
    for line in (part.strip() for part in text.strip().splitlines()):
        if line.endswith(":"):
            places[line.strip(".:")] = at
            lines += [f"{at:08x} <{line[1:-1]}>:"] if line[0] == "." else []
        else:
            lines.append(f" {at:x}:\t{line.replace(' ', chr(9), 1)}")
            at += 2
    printed = [re.sub(r"<(\w+)>$", lambda m: f"{places[m[1]]:x} <{m[1]}>", line) for line in lines if line[0] == " "]
    heads = [line for line in lines if line[0] != " "]
    rows = sorted([*heads, *printed], key=lambda row: (int(row.split()[0].strip(":"), 16), row[0] == " "))
    run = Run(Code([*functions(rows)], Image(words or {})), aligned)  # type: ignore[arg-type]
    ended = run.of(FIRST, {})
    for why in run.without.values():
        raise why
    return run, ended


LOOPS = {
    "down": (".f:\nmovs r2, #100\nloop:\nsubs r2, #1\nbne <loop>\nbx lr", 1 + 2 * 100 + 1),
    "up": (".f:\nmovs r2, #0\nloop:\nadds r2, #3\ncmp r2, #100\nblt <loop>\nbx lr", 1 + 3 * 34 + 1),
    "unsigned": (".f:\nmovs r2, #0\nloop:\nadds r2, #3\ncmp r2, #99\nbls <loop>\nbx lr", 1 + 3 * 34 + 1),
    "pointers": (
        ".f:\nldr r1, [r0]\nadd.w r2, r1, #400\nloop:\nldr.w r3, [r1], #4\ncmp r1, r2\nbne <loop>\nbx lr",
        2 + 3 * 100 + 1,
    ),
    "nested": (
        ".f:\nmovs r2, #20\nouter:\nmovs r3, #30\ninner:\nsubs r3, #1\nbne <inner>\nsubs r2, #1\nbne <outer>\nbx lr",
        1 + 20 * (1 + 60 + 2) + 1,
    ),
    "triangle": (
        ".f:\nmovs r2, #20\nouter:\nmov r3, r2\ninner:\nsubs r3, #1\nbne <inner>\nsubs r2, #1\nbne <outer>\nbx lr",
        1 + 20 * 3 + 2 * 210 + 1,
    ),
    "counter in memory": (
        ".f:\nsub sp, #8\nmovs r2, #0\nstr r2, [sp, #4]\nloop:\nldr r2, [sp, #4]\nadds r2, #1\nstr r2, [sp, #4]\n"
        "cmp r2, #50\nbne <loop>\nadd sp, #8\nbx lr",
        3 + 5 * 50 + 2,
    ),
    "flags over a loop": (
        ".f:\npush {r4, lr}\nmovs r2, #20\nmovs r4, #30\nouter:\nsubs r2, #1\ndls lr, r4\ninner:\nnop\nle lr, <inner>\n"
        "bne <outer>\npop {r4, pc}",
        3 + 20 * (2 + 30 * 2 + 1) + 1,
    ),
    "half way": (  # a branch that is taken in the first 40 turns alone
        ".f:\nmovs r2, #0\nloop:\ncmp r2, #40\nbge <late>\nnop\nnop\nlate:\nadds r2, #1\ncmp r2, #100\nbne <loop>\n"
        "bx lr",
        1 + 100 * 5 + 40 * 2 + 1,
    ),
    "call": (
        ".f:\npush {r4, lr}\nmovs r4, #9\nloop:\nmovs r0, #5\nbl <g>\nsubs r4, #1\nbne <loop>\npop {r4, pc}\n"
        ".g:\nsubs r0, #1\nbne <g>\nbx lr",
        2 + 9 * (4 + 2 * 5 + 1) + 1,
    ),
    "saved": (  # the counter lies on the stack of the function that is called
        ".f:\npush {r4, lr}\nmovs r4, #9\nloop:\nbl <g>\nsubs r4, #1\nbne <loop>\npop {r4, pc}\n"
        ".g:\npush {r4, lr}\nmovs r4, #7\nturn:\nsubs r4, #1\nbne <turn>\npop {r4, pc}",
        2 + 9 * (3 + 2 + 14 + 1) + 1,
    ),
    "if-then": (
        ".f:\nmovs r2, #10\nmovs r3, #1\ncmp r3, #1\nite eq\nmoveq r2, #6\nmovne r2, #8\nloop:\nsubs r2, #1\n"
        "bne <loop>\nbx lr",
        6 + 12 + 1,
    ),
    "tails in vectors": (
        ".f:\npush {r4, lr}\nmovs r2, #70\ndlstp.8 lr, r2\nloop:\nvldrb.u8 q0, [r1]\nletp lr, <loop>\npop {r4, pc}",
        3 + 2 * 5 + 1,
    ),
    "low overhead": (
        ".f:\npush {r4, lr}\nmovs r2, #70\ndls lr, r2\nloop:\nnop\nle lr, <loop>\npop {r4, pc}",
        3 + 2 * 70 + 1,
    ),
    "no turn": (
        ".f:\npush {r4, lr}\nmovs r2, #0\nwls lr, r2, <end>\nloop:\nnop\nle lr, <loop>\nend:\npop {r4, pc}",
        4,
    ),
    "through a float": (
        ".f:\npush {r4, lr}\nmovs r2, #30\nvmov s16, r2\nbl <g>\nvmov r2, s16\nloop:\nsubs r2, #1\nbne <loop>\n"
        "pop {r4, pc}\n.g:\nvpush {d8}\nvmov s16, r0\nvpop {d8}\nbx lr",
        5 + 4 + 60 + 1,
    ),
    "carry": (  # 1 where r3 is 0, as Thumb-1 asks
        ".f:\nmovs r3, #0\nnegs r0, r3\nadcs r0, r3\nadds r0, #4\nloop:\nsubs r0, #1\nbne <loop>\nbx lr",
        4 + 10 + 1,
    ),
    "alignment": (  # a head of bytes, as libraries have it
        ".f:\nldr r1, [r0]\nmovs r2, #50\nloop:\nlsls r3, r1, #30\nbne <end>\nadds r1, #4\nsubs r2, #1\nbne <loop>\n"
        "end:\nbx lr",
        2 + 5 * 50 + 1,
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_nothing_unknown_ends_are_exact(name: str) -> None:
    text, instructions = LOOPS[name]
    assert most(text, aligned=1) == instructions


def test_jumps_through_tables_are_followed() -> None:
    text = ".f:\nmovs r2, #1\ntbb [pc, r2]\n.byte 0\nnop\nbx lr\nnop\nnop\nbx lr"
    assert most(text, {0x104: 0x00000302}) == 2 + 3


@pytest.mark.parametrize(
    ("choice", "turns"),
    [
        ("csel r2, r3, r4, eq", 9),
        ("csel r2, r3, r4, ne", 5),
        ("csinc r2, r3, r4, ne", 6),
        ("csinv r2, r3, r5, ne", 7),
        ("csneg r2, r3, r5, ne", 8),
        ("csinc r2, r3, zr, ne", 1),
        ("cinc r2, r3, eq", 10),
        ("cneg r2, r5, ne", 0xFFFFFFF8),
        ("cinv r2, r5, eq", 7),
        ("cset r2, eq", 1),
        ("csetm r2, eq", 0xFFFFFFFF),
    ],
)
def test_choices_of_armv8_1_m_are_followed(choice: str, turns: int) -> None:
    text = f".f:\nmovs r3, #9\nmovs r4, #5\nmvn r5, #7\ncmp r4, #5\n{choice}\nbx lr"
    assert followed(text)[1].registers[2] == turns


def test_a_choice_by_data_is_not_known() -> None:
    text = ".f:\nmovs r3, #9\nmovs r4, #5\nldr r5, [r1]\ncmp r5, #5\ncsel r2, r3, r4, eq\nbx lr"
    assert followed(text)[1].registers[2] is None


BY_OFFSETS = ".f:\nldr r2, [r1]\ncmp r2, #1\nbhi <end>\ntbb [pc, r2]\n.byte 1\nnop\nnop\nend:\nbx lr"
BY_WORDS = (
    ".f:\nldr r2, [r1]\ncmp r2, #1\nbhi <end>\nldr r3, [pc, #40]\nlsls r2, r2, #2\nldr r2, [r3, r2]\nmov pc, r2\n"
    "nop\nnop\nend:\nbx lr"
)


def test_the_dearest_entry_of_a_table_counts_where_data_chooses() -> None:
    assert most(BY_OFFSETS, {0x108: 0x0301}) == 4 + 3
    assert most(BY_WORDS, {0x130: 0x140, 0x140: 0x10F, 0x144: 0x113}) == 7 + 3
    other = BY_WORDS.replace("ldr r2, [r3, r2]", "ldr r3, [r3, r2]").replace("mov pc, r2", "mov pc, r3")
    assert most(other, {0x130: 0x140, 0x140: 0x10F, 0x144: 0x113}) == 7 + 3


def test_a_counter_that_chooses_chooses_another_entry_in_each_turn() -> None:
    text = (
        ".f:\nmovs r2, #0\nloop:\ncmp r2, #3\nbhi <end>\ntbb [pc, r2]\n.byte 2\n.byte 9\nnop\nnop\nb <next>\n"
        "nop\nnext:\nadds r2, #1\nb <loop>\nend:\nbx lr"
    )
    assert most(text, {0x108: 0x05050502}) == 1 + 4 * 3 + 5 + 3 * 3 + 3


@pytest.mark.parametrize("text", [BY_OFFSETS, BY_WORDS])
def test_a_table_whose_length_nothing_says_has_no_bound(text: str) -> None:
    with pytest.raises(Unbounded):
        most(text.replace("cmp r2, #1", "nop"), {0x108: 0x0301, 0x130: 0x140, 0x140: 0x10F, 0x144: 0x113})


def test_what_the_library_stores_as_errno_changes_no_counter() -> None:
    text = (
        ".f:\nmov r4, lr\nsub sp, #8\nmovs r2, #50\nstr r2, [sp, #4]\nbl <{name}>\nstr r2, [r0]\nldr r2, [sp, #4]\n"
        "loop:\nsubs r2, #1\nbne <loop>\nadd sp, #8\nbx r4\n.{name}:\nldr r0, [r1]\nbx lr"
    )
    assert most(text.format(name="__errno")) == 5 + 2 + 2 + 100 + 2
    with pytest.raises(Unbounded):
        most(text.format(name="g"))


SCATTERED = """.f:
sub sp, #16
movs r2, #50
mov r1, sp
vldr d4, [pc, #24]
vldr d5, [pc, #28]
vstrb.8 q2, [sp]
str r2, [sp, #8]
vstrb.16 q3, [r1, q2]
ldr r3, [sp, #8]
loop:
subs r3, #1
bne <loop>
add sp, #16
bx lr"""
OFFSETS = 0x120  # of which two are in a word


def test_a_store_to_scattered_places_changes_these_alone() -> None:
    words = {OFFSETS + 4 * n: 2 * n + 1 << 16 | 2 * n for n in range(3)}
    assert most(SCATTERED, words | {OFFSETS + 12: 7 << 16 | 6}) == 9 + 2 * 50 + 2
    with pytest.raises(Unbounded, match="a loop ends by data"):
        most(SCATTERED, words | {OFFSETS + 12: 8 << 16 | 6})


def test_a_return_under_a_condition_that_holds_goes_back() -> None:
    """Before which a return has been skipped, as sums of soft floats do."""
    text = (
        ".f:\nmov r4, lr\nldr r1, [r0]\nmovs r2, #1\nbl <g>\nbx r4\n"
        ".g:\ncmp r1, #3\nit eq\nbxeq lr\ncmp r2, #1\nitt eq\naddeq r0, #1\nbxeq lr\nnop\nnop\nbx lr"
    )
    assert most(text) == 5 + 7


def test_the_dearer_way_of_a_branch_counts() -> None:
    for first, second in ((1, 4), (4, 1)):
        ways = "nop\n" * first + "b <end>\nother:\n" + "nop\n" * second
        assert most(f".f:\nldr r2, [r1]\ncmp r2, #0\nbeq <other>\n{ways}end:\nbx lr") == 3 + max(first + 1, second) + 1


def test_a_dearer_way_in_each_turn_counts_in_each() -> None:
    text = ".f:\nmovs r2, #60\nloop:\nldrb r3, [r1]\ncmp r3, #9\nbeq <skip>\nnop\nskip:\nsubs r2, #1\nbne <loop>\nbx lr"
    assert most(text) == 1 + 6 * 60 + 1


def test_ways_that_end_turns_apart_do_not_multiply() -> None:
    """Each has its own branch back to the head of the loop."""
    text = (
        ".f:\nmovs r2, #60\nloop:\nldrb r3, [r1]\ncmp r3, #9\nbeq <other>\nsubs r2, #1\nbne <loop>\nb <end>\n"
        "other:\nnop\nsubs r2, #1\nbne <loop>\nend:\nbx lr"
    )
    assert most(text) == 1 + 6 * 60 + 1


def test_a_skipped_instruction_under_a_condition_counts() -> None:
    assert most(".f:\nldr r2, [r1]\ncmp r2, #0\nit eq\nmoveq r3, #1\nbx lr") == 5


@pytest.mark.parametrize(
    "text",
    [
        ".f:\nloop:\nldrb r2, [r1]\ncmp r2, #0\nbne <loop>\nbx lr",
        ".f:\nldr r2, [r1]\nloop:\nsubs r2, #1\nbne <loop>\nbx lr",
        ".f:\nmovs r2, #9\nldr r3, [r1]\ncmp r3, #0\nit eq\nmoveq r2, #200\nloop:\nsubs r2, #1\nbne <loop>\nbx lr",
        # a store somewhere on the stack may change the counter
        ".f:\nsub sp, #8\nmovs r2, #9\nldrb r3, [r1]\nstr r2, [sp, #4]\nadd r3, sp\nstr r1, [r3]\nldr r2, [sp, #4]\n"
        "loop:\nsubs r2, #1\nbne <loop>\nadd sp, #8\nbx lr",
        # and so may one whose place moves
        ".f:\nsub sp, #8\nmovs r2, #9\nadd r3, sp, #0\nstr r2, [sp, #4]\nmovs r4, #0\nmovs r5, #30\n"
        "loop:\nstr r1, [r3], #4\nldr r2, [sp, #4]\nsubs r2, #1\nstr r2, [sp, #4]\nbne <loop>\nadd sp, #8\nbx lr",
    ],
)
def test_loops_that_data_end_have_no_bound(text: str) -> None:
    with pytest.raises(Unbounded):
        most(text)


def test_turns_are_skipped_only_while_all_is_decided_as_in_the_first() -> None:
    chance = np.random.default_rng(0)
    interesting = [0, 1, 5, 100, 0x7FFFFFF0, 0x80000000, 0x80000010, 0xFFFFFFF0, 0xFFFFFFFF]
    skipped = 0
    for _ in range(4_000):
        a, b = (int(chance.choice(interesting)) for _ in range(2))
        by, other = (int(each) for each in chance.integers(-3, 4, 2))
        condition = str(chance.choice(["eq", "ne", "cs", "cc", "hi", "ls", "ge", "lt", "gt", "le", "mi", "pl", "vs"]))
        kind = str(chance.choice(["sub", "add"]))
        first = holds(condition, (kind, a, b))
        assert first is not None
        turns = _same(condition, kind, (a, b), (by, other), first)
        skipped += turns > 1
        for turn in {*range(min(turns, 40)), *range(max(0, min(turns, 1 << 33) - 3), min(turns, 1 << 33))}:
            now = (kind, a + turn * by & 0xFFFFFFFF, b + turn * other & 0xFFFFFFFF)
            assert holds(condition, now) == first, (condition, kind, hex(a), hex(b), by, other, turn)
    assert skipped > 1_000


def test_turns_of_loops_and_instructions_of_functions_are_told() -> None:
    run, ended = followed(LOOPS["saved"][0])
    assert sorted(run.turns.values()) == [7, 9]
    assert [*ended.calls.values()] == [9 * 17]


def test_turns_of_what_is_followed_in_vain_are_not_told() -> None:
    """A function whose loop ends by data where its argument is unknown, and it points to what is known."""
    text = (
        ".f:\nmovs r2, #3\nstr r2, [r0, #8]\npush {r4, lr}\nbl 10c <g>\npop {r4, pc}\n.g:\nldr r2, [r0, #8]\n"
        "loop:\nsubs r2, #1\nbne <loop>\nbx lr"
    )
    run, _ = followed(text)
    assert [*run.turns.values()] == [3]


def test_a_loop_that_is_entered_again_has_its_most_turns() -> None:
    run, _ = followed(LOOPS["triangle"][0])
    assert [*run.turns.values()] == [20, 20]
