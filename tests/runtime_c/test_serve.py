"""The server behind a serial line: hostile bytes do no harm, and no broken line changes what a host reads."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from mccompile.base.dtypes import DTYPES
from mccompile.base.errors import CheckFailed
from mccompile.toolchain import serial_requests
from mccompile.toolchain.build import Library
from mccompile.toolchain.model_report import Arena, Report, Tensor
from mccompile.toolchain.served import Served

from .built import STRICT, built

HARNESS = Path(__file__).with_name("serve_harness.c")
DECLARED = """
void harness_start(void);
size_t harness_feed(const uint8_t *bytes, size_t count, uint8_t *answers);
int harness_runs(void);
int harness_whole(void);
"""
BLOB = bytes(range(64))
DATA = np.arange(6000, dtype=np.int64).astype(np.uint8).reshape(1, 6000)
FAST = 1 << 30  # baud: the line is a call
REPORT = Report(
    prefix="m",
    arenas=(Arena(1, 1),),
    inputs=(Tensor("x", "x", DTYPES["u8"], (1, 6000), 6000),),
    outputs=(Tensor("y", "y", DTYPES["u8"], (1, 6000), 6000),),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return built(HARNESS, tmp_path_factory.mktemp("serve"), "gcc", DECLARED)


class Noisy:
    """A line to the harness: of the bytes on it some are lost, doubled or broken, both ways."""

    def __init__(self, library: Library, rate: float, seed: int = 0) -> None:
        self.library, self.rate, self.random = library, rate, random.Random(seed)
        self.harmed = 0
        self.waiting = b""
        library.functions.harness_start()

    def send(self, contents: bytes) -> None:
        place = self.library.ffi.new("uint8_t[]", 16384)
        harmed = self._harmed(contents)
        count = self.library.functions.harness_feed(harmed, len(harmed), place)
        self.waiting += self._harmed(bytes(self.library.ffi.buffer(place, count)))

    def receive(self) -> bytes:
        contents, self.waiting = self.waiting, b""
        return contents

    def _harmed(self, contents: bytes) -> bytes:
        found = bytearray()
        for byte in contents:
            if self.random.random() >= self.rate:
                found.append(byte)
                continue
            self.harmed += 1
            found += self.random.choice((b"", bytes([byte, byte]), bytes([byte ^ 1 << self.random.randrange(8)])))
        return bytes(found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rate", [0.0, 0.001, 0.002])
def test_a_broken_line_changes_no_result(
    library: Library, rate: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serial_requests, "_AGAIN", 0.0005)
    line = Noisy(library, rate, seed)
    model = Served(REPORT, BLOB, line, "noisy", FAST)
    for _ in range(3):
        for number, result in enumerate(model.run_twice({"x": DATA}), 1):
            np.testing.assert_array_equal(result.outputs["y"], DATA + np.uint8(number))  # no run is made twice
    assert library.functions.harness_runs() == 2
    assert library.functions.harness_whole()
    assert len(model.ticks) == 6 and min(model.ticks) > 0
    assert bool(line.harmed) == bool(rate)


def test_tensors_take_nine_tenths_of_the_line(library: Library) -> None:
    """Though nothing is sent while an answer is waited for."""
    model = Served(REPORT, BLOB, Noisy(library, 0.0), "line", FAST)
    begun = model.requests.sent + model.requests.came
    model.run_twice({"x": DATA})
    spent = model.requests.sent + model.requests.came - begun
    assert 4 * DATA.nbytes >= 0.9 * spent, f"{4 * DATA.nbytes / spent:.1%}"


def test_a_request_that_comes_twice_runs_once(library: Library) -> None:
    line = Noisy(library, 0.0)
    model = Served(REPORT, BLOB, line, "line", FAST)
    send = line.send
    line.send = lambda contents: send(contents + contents)  # type: ignore[method-assign]
    model.run_twice({"x": DATA})
    assert library.functions.harness_runs() == 2


def _silent(_: bytes) -> None:
    pass


def _refusal(line: Any, blob: bytes, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(serial_requests, "_AGAIN", 0.0005)
    monkeypatch.setattr(serial_requests, "_SILENT", 0.02)
    with pytest.raises(CheckFailed) as caught:
        Served(REPORT, blob, line, "line", FAST)
    return str(caught.value)


def test_another_model_is_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    other = BLOB[:16] + bytes(16) + BLOB[32:]
    assert "another model is on the board" in _refusal(Noisy(library, 0.0), other, monkeypatch)
    assert "other weights" in _refusal(Noisy(library, 0.0), BLOB[:60] + bytes(4), monkeypatch)


def test_a_line_that_says_nothing_or_noise_is_told_apart(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Noisy(library, 0.0)
    monkeypatch.setattr(line, "send", _silent)
    assert "nothing came" in _refusal(line, BLOB, monkeypatch)
    monkeypatch.setattr(line, "receive", lambda: b"\x80\xf8\x00")
    assert "--baud" in _refusal(line, BLOB, monkeypatch)


def test_hostile_bytes_do_no_harm(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program, include = tmp_path / "hostile", data_folder("runtime_c") / "include"
    sanitized = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DSERVE_HOSTILE"]
    command = ["gcc", *STRICT, *sanitized, f"-I{include}", str(HARNESS), "-o", str(program)]
    subprocess.run(command, check=True)
    assert subprocess.run([program], timeout=100, check=False).returncode == 0
