"""The blob is what runtime_c/SPEC.md says, read here with struct alone."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.driver import Options
from mccompile.emit.blob import WORDS_AT_ONCE, element_bytes, identity, weights_source
from tests import small_models
from tests.small_models import compiled


@pytest.mark.parametrize("name", ["conv", "mlp"])
def test_header_table_and_data(name: str) -> None:
    package = compiled(getattr(small_models, name)())
    contents = package.files[f"{name}.mcb"]
    magic, version, header, size, identity, data_at, data_bytes, align, entries, data_crc, head_crc = struct.unpack(
        "<4sHHQ16sQQIIII", contents[:64]
    )
    assert (magic, version, header, size) == (b"MCCB", 1, 64, len(contents))
    words = package.files[f"{name}.c"].decode().split()
    assert ", ".join(f"0x{byte:02X}" for byte in identity) in " ".join(words)
    assert data_at % 64 == 0 and data_at + data_bytes == size and align >= 16
    assert zlib.crc32(contents[data_at:]) == data_crc
    assert zlib.crc32(contents[64:data_at], zlib.crc32(contents[:60])) == head_crc
    assert entries == len(package.plan.entries)
    for number, entry in enumerate(package.plan.entries):
        offset, nbytes, dtype, crc = struct.unpack_from("<QQII", contents, 64 + 24 * number)
        assert (offset, dtype, crc) == (entry.offset, 1, zlib.crc32(entry.name.encode()))
        assert contents[data_at + offset : data_at + offset + nbytes] == element_bytes(entry.contents)


def test_where_flash_comes_first_constants_lie_close_and_the_report_lists_them() -> None:
    package = compiled(small_models.conv(), Options(target="cortex-m4", prefer="flash"))
    contents, plan = package.files["conv.mcb"], package.plan
    assert struct.unpack_from("<Q", contents, 32) == (64,) and struct.unpack_from("<I", contents, 52) == (0,)
    assert zlib.crc32(b"", zlib.crc32(contents[:60])) == int.from_bytes(contents[60:64], "little")
    listed = json.loads(package.files["report.json"])["constants"]
    assert [(each["name"], each["offset"]) for each in listed] == [(e.name, e.offset) for e in plan.entries]
    ends = [entry.offset + entry.contents.type.max_bytes for entry in plan.entries]
    for entry, end in zip(plan.entries[1:], ends, strict=False):
        assert 0 <= entry.offset - end < 16 and entry.offset % 4 == 0
        data = contents[64 + entry.offset :]
        assert data.startswith(element_bytes(entry.contents))


def test_narrow_elements_are_packed_lowest_bits_first() -> None:
    signed = np.array([1, -2, 7], ml_dtypes.int4)
    assert element_bytes(Constant.of(signed)) == bytes([0xE1, 0x07])
    assert element_bytes(Constant.of(np.array([1, 2, 3, 0, 2], ml_dtypes.uint2))) == bytes([0b00111001, 0b10])
    floats = np.array([1.5, -6.0, 0.5], ml_dtypes.float4_e2m1fn)
    assert element_bytes(Constant.of(floats)) == bytes([0xF3, 0x01])


def test_c_words_are_the_bytes_of_the_blob() -> None:
    contents = bytes(range(16))
    text = b"".join(weights_source("kws", lambda: (contents,), len(contents), 64)).decode()
    assert "0x0706050403020100u, 0x0F0E0D0C0B0A0908u," in text
    assert "kws_weights_bytes = 16u;" in text


def test_everything_that_reading_depends_on_is_in_the_identity() -> None:
    """Code, interface, table, packings and facts about values; the values themselves are not."""
    plan = compiled(small_models.conv()).plan
    first, *rest = plan.entries
    others = Constant.of(first.contents.array + np.float32(1))
    shorter = Constant.of(first.contents.array.reshape(-1)[:-1])
    seen = {"inputs": [], "outputs": [{"name": "y"}]}
    one = identity(plan, "code", seen)
    assert identity(replace(plan, entries=(replace(first, contents=others), *rest)), "code", seen) == one
    different = [
        identity(plan, "code", {**seen, "outputs": []}),
        identity(plan, "other code", seen),
        identity(replace(plan, entries=(replace(first, contents=shorter), *rest)), "code", seen),
        identity(replace(plan, entries=(replace(first, offset=first.offset + 64), *rest)), "code", seen),
        identity(replace(plan, entries=(replace(first, packing="otherwise"), *rest)), "code", seen),
        identity(replace(plan, assumptions=(*plan.assumptions, "w is positive")), "code", seen),
        identity(replace(plan, assumptions=(*plan.assumptions, "w is negative")), "code", seen),
    ]
    assert len({one, *different}) == 1 + len(different)


@pytest.mark.parametrize("words", [1, 4, 5, 6, 10, WORDS_AT_ONCE + 7])
def test_words_stand_five_to_a_row(words: int) -> None:
    contents = np.random.default_rng(words).bytes(8 * words)
    text = b"".join(weights_source("kws", lambda: (contents,), len(contents), 64)).decode()
    rows = text.partition("] = {\n")[2].splitlines()
    assert rows.pop() == "};"
    assert {row.count("u,") for row in rows[:-1]} <= {5} and all(row[:6] == "    0x" for row in rows)
    found = [int(word.rstrip("u,"), 16) for row in rows for word in row.split()]
    assert np.array(found, "<u8").tobytes() == contents


def test_words_are_the_same_however_the_blob_comes() -> None:
    contents = np.random.default_rng(0).bytes(8 * (WORDS_AT_ONCE + 12))
    pieces = [contents[:3], b"", contents[3:50], contents[50:]]
    whole, cut = (b"".join(weights_source("kws", lambda p=p: p, len(contents), 64)) for p in ([contents], pieces))
    assert whole == cut
