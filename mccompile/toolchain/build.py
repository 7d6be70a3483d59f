"""The host's C compiler: finds it, compiles and links with it, loads what it made. The only module that imports cffi.

Invariant: a failure names the command and shows the compiler's own words; nothing is loaded through Python's C API, so
a compiler is all that is needed (no Python.h).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cffi

from mccompile.base.errors import Problem, WrongUse
from mccompile.base.near import meant

from ..base.records import dataclass
from .tools import compiler_failed

DEFAULT_FLAGS = ("-std=c99", "-O2")
Paths = Sequence[Path]
LEVEL = ""  # of optimization, in place of the one among the flags: for who wants results once, and soon
QUICK = ""  # a compiler that is tried before a well-known one where C99 is all that is asked for
# What stands for sources, where some have been compiled already: given the command, flags and sources.
AHEAD: Callable[[Sequence[str], Sequence[str], Paths], Paths] | None = None
_WELL_KNOWN = ("cc", "gcc", "clang", "tcc")
_PLAIN = ("-std=c99", "-O", "-shared", "-fPIC", "-D")  # flags that every compiler has
_MESSAGE_LINES = 40  # the first error is the one that matters; hundreds may follow from it


@dataclass(frozen=True)
class Compiler:
    """A command that takes options like gcc's; more than one word if a launcher such as ccache stands before it."""

    command: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.command)


@dataclass(frozen=True)
class Library:
    """A loaded shared object: `functions.name(...)` calls, `ffi` converts pointers."""

    ffi: Any
    functions: Any

    def text(self, address: int, size: int) -> bytes:
        """Bytes that lie in memory."""
        return bytes(self.ffi.buffer(self.ffi.cast("char *", address), size))


def find_compiler(cc: str | None = None) -> Compiler:
    """The compiler asked for, else the one that the environment's CC names, else the first well-known one found."""
    asked, source = (cc, "--cc") if cc else (os.environ.get("CC", ""), "environment variable CC")
    if not asked:
        for name in _WELL_KNOWN:
            if shutil.which(name):
                return Compiler((name,))
        raise WrongUse(
            Problem(
                "no C compiler found",
                where="PATH",
                why=f"none of {', '.join(_WELL_KNOWN)} is installed",
                fix="install one (Debian: apt install gcc), or name yours: CC=/path/to/compiler",
            )
        )
    try:
        words = tuple(shlex.split(asked))
    except ValueError as error:
        raise _not_a_compiler(asked, source, f"its quotes do not close ({error})") from error
    if not words:
        raise _not_a_compiler(asked, source, "it is blank")
    if shutil.which(words[0]) is None:
        raise _not_a_compiler(asked, source, f"{words[0]} is not an executable file on the PATH")
    return Compiler(words)


def compile_shared(
    compiler: Compiler, sources: Paths, include_dirs: Paths, out: Path, flags: Sequence[str] = DEFAULT_FLAGS
) -> Path:
    """Compile and link a shared object; returns `out`."""
    return compile_program(compiler, sources, include_dirs, out, (*flags, "-shared", "-fPIC"))


def compile_program(
    compiler: Compiler, sources: Paths, include_dirs: Paths, out: Path, flags: Sequence[str] = DEFAULT_FLAGS
) -> Path:
    """Compile and link an executable; returns `out`."""
    includes = [f"-I{folder}" for folder in include_dirs]
    if LEVEL:
        flags = [*(flag for flag in flags if not flag.startswith("-O")), LEVEL]
    compiled = AHEAD(compiler.command, [*flags, *includes], sources) if AHEAD else sources
    rest = [*flags, *includes, *map(str, compiled), "-o", str(out), "-lm"]
    is_plain = compiler.command[0] in _WELL_KNOWN and all(flag.startswith(_PLAIN) for flag in flags)
    if QUICK and is_plain and subprocess.run([QUICK, *rest], capture_output=True, check=False).returncode == 0:
        return out
    command = [*compiler.command, *rest]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise _not_a_compiler(str(compiler), "command", str(error)) from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        if len(said) > _MESSAGE_LINES:
            said = [*said[:_MESSAGE_LINES], f"... and {len(said) - _MESSAGE_LINES} lines more"]
        others = " and others" if len(sources) > 1 else ""
        raise compiler_failed(f"{sources[0].name}{others}", command, "\n".join(said))
    return out


def load(shared_object: Path, cdef: str) -> Library:
    """Load a shared object whose functions are declared by `cdef`."""
    ffi = _declared(cdef)
    try:
        return Library(ffi, ffi.dlopen(str(shared_object.resolve())))
    except OSError as error:
        raise WrongUse(
            Problem(
                f"cannot load {shared_object.name}",
                where=str(shared_object),
                why=str(error),
                fix="use a compiler that builds for this machine, and flags that need no runtime of their own "
                "(a sanitizer's must be preloaded)",
            )
        ) from error


@cache
def _declared(cdef: str) -> cffi.FFI:
    """Reading declarations takes longer than loading what they are of."""
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    return ffi


def _not_a_compiler(asked: str, source: str, why: str) -> WrongUse:
    return WrongUse(
        Problem(
            f"cannot use {asked!r} as C compiler",
            where=source,
            why=why,
            fix=_instead(asked, source),
        )
    )


def _instead(asked: str, source: str) -> str:
    """A compiler that is there."""
    there = [name for name in _WELL_KNOWN if shutil.which(name)]
    if source == "--cc":
        return meant(asked, there, source) or "leave out --cc: the target names one"
    return f"give the command of an installed compiler, such as {' or '.join(there)}"
