"""Counting instructions of WebAssembly: what is added to a program, and what is refused. That the numbers are right is
seen where it runs: embedded/test_targets.py."""

from __future__ import annotations

import pytest

from mccompile.base.errors import CheckFailed
from mccompile.toolchain.wasm import with_counters

LOOPS = bytes.fromhex("2000 4101 6a 2200 4105 48 0d00")  # until the local is 5: 3 instructions that count


def section(kind: int, contents: bytes) -> bytes:
    return bytes([kind]) + sized(contents)


def vector(*entries: bytes) -> bytes:
    return bytes([len(entries)]) + b"".join(entries)


def sized(contents: bytes) -> bytes:
    size = len(contents)
    return (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + contents


def program(*marked: bytes, names: tuple[str, ...] = ("board_count_begin", "board_count_end")) -> bytes:
    """Functions 0 and 1 are the marks; `_start` runs each piece of code between them, with a local of its own."""
    code = b"".join(
        b"\x10\x00" + piece.replace(b"\x20\x00", bytes([0x20, i])).replace(b"\x22\x00", bytes([0x22, i])) + b"\x10\x01"
        for i, piece in enumerate(marked)
    )
    bodies = (sized(b"\0\x0b"), sized(b"\0\x0b"), sized(bytes([1, len(marked), 0x7F]) + code + b"\x0b"))
    naming = b"".join(bytes([i]) + sized(name.encode()) for i, name in enumerate(names))
    return b"\0asm\x01\0\0\0" + b"".join(
        [
            section(1, vector(b"\x60\0\0")),
            section(3, vector(b"\0", b"\0", b"\0")),
            section(5, vector(b"\0\x01")),
            section(7, vector(sized(b"memory") + b"\x02\0", sized(b"_start") + b"\0\x02")),
            section(10, vector(*bodies)),
            section(0, sized(b"name") + b"\x01" + sized(bytes([len(names)]) + naming)),
        ]
    )


def loop(times: int) -> bytes:
    """3 instructions that count, so many times."""
    return b"\x03\x40" + LOOPS.replace(b"\x41\x05", bytes([0x41, times])) + b"\x0b"


def test_each_stretch_of_code_adds_what_it_executes() -> None:
    counting = with_counters(program(loop(5)))
    assert counting.count(b"\x23\x00\x42\x03\x7c\x24\x00" + LOOPS) == 1
    assert counting.count(b"\x23\x00\x42\x01\x7c\x24\x00\x10\x01") == 1
    assert b"board_count_2" in counting


def test_numbers_with_their_highest_bit_set_do_not_look_negative() -> None:
    code = b"\x3f\x00\x1a" * 64  # the size of the memory, dropped: 64 instructions, and the call behind them
    assert b"\x42\xc1\x00\x7c\x24\x00" + code in with_counters(program(code))


def test_vectors_constants_and_tables_of_branches_are_stepped_over() -> None:
    constant = b"\xfd\x0c" + bytes(range(16)) + b"\x1a"
    shuffle = b"\xfd\x0c" + bytes(16) + b"\xfd\x0c" + bytes(16) + b"\xfd\x0d" + bytes(16) + b"\x1a"
    lane = b"\x41\x00\xfd\x0c" + bytes(16) + b"\xfd\x54\x00\x00\x03\x1a"
    branches = b"\x02\x40\x41\x01\x0e\x02\x00\x00\x00\x0b"
    counting = with_counters(program(constant + shuffle + lane, branches))
    assert b"\x42\x03\x7c\x24\x00" + constant in counting  # the shuffle, the lane and the call
    assert b"\x42\x01\x7c\x24\x00\x02\x40\x41\x01\x0e" in counting


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"\x7fELF" + bytes(60), "no program for WebAssembly"),
        (program(loop(5), names=("main",)), "names no function board_count_begin, board_count_end"),
        (program(b"\xfe\x00\x00"), "unknown instruction 0xfe"),
    ],
)
def test_what_cannot_be_counted_is_refused(contents: bytes, complaint: str) -> None:
    with pytest.raises(CheckFailed, match=complaint):
        with_counters(contents)
