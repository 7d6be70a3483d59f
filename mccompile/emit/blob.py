"""Writes the blob as runtime_c/SPEC.md describes it, and the identity that ties it to the code.

Invariant: the identity depends on code, interface, table, packings and facts, never on the values of weights; so a
retrained model of the same architecture has a blob that runs on the same firmware.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from ..base.constant import Constant
from ..base.errors import Problem, WrongUse
from ..base.records import dataclass
from ..plan.constants import Entry
from ..plan.ir import Plan
from ..targets.api import Build
from .files import Rendered

HEADER_BYTES, ENTRY_BYTES, SECTION = 64, 24, 64
VERSION = 1


def identity(plan: Plan, code: str, interface: Mapping[str, Any]) -> bytes:
    """16 bytes; `code` is the generated C without the identity itself, `interface` what lasts of it."""
    sha = hashlib.sha256(code.encode())
    sha.update(json.dumps(interface, sort_keys=True).encode())
    sha.update(_table(plan.entries))
    for entry in plan.entries:
        sha.update(f"{entry.name}:{entry.packing}\n".encode())
    for fact in plan.assumptions:
        sha.update(f"fact:{fact}\n".encode())
    return sha.digest()[:16]


def blob_bytes(plan: Plan) -> int:
    """How long the file is."""
    return _data_offset(plan) + data_bytes(plan)


def data_bytes(plan: Plan) -> int:
    """How long the section of data is."""
    return _padded(plan.data_bytes)


def blob(plan: Plan, identity: bytes, alignment: int) -> Rendered:
    """The whole file, one constant after the other, as weights may be most of the memory there is."""
    begin, size = _data_offset(plan), blob_bytes(plan)
    listed = plan.entries if plan.lists_constants else ()
    table = _table(listed).ljust(begin - HEADER_BYTES, b"\0")
    checksum = 0
    for piece in _data(plan):
        checksum = zlib.crc32(piece, checksum)
    numbers = VERSION, HEADER_BYTES, size, identity, begin, size - begin, alignment, len(listed), checksum
    head = struct.pack("<4sHHQ16sQQIII", b"MCCB", *numbers)
    head += struct.pack("<I", zlib.crc32(table, zlib.crc32(head)))
    return lambda: itertools.chain((head + table,), _data(plan))


def _data(plan: Plan) -> Iterator[bytes]:
    """All constants, each at its place."""
    at = 0
    for entry in plan.entries:
        contents = element_bytes(entry.contents)
        yield bytes(entry.offset - at)
        yield contents
        at = entry.offset + len(contents)
    yield bytes(_padded(plan.data_bytes) - at)


def _data_offset(plan: Plan) -> int:
    return _padded(HEADER_BYTES + ENTRY_BYTES * len(plan.entries) * plan.lists_constants)


def _padded(nbytes: int) -> int:
    return -(-nbytes // SECTION) * SECTION


def _table(entries: Iterable[Entry]) -> bytes:
    return b"".join(_entry(entry) for entry in entries)


def _entry(entry: Entry) -> bytes:
    type = entry.contents.type
    return struct.pack("<QQII", entry.offset, type.max_bytes, type.dtype.onnx, zlib.crc32(entry.name.encode()))


def element_bytes(constant: Constant) -> bytes:
    """Elements as they lie in memory: little-endian, 4-bit and 2-bit ones packed with the first in the lowest bits."""
    dtype = constant.type.dtype
    if not dtype.is_packed:
        return constant.raw_bytes()
    per_byte = 8 // dtype.bits
    values = np.asarray(constant.array)
    flat = values.view(np.uint8).reshape(-1) & np.uint8((1 << dtype.bits) - 1)
    padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
    padded[: flat.size] = flat
    groups = padded.reshape(-1, per_byte)
    packed = np.zeros(len(groups), np.uint8)
    for position in range(per_byte):
        packed |= groups[:, position] << (position * dtype.bits)
    return packed.tobytes()


class Carrier(StrEnum):
    """How a program gets the blob."""

    ARRAY = "array"
    INCBIN = "incbin"
    EXTERNAL = "external"


@dataclass(frozen=True)
class Delivery:
    """How a program gets the blob, and the section where the linker puts it, if one is named."""

    carrier: Carrier = Carrier.ARRAY
    section: str = ""

    def check(self) -> None:
        """Refuses a name that no linker knows, and a section for weights that the program brings itself."""
        section = self.section
        if section and not re.fullmatch(r"[A-Za-z_.][\w.]*", section, re.ASCII):
            why = "sections are named with letters, digits, _ and ."
            what, fix = f"the weights cannot be in section {section!r}", "--weights-section .weights"
            raise WrongUse(Problem(what, "--weights-section", why, fix))
        if section and self.carrier == Carrier.EXTERNAL:
            why, fix = "the weights are not linked: the program loads them", "leave out --weights-section"
            raise WrongUse(Problem("--weights-section does not go with --blob external", "--weights-section", why, fix))


def refuse_incbin(build: Build) -> None:
    if build.is_wasm:
        why = f"target {build.target} has no ELF files, which .incbin needs"
        raise WrongUse(Problem("--blob incbin does not work for this target", "--blob incbin", why, "leave out --blob"))


def incbin_source(prefix: str, nbytes: int, alignment: int, section: str = "") -> str:
    """The blob's file brought in by the assembler: compiles at once, however large it is. For compilers like gcc and
    linkers of ELF files; the folder of the blob must be on the include path."""
    return f"""/* {prefix}_weights.c: brings {prefix}.mcb, which must be on the include path, into the program. */
#include "{prefix}.h"

#if !defined(__ELF__)
#error "{prefix}.mcb is brought in by .incbin, for ELF only: compile the model with --blob array"
#endif

const size_t {prefix}_weights_bytes = {nbytes}u;

__asm__(".section {section or f".rodata.{prefix}_weights"},\\"a\\"\\n"
        ".balign {alignment}\\n"
        ".global {prefix}_weights\\n"
        "{prefix}_weights:\\n"
        ".incbin \\"{prefix}.mcb\\"\\n"
        ".size {prefix}_weights, . - {prefix}_weights\\n"
        ".previous\\n");
"""


def _section_macro(name: str, section: str) -> list[str]:
    """Compilers that would not put the array there stop: tcc knows the attribute, and ignores it for data."""
    return [
        f"/* The weights are in section {section}; for a compiler that says it otherwise, define this macro. */",
        f"#ifndef {name}",
        "#if defined(__GNUC__) && !defined(__TINYC__)",
        f'#define {name} __attribute__((section("{section}")))',
        "#else",
        f'#error "define {name} as what puts an array in section {section}"',
        "#endif",
        "#endif",
        "",
    ]


def weights_source(prefix: str, blob: Rendered, nbytes: int, alignment: int, section: str = "") -> Iterator[bytes]:
    """The same bytes as a C array of 64-bit words: five times quicker to compile than one of bytes."""
    macro = f"{prefix.upper()}_WEIGHTS_SECTION"
    placed = f"{macro} " if section else ""
    head = [
        f"/* {prefix}_weights.c: the bytes of {prefix}.mcb, for programs that carry the weights in their image. */",
        f'#include "{prefix}.h"',
        "",
        f"const size_t {prefix}_weights_bytes = {nbytes}u;",
        *(_section_macro(macro, section) if section else []),
        f"MCC_ALIGNED({alignment}) {placed}const uint64_t {prefix}_weights[{nbytes // 8}] = {{",
        "",
    ]
    yield "\n".join(head).encode()
    for words in _words(blob()):
        yield _rows(words)
    yield b"};\n"


def _words(pieces: Iterable[bytes]) -> Iterator[np.ndarray]:
    """The words of a file, so many at once that all rows but the last are whole."""
    waiting = bytearray()
    for piece in pieces:
        for begin in range(0, len(piece), 8 * WORDS_AT_ONCE):
            waiting += memoryview(piece)[begin : begin + 8 * WORDS_AT_ONCE]
            if len(waiting) >= 8 * WORDS_AT_ONCE:
                yield np.frombuffer(bytes(waiting[: 8 * WORDS_AT_ONCE]), "<u8")
                del waiting[: 8 * WORDS_AT_ONCE]
    if waiting:
        yield np.frombuffer(bytes(waiting), "<u8")


WORDS_PER_ROW = 5
WORDS_AT_ONCE = WORDS_PER_ROW << 16
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def _rows(words: np.ndarray) -> bytes:
    """Words in hexadecimal, five to a row."""
    if len(words) % WORDS_PER_ROW:
        whole = len(words) // WORDS_PER_ROW * WORDS_PER_ROW
        last = " ".join(f"0x{word:016X}u," for word in words[whole:])
        return (_rows(words[:whole]) if whole else b"") + f"    {last}\n".encode()
    each = np.frombuffer(words.astype(">u8").tobytes(), np.uint8).reshape(-1, WORDS_PER_ROW, 8)
    text = np.empty((*each.shape[:2], len(" 0x0123456789ABCDEFu,")), np.uint8)
    text[:] = np.frombuffer(b" 0x0123456789ABCDEFu,", np.uint8)
    text[:, :, 3:19:2], text[:, :, 4:19:2] = _DIGITS[each >> 4], _DIGITS[each & 15]
    rows = np.empty((len(each), 3 + WORDS_PER_ROW * text.shape[2] + 1), np.uint8)
    rows[:, :3], rows[:, 3:-1], rows[:, -1] = ord(" "), text.reshape(len(each), -1), ord("\n")
    return rows.tobytes()
