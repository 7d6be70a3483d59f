"""The folder: strict compilers take it, its program tests the functions, and what is somebody else's stays."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import mccompile
from mccompile.base.errors import WrongUse
from mccompile.cli import run
from mccompile.imgproc.api import functions
from tests.thorough import some

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
EVERY = ",".join(functions())
COMPILERS = {"gcc": "-std=c99", "clang": "-std=c99", "g++": "-std=c++11"}


def built(folder: Path, compiler: str = "gcc") -> subprocess.CompletedProcess[str]:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    places = [f"-I{folder}", f"-I{folder}/runtime"]
    sources = [str(path) for path in folder.glob("*.c")]
    language = ["-x", "c++"] if compiler == "g++" else []
    flags = [COMPILERS[compiler], "-O1", *WARNINGS, *places, *language]
    subprocess.run([compiler, *flags, *sources, "-o", str(folder / "t"), "-lm"], check=True)
    return subprocess.run([str(folder / "t")], capture_output=True, text=True, check=False)


@some(1, "compiler", COMPILERS)
@pytest.mark.parametrize("how", [{}, {"size": (23, 13), "to": (9, 12), "channels": 3, "strided": True, "dtype": "f32"}])
def test_the_program_finds_nothing_wrong(compiler: str, how: dict[str, object], tmp_path: Path) -> None:
    if "size" in how and compiler == "g++":
        how = {**how, "channels": 1, "strided": False}
    library = mccompile.image_functions(EVERY, **how)  # type: ignore[arg-type]
    done = built(library.write(tmp_path / "out"), compiler)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == len(library.functions)
    assert all(": 0 of " in line and line.endswith(" us") for line in lines)


def test_sizes_in_the_code_pass_too(tmp_path: Path) -> None:
    library = mccompile.image_functions(EVERY, size=(24, 14), to=(9, 12), channels=1)
    assert built(library.write(tmp_path / "out"), "clang").returncode == 0


def test_the_program_finds_a_wrong_number(tmp_path: Path) -> None:
    folder = mccompile.image_functions("cvt_color=rgb2gray").write(tmp_path / "out")
    path = folder / "imgproc.c"
    path.write_text(path.read_text().replace("9798", "9998"))
    assert built(folder).returncode == 1


def test_nothing_is_written_where_arguments_do_not_fit(tmp_path: Path) -> None:
    folder = mccompile.image_functions("cvt_color=yuv2rgb_nv21,roi", channels=1).write(tmp_path / "out")
    (folder / "main.c").write_text(
        """#include "imgproc.h"
int main(void) {
    uint8_t x[64] = {1}, y[64] = {0};
    int wrong = imgproc_roi(y, 4, x, 8, 8, 8, 4, 4, 5, 0) != MCC_ERR_SIZE;
    wrong += imgproc_roi(y, 4, x, 8, 8, 8, 4, 4, -1, 0) != MCC_ERR_SIZE;
    wrong += imgproc_roi(y, 3, x, 8, 8, 8, 4, 4, 0, 0) != MCC_ERR_SIZE;
    wrong += imgproc_roi(y, 4, x, 7, 8, 8, 4, 4, 0, 0) != MCC_ERR_SIZE;
    wrong += imgproc_roi(y, 4, x, 8, 0, 8, 4, 4, 0, 0) != MCC_ERR_SIZE;
    wrong += imgproc_roi(NULL, 4, x, 8, 8, 8, 4, 4, 0, 0) != MCC_ERR_NULL;
    wrong += imgproc_cvt_color_yuv2rgb_nv21(y, 9, x, 3, 3, 2) != MCC_ERR_SIZE;
    wrong += imgproc_cvt_color_yuv2rgb_nv21(y, 6, x, 2, 2, 3) != MCC_ERR_SIZE;
    for (int i = 0; i < 64; ++i) wrong += y[i];
    wrong += imgproc_roi(y, 4, x, 8, 8, 8, 4, 4, 0, 0) != MCC_OK || y[0] != 1;
    return wrong;
}
"""
    )
    assert built(folder).returncode == 0


def test_too_little_scratch_is_refused(tmp_path: Path) -> None:
    folder = mccompile.image_functions("resize=bilinear,resize=area,gaussian=5", channels=1).write(tmp_path / "out")
    (folder / "main.c").write_text(
        """#include "imgproc.h"
int main(void) {
    static MCC_ALIGNED(IMGPROC_SCRATCH_ALIGN) uint8_t room[64];
    uint8_t x[16] = {0}, y[16] = {0};
    const size_t bytes = IMGPROC_RESIZE_BILINEAR_SCRATCH_BYTES(2);
    int wrong = imgproc_resize_bilinear(y, 2, x, 4, 4, 4, 2, 2, room, bytes - 1) != MCC_ERR_ARENA_SIZE;
    wrong += imgproc_resize_bilinear(y, 2, x, 4, 4, 4, 2, 2, room + 1, bytes) != MCC_ERR_ARENA_ALIGN;
    wrong += imgproc_resize_bilinear(y, 2, x, 4, 4, 4, 2, 2, NULL, bytes) != MCC_ERR_NULL;
    wrong += imgproc_resize_bilinear(y, 2, x, 4, 4, 4, 2, 2, room, bytes) != MCC_OK;
    wrong += imgproc_resize_area(y, 2, x, 32767, 32767, 32767, 2, 2, room, sizeof room) != MCC_ERR_SIZE;
    wrong += imgproc_gaussian_5(y, 4, x, 4, 4, 4, room, 15) != MCC_ERR_ARENA_SIZE;
    wrong += imgproc_gaussian_5(y, 4, x, 4, 4, 4, room, IMGPROC_GAUSSIAN_5_SCRATCH_BYTES(4)) != MCC_OK;
    return wrong;
}
"""
    )
    assert built(folder).returncode == 0


def test_what_was_edited_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["imgproc", "flip", "-o", str(tmp_path / "out")]
    assert run(command) == 0 and run(command) == 0
    (tmp_path / "out" / "imgproc.c").write_text("mine")
    assert run(command) == 2 and "was edited" in capsys.readouterr().err
    assert run([*command, "--force"]) == 0


def test_the_report_says_what_there_is(tmp_path: Path) -> None:
    library = mccompile.image_functions("roi", size=(8, 8), target="cortex-m4", name="img")
    report = json.loads(library.files["report.json"])
    assert report["target"] == "cortex-m4" and report["prefix"] == "img"
    assert report["sizes"] == {"width": 8, "height": 8}
    assert report["image_functions"] == [{"name": "img_roi", "scratch_bytes": 0}]
    assert b"-mcpu=cortex-m4" in library.files["Makefile"]


def test_a_name_is_one_of_c() -> None:
    with pytest.raises(WrongUse, match="did you mean --name x3x"):
        mccompile.image_functions("roi", name="3x")


def test_the_help_names_every_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["imgproc", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in functions())
