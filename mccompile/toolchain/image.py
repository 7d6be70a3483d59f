"""What a linked program consists of: sizes from the linker's map, addresses from the symbol table of its ELF file.

Invariant: only what the linker kept counts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from mccompile.base.errors import CheckFailed, Problem


def read_map(path: Path, prefix: str) -> dict[str, dict[str, int]]:
    """Bytes that the linker kept, by where they come from and by section, from its map."""
    found: dict[str, dict[str, int]] = {}
    for section, size, file in _kept(path.read_text(encoding="utf-8")):
        nbytes = int(size, 16)
        if nbytes:
            sections = found.setdefault(_source(file.strip(), prefix), {})
            name = section.removeprefix("s") if section.startswith("s") else section
            sections[name] = sections.get(name, 0) + nbytes
    return found


_SECTIONS = r"\.(text|rodata|srodata|data|sdata|bss|sbss)"
_GNU = re.compile(rf"^ {_SECTIONS}(?:\.\S*)?\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S.*)$", re.MULTILINE)
_LLD = re.compile(rf"^ +[0-9a-f]+ +[0-9a-f]+ +([0-9a-f]+) +\d+ +(\S.*):\({_SECTIONS}(?:\.\S*)?\)$", re.MULTILINE)
_WASM = re.compile(r"^ +[-0-9a-f]+ +[0-9a-f]+ +([0-9a-f]+) +(\S.*):\((?:\.(rodata|data|bss)\b)?.*\)$", re.MULTILINE)


def _kept(text: str) -> list[tuple[str, str, str]]:
    """Section, hexadecimal size, and file of each line that tells of one, in the map of GNU ld, or of lld for ELF or
    WebAssembly, whose functions have names and no section."""
    if text.lstrip().startswith("VMA"):
        return [(section, size, file) for size, file, section in _LLD.findall(text)]
    if text.lstrip().startswith("Addr"):
        return [(section or "text", size, file) for size, file, section in _WASM.findall(text)]
    return _GNU.findall(text.partition("Linker script and memory map")[2])


def _source(file: str, prefix: str) -> str:
    name = Path(file).name
    known = {f"{prefix}.o": "model", f"{prefix}_kernels.o": "kernels", f"{prefix}_weights.o": "weights"}
    if name in known:
        return known[name]
    return "libraries" if ".a(" in file else "program"


def address(program: Path, symbol: str) -> int:
    """Where a symbol of a program stands."""
    found = symbols(program).get(symbol)
    if found is None:
        raise CheckFailed(Problem(f"the program has no symbol {symbol}", str(program)))
    return found


def symbols(program: Path) -> dict[str, int]:
    """Where the symbols of a program stand, from its ELF symbol table."""
    contents = program.read_bytes()
    thumb = contents[18] == 40  # whose lowest bit says Thumb
    return {name: value & ~1 if thumb else value for name, value, _ in _symbols(contents)}


def function_bytes(program: Path) -> dict[str, int]:
    """Sizes of functions of an ELF file, by name without what compilers append; nothing of other files."""
    contents = program.read_bytes()
    found: dict[str, int] = {}
    listed = {*_symbols(contents, only_functions=True)} if contents.startswith(b"\x7fELF") else set()
    for name, _, size in sorted(each for each in listed if each[2]):
        own = name.partition(".")[0]
        found[own] = found.get(own, 0) + size
    return found


def _symbols(contents: bytes, only_functions: bool = False) -> Iterator[tuple[str, int, int]]:
    """Name, value and size."""
    wide = contents[4] == 2
    sections_at = struct.unpack_from("<Q" if wide else "<I", contents, 40 if wide else 32)[0]
    size, count = struct.unpack_from("<HH", contents, 58 if wide else 46)
    sections = [_section(contents, sections_at + size * number, wide) for number in range(count)]
    for kind, offset, length, link in sections:
        if kind not in ((2, 11) if only_functions else (2,)):  # SHT_SYMTAB; SHT_DYNSYM, all that some compilers write
            continue
        names = sections[link][1]
        for start in range(offset, offset + length, 24 if wide else 16):
            if only_functions and contents[start + (4 if wide else 12)] & 15 != 2:  # STT_FUNC
                continue
            name = names + struct.unpack_from("<I", contents, start)[0]
            value, nbytes = struct.unpack_from("<QQ" if wide else "<II", contents, start + (8 if wide else 4))
            yield contents[name : contents.index(b"\0", name)].decode(errors="replace"), value, nbytes


def _section(contents: bytes, start: int, wide: bool) -> tuple[int, int, int, int]:
    """Kind, offset, length and link of an entry of the section table."""
    kind = struct.unpack_from("<I", contents, start + 4)[0]
    if wide:
        return kind, *struct.unpack_from("<QQI", contents, start + 24)
    return kind, *struct.unpack_from("<III", contents, start + 16)
