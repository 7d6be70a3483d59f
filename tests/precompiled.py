"""The compiler's own header of vectors, which takes longer to read than what includes it: read once for many programs.

Invariant: what is compiled means the same: a compiler leaves out, or refuses, what was read with flags by which the
header would be another."""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

# Without what it includes of the C library, which asks first which functions a program wants.
HEADER = "#define _MM_MALLOC_H_INCLUDED\n#define __MM_MALLOC_H\n#include <immintrin.h>\n"
_FOR_X86 = ("-march=x86", "-march=native", "-msse2")
_KINDS = ("cc", "gcc", "clang")
_OF_OTHERS = ("-D", "-I", "-W", "-shared", "-static")  # flags that the header does not depend on
_READERS = (
    b"immintrin.h",
    b"mcc_vec",
    b"mcc_dot",
    b"mcc_narrow",
    b"mcc_shares",
)  # what names the header, or what includes it
_READ = (".h", ".mcb")  # files that a source may read
_MESSAGES = ("-W", "-pedantic")


def ahead(command: Sequence[str], flags: Sequence[str], sources: Sequence[Path]) -> Sequence[Path]:
    """Objects of a program for vectors of x86 in place of its sources: made once of the same text, and with the header
    of vectors where it is read, as others take longer with it. Where a compiler would say something, or fails, the
    sources stay."""
    if not _is_for_vectors(command, flags) or any(flag.startswith(_MESSAGES) for flag in flags):
        return sources
    around = sha256()
    for path in sorted(file for flag in flags if flag.startswith("-I") for file in Path(flag[2:]).glob("*")):
        if path.suffix in _READ:
            around.update(path.name.encode() + path.read_bytes())
    found = [_object(command, flags, source, around.digest()) for source in sources]
    return [made for made in found if made is not None] if all(found) else sources


def _object(command: Sequence[str], flags: Sequence[str], source: Path, around: bytes) -> Path | None:
    text = source.read_bytes()
    key = (*command, *(flag for flag in flags if not flag.startswith("-I")), sha256(text).digest(), around)
    if key not in _objects:
        made = Path(tempfile.mkdtemp(dir=folder().name), "object.o")
        more = flags_of(command, flags) if any(name in text for name in _READERS) else []
        compiling = [*command, *flags, *more, "-c", str(source), "-o", str(made)]
        if subprocess.run(compiling, capture_output=True, check=False).returncode:
            return None
        _objects[key] = made
    return _objects[key]


def flags_of(command: Sequence[str], flags: Sequence[str]) -> list[str]:
    """What to add to the flags of a program for vectors of x86, from the second one with these flags on."""
    key = (*command, *(flag for flag in flags if not flag.startswith(_OF_OTHERS)))
    if not _is_for_vectors(command, flags):
        return []
    _asked[key] += 1
    return _made(key) if _asked[key] > 1 else []


def _is_for_vectors(command: Sequence[str], flags: Sequence[str]) -> bool:
    return command[0] in _KINDS and len(command) == 1 and any(flag.startswith(_FOR_X86) for flag in flags)


_objects: dict[tuple[str | bytes, ...], Path] = {}
_asked: Counter[tuple[str, ...]] = Counter()


@cache
def _made(command: tuple[str, ...]) -> list[str]:
    header = Path(tempfile.mkdtemp(dir=folder().name), "vectors.h")
    header.write_text(HEADER, encoding="utf-8")
    make = [*command, "-x", "c-header", str(header), "-o", f"{header}.gch"]
    made = subprocess.run(make, capture_output=True, check=False)
    return ["-include", str(header)] if made.returncode == 0 else []


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Of this process."""
    return tempfile.TemporaryDirectory(prefix="precompiled-")
