"""ImageDecoder: every kind of BMP and PNM that is decoded, and files that are not among these sizes or formats."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from mccompile import backend
from mccompile.base.errors import CheckFailed

HEIGHT, WIDTH = 3, 5
COLORS = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
GREYS = COLORS[..., 0]
BITS = (GREYS >> 7).astype(np.uint8)
PALETTE = np.random.default_rng(2).integers(0, 256, (16, 3)).astype(np.uint8)
PLACES = (GREYS >> 4).astype(np.uint8)


def bmp(rows: list[bytes], bits: int, extra: bytes = b"", packing: int = 0, height: int = HEIGHT) -> bytes:
    """`rows` from the bottom up; `extra` is a palette or masks."""
    padded = b"".join(row + bytes(-len(row) % 4) for row in rows)
    start = 54 + len(extra)
    header = struct.pack("<IiiHHIIiiII", 40, WIDTH, height, 1, bits, packing, len(padded), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", start + len(padded), 0, 0, start) + header + extra + padded


def entries() -> bytes:
    return b"".join(bytes([*color[::-1].tolist(), 0]) for color in PALETTE)


def packed(places: np.ndarray, bits: int) -> list[bytes]:
    planes = (places[..., None] >> np.arange(bits - 1, -1, -1)) & 1
    return [np.packbits(row).tobytes() for row in planes.reshape(len(places), -1).astype(np.uint8)]


def half_colors() -> tuple[bytes, np.ndarray]:
    wide = COLORS.astype(np.uint32) >> np.array([3, 2, 3])
    codes = wide[..., 0] << 11 | wide[..., 1] << 5 | wide[..., 2]
    rows = [row.astype("<u2").tobytes() for row in codes[::-1]]
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    return bmp(rows, 16, masks, 3), (wide * 255 // np.array([31, 63, 31])).astype(np.uint8)


def plain(type: int, array: np.ndarray, most: int | None) -> bytes:
    text = "\n".join(" ".join(map(str, row)) for row in array.reshape(len(array), -1).tolist())
    return f"P{type} # text\n{WIDTH}\n#\n{HEIGHT} {'' if most is None else most}\n{text}\n".encode()


def three(greys: np.ndarray) -> np.ndarray:
    return np.repeat(greys[..., None], 3, axis=-1).astype(np.uint8)


UPRIGHT = [np.ascontiguousarray(row[:, ::-1]).tobytes() for row in COLORS]
LARGE = (COLORS.astype(np.uint16) * 200).astype(">u2")
FILES: dict[str, tuple[bytes, np.ndarray]] = {
    "bmp_24": (bmp(UPRIGHT[::-1], 24), COLORS),
    "bmp_24_from_the_top": (bmp(UPRIGHT, 24, height=-HEIGHT), COLORS),
    "bmp_8": (bmp([row.tobytes() for row in PLACES[::-1]], 8, entries()), PALETTE[PLACES]),
    "bmp_4": (bmp(packed(PLACES, 4)[::-1], 4, entries()), PALETTE[PLACES]),
    "bmp_1": (bmp(packed(BITS, 1)[::-1], 1, entries()[:8]), PALETTE[BITS]),
    "bmp_16": half_colors(),
    "pbm_plain": (
        f"P1 {WIDTH} {HEIGHT}\n{''.join(map(str, BITS.reshape(-1).tolist()))}".encode(),
        three(255 - 255 * BITS),
    ),
    "pbm_raw": (f"P4 {WIDTH} {HEIGHT}\n".encode() + b"".join(packed(BITS, 1)), three(255 - 255 * BITS)),
    "pgm_plain": (plain(2, GREYS, 255), three(GREYS)),
    "pgm_raw": (f"P5\n{WIDTH} {HEIGHT}\n15\n".encode() + PLACES.tobytes(), three(17 * PLACES)),
    "ppm_plain": (plain(3, COLORS, 255), COLORS),
    "ppm_raw_of_words": (f"P6 {WIDTH} {HEIGHT} 51000\n".encode() + LARGE.tobytes(), COLORS),
}


@pytest.fixture(scope="module")
def rep() -> Any:
    """All files, and one that may be anything."""
    names = [*FILES, "any"]
    sizes = [*(len(file) for file, _ in FILES.values()), len(FILES["bmp_24"][0])]
    graph = helper.make_graph(
        [helper.make_node("ImageDecoder", [name], [f"{name}_y"]) for name in names],
        "files",
        [helper.make_tensor_value_info(name, TensorProto.UINT8, (n,)) for name, n in zip(names, sizes, strict=True)],
        [helper.make_tensor_value_info(f"{name}_y", TensorProto.UINT8, (HEIGHT, WIDTH, 3)) for name in names],
    )
    return backend.prepare(helper.make_model(graph), flags=("-O1",))


def feed(last: bytes) -> list[np.ndarray]:
    return [np.frombuffer(file, np.uint8) for file in (*(file for file, _ in FILES.values()), last)]


def test_every_format(rep: Any) -> None:
    results = rep.run(feed(FILES["bmp_24"][0]))
    for (name, (_, want)), got in zip(FILES.items(), results, strict=False):
        np.testing.assert_array_equal(got, want, err_msg=name)


def test_other_files_end_with_a_status(rep: Any) -> None:
    sound = FILES["bmp_24"][0]
    wide = sound[:18] + struct.pack("<i", WIDTH + 1) + sound[22:]
    late = sound[:10] + struct.pack("<I", 99) + sound[14:]
    for file in (bytes(len(sound)), b"\x89PNG" + sound[4:], wide, late):
        with pytest.raises(CheckFailed, match="BMP"):
            rep.run(feed(file))
