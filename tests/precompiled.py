"""The headers of vectors, parsed once for all compilations with the same flags: each takes a quarter of a second."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory(prefix="mccompile-headers-")
_HEADERS = "#include <immintrin.h>\n"
_UNREAD = ("-I", "-D", "-shared", "-static", "-l")  # flags that change nothing in what headers say


def flags(command: Sequence[str], flags: Sequence[str]) -> tuple[str, ...]:
    """Flags in front of others that bring the headers precompiled, where these choose vectors of x86."""
    if not any(flag.startswith(("-march=x86-64-v", "-march=native", "-mavx")) for flag in flags):
        return ()
    return _precompiled(tuple(command), tuple(flag for flag in flags if not flag.startswith(_UNREAD)))


@cache
def _precompiled(command: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
    folder = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    header, result = folder / "vectors.h", folder / "vectors.h.gch"
    header.write_text(_HEADERS)
    call = [*command, *flags, "-x", "c-header", str(header), "-o", str(result)]
    if subprocess.run(call, capture_output=True, check=False).returncode:
        return ()  # a compiler that has none, or another machine's
    return ("-include", str(header))  # which gcc and clang take from the file beside it
