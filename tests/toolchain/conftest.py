"""An output folder as the compiler would write it, made by hand: two vectors and a constant are added."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.discovery import data_folder

WEIGHTS = np.array([100, 200, 300, 400], np.float32)


def _blob() -> bytes:
    table = struct.pack("<QQII", 0, 16, 1, zlib.crc32(b"w")) + bytes(40)
    head = b"MCCB" + struct.pack("<HHQ", 1, 64, 144) + b"adder, by hand".ljust(16, b"\0")
    head += struct.pack("<QQIII", 128, 16, 64, 1, zlib.crc32(WEIGHTS.tobytes()))
    return head + struct.pack("<I", zlib.crc32(head + table)) + table + WEIGHTS.tobytes()


@pytest.fixture
def adder(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    shutil.copytree(Path(__file__).with_name("adder"), folder)
    shutil.copytree(data_folder("runtime_c") / "include", folder / "runtime")
    (folder / "adder.mcb").write_bytes(_blob())
    return folder
