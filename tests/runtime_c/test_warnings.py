"""The runtime compiles without a warning as C99 and as C++11, refuses fast math, and leaves nothing to link."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mccompile.base.discovery import data_folder
from tests.thorough import some

INCLUDE = data_folder("runtime_c") / "include"
# headers for some machines only, or parts of others: what compilers say of them, and a flag to bring it about
REFUSED = {
    **dict.fromkeys(
        ("mcc_dot4.h", "mcc_neon_winograd.h"),
        ("compile it for them, as -march=armv8-a or -msimd128 says", "-march=x86-64"),
    ),
    "mcc_dot8.h": ("compile it for one, as -march=x86-64-v3 says", "-march=x86-64"),
    "mcc_dot_winograd.h": ("compile it for them, as -march=x86-64-v3 says", "-march=x86-64"),
    "mcc_dot16.h": ("compile it for one, as -march=x86-64-v4 says", "-march=x86-64-v3"),
    "mcc_module_code.h": ("include mcc_module.h", "-O2"),
    **{
        f"mcc_{part}.h": ("include that", "-O2")
        for part in ("dot_riscv", "vec_arm", "vec_helium", "vec_transpose", "vec_wasm", "vec_x86")
    },
    **dict.fromkeys(
        ("mcc_vecmath_half.h", "mcc_vecmath_wide_half.h", "mcc_vec_half.h"),
        ("compile it for a machine that does, as -march=armv8.2-a+fp16 says", "-march=x86-64"),
    ),
}
HARNESS = Path(__file__).with_name("harness.c")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
COMPILERS = {
    "gcc": ["-std=c99", *STRICT],
    "clang": ["-std=c99", *STRICT],
    "g++": ["-std=c++11", "-x", "c++", *STRICT],
    "clang++": ["-std=c++11", "-x", "c++", *STRICT],
    "tcc": ["-std=c99", "-Wall", "-Werror"],
}


def _compile(compiler: str, source: Path, out: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    command = [compiler, *flags, f"-I{INCLUDE}", "-c", str(source), "-o", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@some(2, "compiler", COMPILERS)
def test_no_warning(compiler: str, tmp_path: Path) -> None:
    done = _compile(compiler, HARNESS, tmp_path / "harness.o", "-O2", *COMPILERS[compiler])
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("header", sorted(path.name for path in INCLUDE.glob("*.h") if path.name not in REFUSED))
def test_each_header_stands_alone_and_costs_nothing(header: str, tmp_path: Path) -> None:
    source, out = tmp_path / "alone.c", tmp_path / "alone.o"
    source.write_text(f'#include "{header}"\n#include "{header}"\nextern int used;\nint used = 0;\n')
    done = _compile("gcc", source, out, *COMPILERS["gcc"])
    assert (done.returncode, done.stderr) == (0, "")
    if shutil.which("nm"):
        symbols = subprocess.run(["nm", str(out)], capture_output=True, text=True, check=True).stdout.split("\n")
        assert [line.split()[-1] for line in symbols if line] == ["used"]


TEXT = "".join(path.read_text("utf-8") for path in INCLUDE.glob("*.h"))
SWITCHES = sorted(set(re.findall(r"MCC_\w+_PORTABLE", TEXT)))


def _includes(path: Path) -> set[str]:
    """A header and all that it includes."""
    named = re.findall(r'#include "(mcc_\w+\.h)"', path.read_text("utf-8"))
    return {path.name}.union(*(_includes(INCLUDE / name) for name in named))


@some(1, "compiler", ["gcc", "clang", "g++"])
@pytest.mark.parametrize("switch", ["", *SWITCHES])
def test_headers_of_boards_stand_beside_each_other(switch: str, compiler: str, tmp_path: Path) -> None:
    """A network may need all but those of vectors; with each switch that takes C in place of instructions."""
    headers = {path.name: _includes(path) for path in INCLUDE.glob("*.h") if path.name not in REFUSED}
    names = sorted(name for name, found in headers.items() if "mcc_vec.h" not in found)
    assert {"mcc_dsp_wide.h", "mcc_dsp_depthwise.h", "mcc_helium.h", "mcc_scalar.h"} < set(names)
    source = tmp_path / "together.c"
    source.write_text("".join(f'#include "{name}"\n' for name in names) + "extern int used;\nint used = 0;\n")
    flags = [f"-D{switch}"] if switch else []
    done = _compile(compiler, source, tmp_path / "together.o", *COMPILERS[compiler], *flags)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_header_has_long_lines() -> None:
    lines = [(path.name, line) for path in INCLUDE.glob("*.h") for line in path.read_text("utf-8").splitlines()]
    assert not [(name, line) for name, line in lines if len(line) > 120]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of x86-64")
@pytest.mark.parametrize("header", REFUSED)
def test_a_header_for_some_machines_says_for_which(header: str, tmp_path: Path) -> None:
    source, (said, flag) = tmp_path / "alone.c", REFUSED[header]
    source.write_text(f'#include "{header}"\n')
    done = _compile("gcc", source, tmp_path / "alone.o", flag)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flag", ["-ffast-math", "-ffinite-math-only"])
def test_fast_math_is_refused(compiler: str, flag: str, tmp_path: Path) -> None:
    done = _compile(compiler, HARNESS, tmp_path / "harness.o", flag)
    assert done.returncode != 0
    assert f"compile without {flag}" in done.stderr


@pytest.mark.parametrize(
    "flag", ["-DMCC_NO_CRC", "-DMCC_CRC_TABLE", "-DMCC_CRC32(crc,p,count)=((crc)+(p)[0]+(uint32_t)(count))"]
)
def test_no_warning_with_other_checksums(flag: str, tmp_path: Path) -> None:
    done = _compile("gcc", HARNESS, tmp_path / "harness.o", *COMPILERS["gcc"], flag)
    assert (done.returncode, done.stderr) == (0, "")
