"""However a program gets its weights, the model and its blob are the same."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options
from mccompile.emit.blob import Carrier
from tests import small_models
from tests.emit.test_generated_c import STRICT
from tests.small_models import compiled, written


@pytest.mark.parametrize("carrier", [*Carrier])
def test_a_program_builds_and_runs(carrier: str, tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path, Options(blob=carrier))
    subprocess.run(["make", "-s", "-C", folder, f"CFLAGS={' '.join(STRICT)}"], check=True, capture_output=True)
    done = subprocess.run(["./conv"], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("y f32[1,4,6,6]: ")


@pytest.mark.parametrize("carrier", [*Carrier])
def test_code_and_blob_do_not_depend_on_it(carrier: str) -> None:
    first, second = (compiled(small_models.conv(), Options(blob=name)).files for name in (Carrier.ARRAY, carrier))
    assert all(first[name] == second[name] for name in ("conv.c", "conv_kernels.c", "conv.mcb"))


def test_an_external_blob_is_in_no_c_file() -> None:
    files = compiled(small_models.conv(), Options(blob=Carrier.EXTERNAL)).files
    assert "conv_weights.c" not in files and "conv.mcb" in files
    assert b"conv_weights" not in files["conv.h"] + files["main.c"] + files["Makefile"] + files["CMakeLists.txt"]


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(WrongUse, match="array, incbin, external"):
        compiled(small_models.conv(), replace(Options(), blob="zip"))


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++"])
def test_weights_are_in_the_section_that_is_asked_for(compiler: str, tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path, Options(weights_section=".qspi"))
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    strict = ["-std=c++11", "-x", "c++"] if compiler == "g++" else STRICT
    command = [compiler, *strict, "-I.", "-Iruntime", "-c", "conv_weights.c", "-o", "weights.o"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    headers = ["objdump", "-h", "-j", ".qspi", "weights.o"]
    found = subprocess.run(headers, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert int(found.split(".qspi")[1].split()[0], 16) == (folder / "conv.mcb").stat().st_size


def test_the_assembler_puts_weights_there_too() -> None:
    files = compiled(small_models.conv(), Options(blob="incbin", weights_section=".qspi")).files
    assert b".section .qspi," in files["conv_weights.c"]


def test_other_compilers_are_told_the_section_by_a_macro(tmp_path: Path) -> None:
    folder = written(small_models.conv(), tmp_path, Options(weights_section=".qspi"))
    command = ["gcc", "-DCONV_WEIGHTS_SECTION=", "-I.", "-Iruntime", "-c", "conv_weights.c", "-o", "weights.o"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    found = subprocess.run(["objdump", "-h", "weights.o"], cwd=folder, check=True, capture_output=True, text=True)
    assert ".qspi" not in found.stdout and ".rodata" in found.stdout


@pytest.mark.parametrize(
    ("section", "carrier", "why"),
    [('"; evil', Carrier.ARRAY, "letters, digits"), (".qspi", Carrier.EXTERNAL, "the program loads them")],
)
def test_a_section_that_cannot_be_is_refused(section: str, carrier: str, why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        compiled(small_models.conv(), Options(weights_section=section, blob=carrier))
