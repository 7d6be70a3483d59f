"""The C that comes out: it compiles without a warning everywhere, needs nothing, and is the same bytes every time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import small_models
from tests.small_models import save, written
from tests.thorough import some

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
COMPILERS = {
    "gcc": ["-std=c99", "-O2", *STRICT],
    "clang": ["-std=c99", "-O2", *STRICT],
    "g++": ["-x", "c++", "-std=c++11", "-O2", *STRICT],
    "tcc": ["-std=c99", "-Wall", "-Werror"],
}
# What generated code may leave to be linked: memory functions and libm. Compilers add their own (__aeabi_*, libgcc).
ALLOWED = set(["memcmp", "memcpy", "memset", "memmove"])
LIBM = set(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "fabs",
        "floor",
        "fma",
        "fmax",
        "fmin",
        "fmod",
        "log",
        "log10",
        "log1p",
        "log2",
        "pow",
        "rint",
        "round",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
        "nearbyint",
        "remainder",
        "ldexp",
        "frexp",
    ]
)


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@some(1, "compiler", COMPILERS)
@pytest.mark.parametrize("name", small_models.ALL)
def test_compiles_without_a_warning(name: str, compiler: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    folder = written(small_models.ALL[name](), tmp_path)
    for source in sorted(folder.glob("*.c")):
        run([compiler, *COMPILERS[compiler], "-I.", "-Iruntime", "-c", source.name, "-o", f"{source.stem}.o"], folder)


@pytest.mark.parametrize("name", small_models.ALL)
def test_needs_nothing_but_memory_functions_and_libm(name: str, tmp_path: Path) -> None:
    folder = written(small_models.ALL[name](), tmp_path)
    sources = [path.name for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    run(["gcc", "-std=c99", "-O2", "-Iruntime", "-c", *sources], folder)
    run(["ld", "-r", "-o", "whole.o", *(source.replace(".c", ".o") for source in sources)], folder)
    undefined = {line.split()[-1] for line in run(["nm", "-u", "whole.o"], folder).splitlines()}
    assert not {symbol for symbol in undefined if symbol not in ALLOWED and symbol.removesuffix("f") not in LIBM} - LIBM


@pytest.mark.parametrize("name", small_models.ALL)
def test_every_public_symbol_has_the_prefix(name: str, tmp_path: Path) -> None:
    folder = written(small_models.ALL[name](), tmp_path)
    sources = [path.name for path in sorted(folder.glob("*.c")) if path.name != "main.c"]
    run(["gcc", "-std=c99", "-Iruntime", "-c", *sources], folder)
    objects = [source.replace(".c", ".o") for source in sources]
    symbols = [
        line.split()[-1] for line in run(["nm", "-g", "--defined-only", *objects], folder).splitlines() if " " in line
    ]
    assert symbols
    assert not [symbol for symbol in symbols if not symbol.startswith(f"{name}_")]


def test_builds_and_runs_as_it_lies(tmp_path: Path) -> None:
    folder = written(small_models.branches(), tmp_path)
    run(["make", "CC=gcc"], folder)
    assert run(["./branches"], folder).startswith("y f32[1,4,5,4]: ")


@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_builds_with_cmake(tmp_path: Path) -> None:
    folder = written(small_models.branches(), tmp_path)
    run(["cmake", "-S", ".", "-B", "build"], folder)
    run(["cmake", "--build", "build"], folder)
    assert run(["build/branches_main"], folder).startswith("y f32[1,4,5,4]: ")


def test_is_the_same_bytes_in_every_folder_and_under_every_hash_seed(tmp_path: Path) -> None:
    path = save(small_models.branches(), tmp_path)
    found = []
    for seed in ("0", "1"):
        folder = tmp_path / f"of seed {seed}"
        folder.mkdir()
        shutil.copy(path, folder)
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-m", "mccompile", "branches.onnx", "-o", "out"]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        files = sorted(file for file in (folder / "out").rglob("*") if file.is_file())
        found.append([(file.relative_to(folder), file.read_bytes()) for file in files])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["main", "math", "mcc", "string", "9 lives!", "float", "naïve"])
def test_odd_names_compile(name: str, tmp_path: Path) -> None:
    made = small_models.passthrough()
    made.graph.name = "plain"
    folder = written(made, tmp_path, small_models.Options(name=name))
    run(["make", "CC=gcc"], folder)
