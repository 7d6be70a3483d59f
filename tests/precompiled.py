"""The compiler's own header of vectors, which takes longer to read than what includes it: read once for many programs.

Invariant: what is compiled means the same: a compiler leaves out, or refuses, what was read with flags by which the
header would be another."""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# Without what it includes of the C library, which asks first which functions a program wants.
HEADER = "#define _MM_MALLOC_H_INCLUDED\n#define __MM_MALLOC_H\n#include <immintrin.h>\n"
_FOR_X86 = ("-march=x86", "-march=native", "-msse2")
_KINDS = ("cc", "gcc", "clang")
_OF_OTHERS = ("-D", "-W", "-shared", "-static")  # flags that the header does not depend on


def flags_of(command: Sequence[str], flags: Sequence[str]) -> list[str]:
    """What to add to the flags of a program for vectors of x86, from the second one with these flags on."""
    key = (*command, *(flag for flag in flags if not flag.startswith(_OF_OTHERS)))
    if command[0] not in _KINDS or len(command) > 1 or not any(flag.startswith(_FOR_X86) for flag in flags):
        return []
    _asked[key] += 1
    return _made(key) if _asked[key] > 1 else []


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
