"""A harness in C of functions of the runtime, built and loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mccompile.base.discovery import data_folder
from mccompile.toolchain.build import Library, compile_shared, find_compiler, load

STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def built(harness: Path, folder: Path, compiler: str, declared: str, *flags: str) -> Library:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    includes, out = [data_folder("runtime_c") / "include"], folder / f"{harness.stem}.so"
    compile_shared(find_compiler(compiler), [harness], includes, out, [*STRICT, *flags])
    return load(out, declared)
