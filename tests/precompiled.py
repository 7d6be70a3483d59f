"""The compiler's own header of vectors, which takes longer to read than what includes it: read once for many programs.

Invariant: what is compiled means the same, for a compiler leaves out what was read with other flags."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# Without what it includes of the C library, which asks first which functions a program wants.
HEADER = "#define _MM_MALLOC_H_INCLUDED\n#define __MM_MALLOC_H\n#include <immintrin.h>\n"
_FOR_X86 = ("-march=x86", "-march=native", "-msse2")
_KINDS = ("cc", "gcc")


def flags_of(command: Sequence[str], flags: Sequence[str]) -> list[str]:
    """What to add to the flags of a program that is compiled for vectors of x86."""
    kept = tuple(flag for flag in flags if flag not in ("-shared", "-static"))
    is_for_x86 = any(flag.startswith(_FOR_X86) for flag in flags) and not any(flag.startswith("-D") for flag in flags)
    return _made(command[0], kept) if is_for_x86 and len(command) == 1 and command[0] in _KINDS else []


@cache
def _made(compiler: str, flags: tuple[str, ...]) -> list[str]:
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    header = folder / "vectors.h"
    header.write_text(HEADER, encoding="utf-8")
    command = [compiler, *flags, "-x", "c-header", str(header), "-o", f"{header}.gch"]
    made = subprocess.run(command, capture_output=True, check=False)
    return ["-include", str(header)] if made.returncode == 0 else []


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Of this process."""
    return tempfile.TemporaryDirectory(prefix="precompiled-")
