"""The blob reader accepts what SPEC.md describes and refuses everything else, down to a single changed byte.

The writer here is written from SPEC.md alone; it shares nothing with the compiler's.
"""

from __future__ import annotations

import re
import struct
import zlib
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from mccompile.toolchain.build import compile_shared, find_compiler, load

HARNESS = Path(__file__).with_name("harness.c")
IDENTITY = bytes(range(100, 116))
CDEF = """
int t_blob_open(const void *blob, size_t bytes, const uint8_t *identity, size_t need, size_t align, ptrdiff_t *offset);
int t_check_arena(const void *arena, size_t bytes, size_t need, size_t align);
const char *t_status_text(int status);
"""


def blob_of(constants: dict[str, np.ndarray], alignment: int = 64) -> bytes:
    numbers = {"float32": 1, "uint8": 2, "int64": 7}
    table, data = b"", b""
    for name, array in constants.items():
        data += bytes(-len(data) % 64)
        table += struct.pack("<QQII", len(data), array.nbytes, numbers[array.dtype.name], zlib.crc32(name.encode()))
        data += array.tobytes()
    middle = table + bytes(-(64 + len(table)) % 64)
    offset = 64 + len(middle)
    head = b"MCCB" + struct.pack("<HHQ", 1, 64, offset + len(data)) + IDENTITY
    head += struct.pack("<QQIII", offset, len(data), alignment, len(constants), zlib.crc32(data))
    return head + struct.pack("<I", zlib.crc32(head + middle)) + middle + data


SMALL = blob_of({"a": np.arange(5, dtype=np.float32), "b": np.arange(3, dtype=np.uint8), "none": np.zeros(0, np.int64)})


class Reader:
    def __init__(self, runtime: Any) -> None:
        self.library = runtime.library(CDEF)

    def text(self, status: int) -> str:
        return str(self.library.ffi.string(self.library.functions.t_status_text(status)).decode())

    def open(
        self, blob: bytes, identity: bytes = IDENTITY, shift: int = 0, need: int | None = None, align: int = 64
    ) -> tuple[str, int]:
        """Status and data offset, for a blob that lies `shift` bytes past a multiple of 128 plus 64, and for code that
        needs so much data (none said: what there is) at such an alignment."""
        ffi = self.library.ffi
        memory = np.zeros(len(blob) + 256, np.uint8)
        start = (64 - int(memory.ctypes.data)) % 128 + shift
        memory[start : start + len(blob)] = np.frombuffer(blob, np.uint8)
        offset = ffi.new("ptrdiff_t *")
        address = ffi.cast("void *", int(memory.ctypes.data) + start)
        need = int.from_bytes(blob[40:48], "little") if need is None else need
        status = self.library.functions.t_blob_open(address, len(blob), identity, need, align, offset)
        return self.text(status), int(offset[0])


@pytest.fixture
def reader(runtime: Any) -> Reader:
    return Reader(runtime)


def test_a_sound_blob_opens(reader: Reader) -> None:
    status, offset = reader.open(SMALL)
    assert (status, offset) == ("ok", 192)
    assert SMALL[offset : offset + 20] == np.arange(5, dtype=np.float32).tobytes()


def test_a_blob_without_constants_opens(reader: Reader) -> None:
    assert reader.open(blob_of({})) == ("ok", 64)


def test_every_changed_byte_is_refused(reader: Reader) -> None:
    accepted = []
    for position in range(len(SMALL)):
        for change in (0x01, 0x80, 0xFF):
            changed = bytearray(SMALL)
            changed[position] ^= change
            if reader.open(bytes(changed))[0] == "ok":
                accepted.append((position, change))
    assert not accepted


def test_truncation_is_refused_at_every_length(reader: Reader) -> None:
    assert {reader.open(SMALL[:length])[0] for length in range(len(SMALL))} == {"the blob has the wrong size"}


def test_bytes_too_many_are_refused(reader: Reader) -> None:
    assert reader.open(SMALL + b"\0") == ("the blob has the wrong size", -1)


def test_another_models_blob_is_refused(reader: Reader) -> None:
    assert reader.open(SMALL, identity=bytes(16)) == ("the blob belongs to another model", -1)


def test_a_misplaced_blob_is_refused(reader: Reader) -> None:
    assert {reader.open(SMALL, shift=shift)[0] for shift in (1, 4, 16, 32)} == {"the blob is not aligned"}


def test_a_blob_asks_for_no_more_alignment_than_it_needs(reader: Reader) -> None:
    blob = blob_of({"a": np.zeros(4, np.float32)}, alignment=4)
    assert [reader.open(blob, shift=shift, align=4)[0] for shift in (4, 2)] == ["ok", "the blob is not aligned"]


@pytest.mark.parametrize("need", [0, 64, 127, 129])
def test_data_of_another_length_than_the_code_needs_is_refused(reader: Reader, need: int) -> None:
    assert reader.open(SMALL, need=need) == ("the blob has the wrong size", -1)


def test_a_blob_that_asks_for_another_alignment_than_the_code_needs_is_refused(reader: Reader) -> None:
    assert reader.open(SMALL, align=16) == ("the blob is not aligned", -1)
    assert reader.open(blob_of({"a": np.zeros(4, np.float32)}, alignment=4)) == ("the blob is not aligned", -1)


def test_something_else_is_not_taken_for_a_blob(reader: Reader) -> None:
    assert reader.open(b"\x7fELF" + bytes(100)) == ("this is not a blob", -1)


def test_a_later_format_is_named_as_such(reader: Reader) -> None:
    assert reader.open(SMALL[:4] + b"\2" + SMALL[5:]) == ("the blob has another format version", -1)


@pytest.mark.parametrize(
    ("field", "value"), [(32, 64), (32, 1 << 40), (32, (1 << 64) - 64), (40, 1 << 63), (52, 1 << 31)]
)
def test_sizes_that_contradict_each_other_are_refused_even_with_a_matching_crc(
    reader: Reader, field: int, value: int
) -> None:
    size = 4 if field == 52 else 8
    blob = bytearray(SMALL)
    blob[field : field + size] = value.to_bytes(size, "little")
    blob[60:64] = zlib.crc32(blob[:60] + blob[64:192]).to_bytes(4, "little")
    assert reader.open(bytes(blob)) == ("the blob has the wrong size", -1)


def test_null_pointers_are_refused(reader: Reader) -> None:
    ffi, functions = reader.library.ffi, reader.library.functions
    offset = ffi.new("ptrdiff_t *")
    assert reader.text(functions.t_blob_open(ffi.NULL, 64, IDENTITY, 0, 64, offset)) == "a pointer is null"
    assert reader.text(functions.t_blob_open(SMALL, 64, ffi.NULL, 0, 64, offset)) == "a pointer is null"


@pytest.mark.parametrize(
    ("address", "size", "need", "expected"),
    [
        (4096, 100, 100, "ok"),
        (0, 100, 100, "a pointer is null"),
        (4096, 99, 100, "the arena is too small"),
        (4104, 100, 100, "the arena is not aligned"),
        (0, 0, 0, "ok"),
    ],
)
def test_arena(reader: Reader, address: int, size: int, need: int, expected: str) -> None:
    arena = reader.library.ffi.cast("void *", address)
    assert reader.text(reader.library.functions.t_check_arena(arena, size, need, 16)) == expected


def test_every_status_has_a_text_of_its_own(reader: Reader) -> None:
    header = (data_folder("runtime_c") / "include" / "mcc.h").read_text()
    numbers = [int(number) for number in re.findall(r"MCC_(?:OK|ERR_\w+) = (\d+)", header)]
    texts = {reader.text(number) for number in numbers}
    assert len(texts) == len(numbers) > 10
    assert "unknown status" not in texts


UNIT = """#include <stddef.h>
#include <stdint.h>
static inline uint32_t unit(uint32_t crc, const uint8_t *p, size_t count)
{
    while (count-- > 0u) crc = crc * 31u + *p++;
    return crc;
}
#define MCC_CRC32(crc, p, count) unit(crc, p, count)
"""


def library(folder: Path, *flags: str) -> Any:
    flags = ("-std=c99", "-O1", *flags)
    made = compile_shared(
        find_compiler(None), [HARNESS], [data_folder("runtime_c") / "include"], folder / "h.so", flags
    )
    return load(made, CDEF + "uint32_t t_crc32(uint32_t crc, const uint8_t *p, size_t count);")


@pytest.mark.parametrize("flags", [(), ("-DMCC_CRC_TABLE",)])
def test_checksums_are_those_of_zip(flags: tuple[str, ...], tmp_path: Path) -> None:
    checksum = library(tmp_path, *flags).functions.t_crc32
    assert checksum(0, b"123456789", 9) == 0xCBF43926
    data = np.random.default_rng(0).integers(0, 256, 300).astype(np.uint8).tobytes()
    for count in (0, 1, 2, 3, 4, 5, 8, 255, 300):
        assert checksum(12345, data[:count], count) == zlib.crc32(data[:count], 12345)


def test_a_unit_of_the_chip_computes_all_checksums(tmp_path: Path) -> None:
    (tmp_path / "config.h").write_text(UNIT)
    made = library(tmp_path, f'-DMCC_CONFIG="{tmp_path}/config.h"', "-DMCC_CRC_TABLE")
    assert (
        made.functions.t_crc32(7, b"\1\2\3\4\5\6", 6)
        == reduce(lambda crc, byte: crc * 31 + byte, range(1, 7), 7) % 2**32
    )
    offset = made.ffi.new("ptrdiff_t *")
    status = made.functions.t_blob_open(SMALL, len(SMALL), IDENTITY, 128, 64, offset)
    assert (
        made.ffi.string(made.functions.t_status_text(status)) == b"the blob is damaged"
    )  # its checksums are those of zip


def test_a_damaged_byte_of_a_large_blob_is_found(reader: Reader) -> None:
    blob = bytearray(blob_of({"large": np.arange(50001, dtype=np.float32)}))
    assert reader.open(bytes(blob))[0] == "ok"
    for place in (192, 777, 100_000, len(blob) - 1):
        blob[place] ^= 4
        assert reader.open(bytes(blob))[0] != "ok"
        blob[place] ^= 4
