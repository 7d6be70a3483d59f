"""Weights in two slots: whatever goes wrong while new ones come, those that ran before run, or the new ones do."""

from __future__ import annotations

import random
from functools import reduce
from operator import xor
from pathlib import Path

import pytest

from mccompile.emit.statuses import STATUSES
from mccompile.emit.updates import update_image
from mccompile.toolchain.build import Library

from .built import built

HARNESS = Path(__file__).with_name("update_harness.c")
DECLARED = """
void harness_clear(void);
void harness_power(long bytes, unsigned seed);
int harness_install(const uint8_t *update, uint32_t count, uint32_t piece, uint32_t least);
int harness_find(uint32_t least, uint8_t *blob);
uint32_t harness_version(void);
void harness_flip(uint32_t slot, uint32_t at);
int harness_misused(void);
"""
BLOB, SLOT = 256, 64 + 128 + 256
WRITTEN = 2 * SLOT  # bytes that are erased, then written
IDENTITY = bytes(range(1, 17))
NAMES = {status.number: status.name for status in STATUSES}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return built(HARNESS, tmp_path_factory.mktemp("update"), "gcc", DECLARED)


class Board:
    def __init__(self, library: Library) -> None:
        self.call, self.ffi = library.functions, library.ffi
        self.call.harness_clear()

    def install(self, update: bytes, piece: int = 50, least: int = 0) -> str:
        return NAMES[self.call.harness_install(update, len(update), piece, least)]

    def runs(self, least: int = 0) -> tuple[int, bytes] | str:
        """Version and blob, or why there is none."""
        blob = self.ffi.new("uint8_t[]", BLOB)
        status = self.call.harness_find(least, blob)
        return NAMES[status] if status else (self.call.harness_version(), bytes(self.ffi.buffer(blob)))


def blob_of(version: int, identity: bytes = IDENTITY) -> bytes:
    return b"MCCB".ljust(16, b"\0") + identity + random.Random(version).randbytes(BLOB - 32)


def update(version: int, counter: int = 0, identity: bytes = IDENTITY) -> bytes:
    image = update_image(blob_of(version, identity), version, counter)
    return bytes([reduce(xor, image)]) * 64 + image


def test_what_came_last_runs(library: Library) -> None:
    board = Board(library)
    assert board.runs() == "MCC_ERR_STORE"
    for version, piece in ((1, 1), (7, 63), (3, 1000), (4, 64)):
        assert board.install(update(version), piece) == "MCC_OK"
        assert board.runs() == (version, blob_of(version))
    assert not board.call.harness_misused()


def test_a_power_cut_at_any_byte_leaves_old_or_new(library: Library) -> None:
    board, draw = Board(library), random.Random(1)
    assert board.install(update(0)) == "MCC_OK"
    outcomes = set()
    cuts = [*range(WRITTEN), *(draw.randrange(WRITTEN) for _ in range(1000))]
    for runs, cut in enumerate(cuts):
        board.call.harness_power(cut, cut)
        status = board.install(update(runs + 1), 1 + cut % 100)
        board.call.harness_power(1_000_000, 1)
        found = board.runs()
        assert found in ((runs, blob_of(runs)), (runs + 1, blob_of(runs + 1))), cut
        outcomes.add(found[0] - runs)
        if status == "MCC_OK":
            assert found[0] == runs + 1
        else:
            assert board.install(update(runs + 1)) == "MCC_OK"
        assert board.runs() == (runs + 1, blob_of(runs + 1))
    assert outcomes == {0, 1}
    assert not board.call.harness_misused()


def test_old_weights_do_not_come_back(library: Library) -> None:
    board = Board(library)
    assert board.install(update(1, counter=2), least=2) == "MCC_OK"
    assert board.install(update(2, counter=1)) == "MCC_ERR_UPDATE_OLD"
    assert board.install(update(3, counter=2), least=3) == "MCC_ERR_UPDATE_OLD"
    assert board.runs() == (1, blob_of(1))
    assert board.install(update(3, counter=3)) == "MCC_OK"
    assert board.runs(least=4) == "MCC_ERR_STORE"
    board.call.harness_flip(1, 300)  # the newer of both is damaged
    assert board.runs() == (1, blob_of(1))
    assert board.runs(least=3) == "MCC_ERR_STORE"


def test_what_is_refused_leaves_what_runs(library: Library) -> None:
    board = Board(library)
    good = update(1)
    assert board.install(good) == "MCC_OK"
    new = update(2)
    wrong = {
        "MCC_ERR_UPDATE_SIGNATURE": bytes([new[0] ^ 1]) + new[1:],
        "MCC_ERR_BLOB_MAGIC": new[:64] + b"X" + new[65:],
        "MCC_ERR_BLOB_IDENTITY": update(2, identity=bytes(16)),
        "MCC_ERR_BLOB_CRC": new[:-1] + bytes([new[-1] ^ 1]),
    }
    for status, contents in wrong.items():
        assert board.install(contents) == status
        assert board.runs() == (1, blob_of(1))
    for contents in (new[:-1], new + b"\0", new[:100], b""):
        assert board.install(contents) == "MCC_ERR_BLOB_SIZE"
        assert board.runs() == (1, blob_of(1))
    for place in range(64, 128):  # of the manifest
        assert board.install(new[:place] + bytes([new[place] ^ 4]) + new[place + 1 :]) != "MCC_OK"
    assert board.runs() == (1, blob_of(1))
    assert board.install(new) == "MCC_OK"
    board.call.harness_flip(1, 64)  # the signature, in the slot
    assert board.runs() == (1, blob_of(1))
