"""GGUF files: each type of blocks element by element, whole files, what is refused."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from mccompile.base.errors import BadFile, Exit, MccError, UnsupportedModel
from mccompile.frontend.load import read_proto
from mccompile.importers.decoders.family import GGUF_NAMES
from mccompile.importers.decoders.ggml import FORMS, stored
from mccompile.importers.decoders.grids import grid
from mccompile.importers.decoders.weights import Blocks

from .files import SIZES, named
from .reference import logits, random_weights

CHANCE = np.random.default_rng(9)
NUMBERS = {form.name: number for number, form in FORMS.items()}
TABLE = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def half(b: bytes, at: int) -> float:
    return float(struct.unpack_from("<e", b, at)[0])


def nibble(b: bytes, at: int, i: int, size: int = 32) -> int:
    """Of an element: a run of bytes has the first half of `size` elements below, the second one above."""
    block, i = divmod(i, size)
    return b[at + block * size // 2 + i % (size // 2)] >> 4 * (i >= size // 2) & 15


def six(b: bytes, j: int) -> tuple[int, int]:
    s = b[4:16]
    if j < 4:
        return s[j] & 63, s[j + 4] & 63
    return s[j + 4] & 15 | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4


def sixes(b: bytes, i: int, level: int) -> float:
    scale, least = six(b, i // 32)
    return half(b, 0) * scale * level - half(b, 2) * least


def bit(b: bytes, at: int, i: int) -> int:
    return b[at + i // 8] >> i % 8 & 1


def two_bits(b: bytes, at: int, i: int) -> int:
    return b[at + i // 128 * 32 + i % 32] >> i % 128 // 32 * 2 & 3


def q6(b: bytes, i: int) -> float:
    part = i % 128
    low = b[i // 128 * 64 + part % 64] >> 4 * (part >= 64) & 15
    high = b[128 + i // 128 * 32 + i % 32] >> part // 32 * 2 & 3
    return half(b, 208) * struct.unpack_from("b", b, 192 + i // 16)[0] * ((low | high << 4) - 32)


def q3(b: bytes, i: int) -> float:
    j = i // 16
    scale = (b[96 + j % 8] >> 4 * (j >= 8) & 15) | (b[104 + j % 4] >> j // 4 * 2 & 3) << 4
    level = two_bits(b, 32, i) - (0 if b[i % 32] >> i // 32 & 1 else 4)
    return half(b, 108) * (scale - 32) * level


def iq4_xs(b: bytes, i: int) -> float:
    j = i // 32
    scale = b[4 + j // 2] >> j % 2 * 4 & 15 | (struct.unpack_from("<H", b, 2)[0] >> 2 * j & 3) << 4
    return half(b, 0) * (scale - 32) * TABLE[nibble(b, 8, i)]


def ternary(b: bytes, i: int) -> float:
    at, width, place = (0, 32, i) if i < 160 else (32, 16, i - 160) if i < 240 else (48, 4, i - 240)
    return half(b, 52) * ((b[at + place % width] * 3 ** (place // width) % 256 * 3 >> 8) - 1)


def float_of_4_bits(level: int) -> float:
    exponent, fraction = level >> 1 & 3, level & 1
    size = (1 + fraction / 2) * 2 ** (exponent - 1) if exponent else fraction / 2
    return -size if level & 8 else size


def e4m3(byte: int) -> float:
    exponent, fraction = byte >> 3 & 15, byte & 7
    return 0.0 if byte == 127 else (1 + fraction / 8) * 2.0 ** (exponent - 7) if exponent else fraction * 2.0**-9


def word(b: bytes, at: int, form: str = "I") -> int:
    return int(struct.unpack_from(f"<{form}", b, at)[0])


def sign(signs: int, j: int) -> int:
    """Of 7 bits and the one that makes their number even."""
    return -1 if (signs | signs.bit_count() % 2 << 7) >> j & 1 else 1


def iq2_xxs(b: bytes, i: int) -> float:
    at, group, j = 2 + i // 32 * 8, i % 32 // 8, i % 8
    rest = word(b, at + 4)
    return half(b, 0) * (0.5 + (rest >> 28)) / 4 * grid("IQ2_XXS")[b[at + group]][j] * sign(rest >> 7 * group & 127, j)


def iq2_xs(b: bytes, i: int) -> float:
    place, scale = word(b, 2 + i // 8 * 2, "H"), b[66 + i // 32] >> i % 32 // 16 * 4 & 15
    return half(b, 0) * (0.5 + scale) / 4 * grid("IQ2_XS")[place & 511][i % 8] * sign(place >> 9, i % 8)


def iq2_s(b: bytes, i: int) -> float:
    group, scale = i // 8, b[74 + i // 32] >> i % 32 // 16 * 4 & 15
    place = b[2 + group] | (b[66 + i // 32] >> group % 4 * 2 & 3) << 8
    return half(b, 0) * (0.5 + scale) / 4 * grid("IQ2_S")[place][i % 8] * (-1 if bit(b, 34, i) else 1)


def iq3_xxs(b: bytes, i: int) -> float:
    rest = word(b, 66 + i // 32 * 4)
    signed = sign(rest >> i % 32 // 8 * 7 & 127, i % 8)
    return half(b, 0) * (0.5 + (rest >> 28)) / 2 * grid("IQ3_XXS")[b[2 + i // 4]][i % 4] * signed


def iq3_s(b: bytes, i: int) -> float:
    group, scale = i // 4, b[106 + i // 64] >> i // 32 % 2 * 4 & 15
    place = b[2 + group] | bit(b, 66, group) << 8
    return half(b, 0) * (1 + 2 * scale) * grid("IQ3_S")[place][i % 4] * (-1 if bit(b, 74, i) else 1)


def iq1_s(b: bytes, i: int) -> float:
    high = word(b, 34 + i // 32 * 2, "H")
    level = grid("IQ1")[b[2 + i // 8] | (high >> i % 32 // 8 * 3 & 7) << 8][i % 8]
    return half(b, 0) * (2 * (high >> 12 & 7) + 1) * (level + (-0.125 if high >> 15 else 0.125))


def iq1_m(b: bytes, i: int) -> float:
    parts = [word(b, 48 + 2 * n, "H") for n in range(4)]
    whole = struct.unpack("<e", struct.pack("<H", sum(part >> 12 << 4 * n for n, part in enumerate(parts))))[0]
    high, scale = b[32 + i // 16] >> i % 16 // 8 * 4 & 15, parts[i // 64] >> i % 64 // 16 * 3 & 7
    level = grid("IQ1")[b[i // 8] | (high & 7) << 8][i % 8]
    return float(whole * (2 * scale + 1) * (level + (-0.125 if high & 8 else 0.125)))


# As ggml's own loops say, for one element.
ELEMENTS: dict[str, Callable[[bytes, int], float]] = {
    "Q4_0": lambda b, i: (nibble(b, 2, i) - 8) * half(b, 0),
    "Q4_1": lambda b, i: nibble(b, 4, i) * half(b, 0) + half(b, 2),
    "Q5_0": lambda b, i: ((nibble(b, 6, i) | bit(b, 2, i) << 4) - 16) * half(b, 0),
    "Q5_1": lambda b, i: (nibble(b, 8, i) | bit(b, 4, i) << 4) * half(b, 0) + half(b, 2),
    "Q8_0": lambda b, i: struct.unpack_from("b", b, 2 + i)[0] * half(b, 0),
    "Q2_K": lambda b, i: half(b, 80) * (b[i // 16] & 15) * two_bits(b, 16, i) - half(b, 82) * (b[i // 16] >> 4),
    "Q3_K": q3,
    "Q4_K": lambda b, i: sixes(b, i, nibble(b, 16, i, 64)),
    "Q5_K": lambda b, i: sixes(b, i, nibble(b, 48, i, 64) | (b[16 + i % 32] >> i // 32 & 1) << 4),
    "Q6_K": q6,
    "IQ4_NL": lambda b, i: TABLE[nibble(b, 2, i)] * half(b, 0),
    "IQ4_XS": iq4_xs,
    "IQ2_XXS": iq2_xxs,
    "IQ2_XS": iq2_xs,
    "IQ2_S": iq2_s,
    "IQ3_XXS": iq3_xxs,
    "IQ3_S": iq3_s,
    "IQ1_S": iq1_s,
    "IQ1_M": iq1_m,
    "TQ1_0": ternary,
    "TQ2_0": lambda b, i: half(b, 64) * (two_bits(b, 0, i) - 1),
    "MXFP4": lambda b, i: float_of_4_bits(nibble(b, 1, i)) * 2.0 ** (b[0] - 127),
    "NVFP4": lambda b, i: float_of_4_bits(nibble(b, 4, i, 16)) * e4m3(b[i // 16] & 127),
}
GRIDS = {  # checksums of what the package gguf 0.19 has
    "IQ1": 3093195983,
    "IQ2_S": 632183793,
    "IQ2_XS": 4196277245,
    "IQ2_XXS": 2569338626,
    "IQ3_S": 4118209779,
    "IQ3_XXS": 129670864,
}
HALVES = {
    "Q4_1": (0, 2),
    "Q5_1": (0, 2),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ1_M": (),
    "TQ1_0": (52,),
    "TQ2_0": (64,),
    "MXFP4": (),
    "NVFP4": (),
}


def blocks(name: str, rows: int, columns: int) -> bytes:
    """Random ones with scales of a common size."""
    form = FORMS[NUMBERS[name]]
    data = CHANCE.integers(0, 256, (rows * columns // form.elements, form.width), np.uint8)
    for at in HALVES.get(name, (0,)):
        scales = CHANCE.uniform(0.002, 0.02, (len(data), 1)).astype(np.float16)
        data[:, at : at + 2] = scales.view(np.uint8)
    if name == "IQ1_M":  # the scale 2**-7, by 4 bits
        data[:, 49:56:2] = data[:, 49:56:2] & 15 | np.array([0, 0, 0, 0x20], np.uint8)
    if name == "MXFP4":
        data[:, 0] = CHANCE.integers(118, 122, len(data))
    if name == "NVFP4":
        data[:, :4] = CHANCE.integers(1, 10, (len(data), 4))
    return data.tobytes()


@pytest.mark.parametrize("name", ELEMENTS)
def test_blocks_are_taken_as_they_are(name: str) -> None:
    form = FORMS[NUMBERS[name]]
    data = blocks(name, 2, 512)
    found = stored(form, np.frombuffer(data, np.uint8), (2, 512))
    assert isinstance(found, Blocks)
    parts = [data[at : at + form.width] for at in range(0, len(data), form.width)]
    wanted = [ELEMENTS[name](part, i) for part in parts for i in range(form.elements)]
    np.testing.assert_allclose(found.floats.reshape(-1), wanted, rtol=1e-6, atol=1e-6)


def test_tables_of_groups_are_those_of_ggml() -> None:
    found = {name: zlib.crc32(grid(name).tobytes()) for name in GRIDS}
    assert found == GRIDS


def text(words: str) -> bytes:
    return struct.pack("<Q", len(words)) + words.encode()


def value(said: str | bool | int | float | list[bool]) -> bytes:
    if isinstance(said, str):
        return struct.pack("<I", 8) + text(said)
    if isinstance(said, list):
        return struct.pack("<IIQ", 9, 7, len(said)) + bytes(said)
    kind, form = (7, "?") if isinstance(said, bool) else (4, "I") if isinstance(said, int) else (6, "f")
    return struct.pack(f"<I{form}", kind, said)


def gguf(said: Mapping[str, Any], tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> bytes:
    made = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(said))
    for name, each in said.items():
        made += text(name) + value(each)
    place, parts = 0, b""
    for name, (kind, shape, data) in tensors.items():
        made += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], NUMBERS[kind], place)
        parts += data + bytes(-len(data) % 32)
        place = len(parts)
    return made + bytes(-len(made) % 32) + parts


SAID = {
    "general.architecture": "llama",
    "llama.context_length": 32,
    "llama.embedding_length": 32,
    "llama.block_count": 2,
    "llama.feed_forward_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def llama(kind: str) -> tuple[bytes, dict[str, np.ndarray]]:
    """A file, and what it means."""
    weights = random_weights({**SIZES, "width": 32, "hidden": 64}, CHANCE)
    tensors = dict[str, tuple[str, tuple[int, ...], bytes]]()
    for role, array in list(weights.items()):
        if array.ndim == 1:
            tensors[role] = "F32", array.shape, array.astype(np.float32).tobytes()
            continue
        data = blocks(kind, *array.shape)
        found = stored(FORMS[NUMBERS[kind]], np.frombuffer(data, np.uint8), array.shape)
        floats = found.floats if isinstance(found, Blocks) else found
        if role.endswith((".q", ".k")):  # channels that turn together are neighbours there
            floats = floats.reshape(-1, 4, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        weights[role] = floats
        tensors[role] = kind, array.shape, data
    return gguf(SAID, named(tensors, GGUF_NAMES)), weights


def evaluated(path: Path, tokens: np.ndarray) -> np.ndarray:
    """The logits behind the last token."""
    model = read_proto(path)
    caches = {entry.name: np.zeros((1, 2, 0, 8), np.float32) for entry in model.graph.input[1:]}
    return np.asarray(ReferenceEvaluator(model).run(["logits"], {"input_ids": tokens[None], **caches})[0]).reshape(-1)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q5_1"])
def test_a_llama_computes_with_the_blocks_of_its_file(kind: str, tmp_path: Path) -> None:
    data, weights = llama(kind)
    path = tmp_path / "llama.gguf"
    path.write_bytes(data)
    tokens = CHANCE.integers(0, 48, 7)
    np.testing.assert_allclose(evaluated(path, tokens), logits(tokens, weights, 2, 4, 2)[-1], rtol=1e-3, atol=1e-4)


def test_phi3_has_gate_and_up_in_one_matrix(tmp_path: Path) -> None:
    weights = random_weights({**SIZES, "width": 32}, CHANCE)
    parts = dict(weights)
    for n in range(2):
        parts[f"{n}.qkv"] = np.concatenate([parts.pop(f"{n}.{side}") for side in "qkv"])
        parts[f"{n}.up"] = np.concatenate([parts.pop(f"{n}.gate"), parts[f"{n}.up"]])
    parts["head"] = weights["head"] = weights["embed"][::-1].copy()
    said = {name.replace("llama", "phi3"): value for name, value in SAID.items()}
    said |= {"general.architecture": "phi3", "phi3.feed_forward_length": 40}
    tensors = {role: ("F32", w.shape, w.astype(np.float32).tobytes()) for role, w in parts.items()}
    path = tmp_path / "phi3.gguf"
    path.write_bytes(gguf(said, named(tensors, GGUF_NAMES)))
    tokens = CHANCE.integers(0, 48, 7)
    np.testing.assert_allclose(evaluated(path, tokens), logits(tokens, weights, 2, 4, 2)[-1], rtol=1e-4, atol=1e-5)


def refused(data: bytes, tmp_path: Path) -> MccError | None:
    path = tmp_path / "llama.gguf"
    path.write_bytes(data)
    try:
        read_proto(path)
    except MccError as error:
        assert error.exit_code in (Exit.UNSUPPORTED, Exit.BAD_FILE)
        return error
    return None


def test_what_is_not_known_is_refused(tmp_path: Path) -> None:
    data = llama("Q8_0")[0]
    other = data.replace(text("llama"), text("rwkv6"))
    for found, words, kind in (
        (other, "'rwkv6'; what is known", UnsupportedModel),
        (b"GGUF\1" + data[5:], "version 1", UnsupportedModel),
        (data[:-40], "lies at", BadFile),
        (data[:900], "it was cut off", BadFile),
        (b"GGUF\3\0\0\0", "it was cut off", BadFile),
    ):
        error = refused(found, tmp_path)
        assert isinstance(error, kind)
        assert words in str(error)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    data = llama("Q4_1")[0]
    for number in range(150):
        changed = bytearray(data)
        for place in CHANCE.integers(0, 2600, 1 + number % 3):
            changed[place] = CHANCE.integers(256)
        refused(bytes(changed), tmp_path)


def test_damaged_scales_are_infinite_without_a_warning() -> None:
    levels, scales = np.full((1, 32), 100, np.int8), np.full((1, 1), 3e38, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(Blocks(levels, 8, scales).floats).all()
