"""Frames, and boards that say nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest

from mccompile.base.errors import CheckFailed
from mccompile.toolchain import serial_requests
from mccompile.toolchain.serial_requests import BUSY, CRC, DONE, HEAD, Piece, Requests, _checked, decoded, encoded


class Board:
    """Answers requests by a function: its answers, or nothing."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers, self.waiting, self.asked = answers, b"", 0

    def send(self, contents: bytes) -> None:
        self.asked += 1
        head = decoded(contents.strip(b"\0"))[: HEAD.size]
        self.waiting += b"".join(encoded(_checked(head + answer)) + b"\0" for answer in self.answers)
        self.answers = []

    def receive(self) -> bytes:
        contents, self.waiting = self.waiting, b""
        time.sleep(0 if contents else 0.01)
        return contents

    def close(self) -> None:
        pass


@pytest.mark.parametrize("count", [0, 1, 253, 254, 255, 256, 508, 509, 1037])
@pytest.mark.parametrize("zeros", [0.0, 0.01, 1.0])
def test_frames_have_no_zeros_and_come_back(count: int, zeros: float) -> None:
    chance = random.Random(count)
    contents = bytes(0 if chance.random() < zeros else chance.randrange(1, 256) for _ in range(count))
    assert 0 not in encoded(contents) and decoded(encoded(contents)) == contents


def test_a_board_that_says_nothing_is_given_up_within_seconds() -> None:
    began = time.monotonic()
    with pytest.raises(CheckFailed, match="nothing came"):
        Requests(Board([]), "line").ask(1)
    assert time.monotonic() - began < 6


def test_one_that_dies_in_a_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial_requests, "_SILENT", 0.5)
    began = time.monotonic()
    with pytest.raises(CheckFailed, match="has not said a word for 1 s"):
        Requests(Board([bytes([BUSY])]), "line").ask(5, patience=1.0)
    assert 1.0 <= time.monotonic() - began < 3


def test_one_that_works_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial_requests, "_SILENT", 0.2)
    board = Board([bytes([BUSY]), bytes([BUSY]), bytes([DONE, 7])])
    assert Requests(board, "line").ask(5, patience=1.0) == (DONE, b"\7") and board.asked == 1


class Echo(Board):
    """Answers each request by its own body, where `hears` says that it has come."""

    def __init__(self, hears: Callable[[int], bool]) -> None:
        super().__init__([])
        self.hears, self.kept = hears, list[bytes]()

    def send(self, contents: bytes) -> None:
        self.asked += 1
        if self.hears(self.asked):
            self.kept.append(decoded(contents.strip(b"\0"))[: -CRC.size])

    def receive(self) -> bytes:
        asked, self.kept = self.kept, []
        self.waiting = b"".join(
            encoded(_checked(each[: HEAD.size] + bytes([DONE]) + each[HEAD.size :])) + b"\0" for each in asked
        )
        return super().receive()


def _pieces(count: int) -> Iterator[Piece]:
    return (Piece(number, bytes([number] * 9), 9) for number in range(count))


def test_pieces_do_not_wait_for_each_other() -> None:
    board = Echo(lambda number: True)
    before = []
    found = []
    for place, state, told in Requests(board, "line").pieces(2, _pieces(9)):
        before.append(board.asked)
        found.append((place, state, told))
    assert found == [(number, DONE, bytes([number] * 9)) for number in range(9)]
    assert before[0] == 4 and board.asked == 9


def test_a_board_that_is_deaf_while_it_speaks_gets_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial_requests, "_AGAIN", 0.02)
    board = Echo(lambda number: not board.kept)
    requests = Requests(board, "line", 1 << 30)
    places = [place for place, _, _ in requests.pieces(2, _pieces(12))]
    assert sorted(places) == list(range(12)) and board.asked <= 12 + 6
