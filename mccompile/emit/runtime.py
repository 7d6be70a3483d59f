"""The runtime's headers, which generated code includes: their version, and which of them a file needs.

Invariant: what a generated file includes is known from the marks of its template (`${runtime("mcc.h")}`); only the
runtime's own headers, which stand in files of their own, are asked for their lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ..base.discovery import data_folder

VERSION = 1  # MCC_RUNTIME_VERSION of mcc.h
WORKERS = ("mcc_pool.h", "mcc_openmp.h", "mcc_cores.h")  # for models that workers share
READERS = ("mcc_file.h",)  # for those whose weights come through a window
_LINE, _END = '#include "', '"'


def include_line(header: str) -> str:
    return f"{_LINE}{header}{_END}"


@cache
def includes_of(header: str) -> tuple[str, ...]:
    """Which of the runtime's headers one of them includes, in that order."""
    return included_in(header_text(header))


def included_in(text: str) -> tuple[str, ...]:
    """The same of any file: those of the runtime."""
    lines = [line.removeprefix(_LINE).removesuffix(_END) for line in text.splitlines() if line.startswith(_LINE)]
    return tuple(line for line in lines if line in _there())


def runtime_headers(names: Iterable[str]) -> dict[str, str]:
    """Of these files those that are headers of the runtime, and all that they include, at their places."""
    missing, texts = list(names), dict[str, str]()
    while missing:
        name = missing.pop()
        if name in _there() and f"runtime/{name}" not in texts:
            texts[f"runtime/{name}"] = header_text(name)
            missing += includes_of(name)
    return texts


@cache
def header_text(header: str) -> str:
    """What stands in one of the runtime's headers."""
    return (_folder() / header).read_text(encoding="utf-8")


@cache
def _there() -> frozenset[str]:
    return frozenset(path.name for path in _folder().glob("*.h*"))


def _folder() -> Path:
    return data_folder("runtime_c") / "include"
