"""Several targets in one folder: each compiler sees the code for its own, and what cannot be told apart is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from embedded.models import path_of
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile, compile_jobs
from mccompile.emit.package import write_folder
from tests import small_models
from tests.small_models import save
from tests.thorough import some

HOST = {"x86-64-v3": ["-mavx2", "-mfma"], "generic": ["-mno-avx2"]}
ARM = "cortex-m4,cortex-m55"  # whose kernels for integers differ
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def folder_for(targets: str, folder: Path, **options: object) -> Path:
    path = path_of("separable_int8", folder) if targets == ARM else save(small_models.conv(), folder)
    _, files = compile_jobs([(path, Options(target=targets, **options))], "model")
    write_folder(folder / "out", files)
    return folder / "out"


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
@pytest.mark.parametrize("target", HOST)
def test_each_compiler_sees_what_it_would_see_alone(target: str, tmp_path: Path) -> None:
    folder = folder_for("x86-64-v3,aarch64,generic", tmp_path)
    compile(tmp_path / "conv.onnx", Options(target=target)).write(tmp_path / "alone")

    def seen(where: Path, file: str) -> list[str]:
        command = ["gcc", "-std=c99", *HOST[target], "-E", "-P", f"-I{where}/runtime", str(where / file)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    for file in ("conv.c", "conv_kernels.c", "conv_weights.c"):
        assert seen(folder, file) == seen(tmp_path / "alone", file)


@pytest.mark.parametrize("target", HOST)
def test_the_program_runs_on_both(target: str, tmp_path: Path) -> None:
    folder = folder_for("x86-64-v3,aarch64,generic", tmp_path)
    sources = [str(path) for path in folder.glob("*.c")]
    command = ["gcc", *STRICT, *HOST[target], f"-I{folder}/runtime", *sources, "-o", f"{folder}/a", "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([f"{folder}/a"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("y f32[")


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_for(ARM, tmp_path_factory.mktemp("arm"))


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
@some(1, ("core", "compiles"), [("cortex-m0", False), ("cortex-m4", True), ("cortex-m55", True)])
def test_a_core_that_is_not_among_them_is_an_error(core: str, compiles: bool, arm: Path, tmp_path: Path) -> None:
    said = ""
    for source in (f"separable_int8{part}.c" for part in ("", "_kernels", "_weights")):
        flags = ["-mfloat-abi=soft"] if core == "cortex-m0" else ["-mfloat-abi=softfp", "-mfpu=auto"]
        command = ["arm-none-eabi-gcc", "-std=c99", "-mthumb", f"-mcpu={core}", *flags, f"-I{arm}/runtime"]
        command += ["-c", str(arm / source), "-o", str(tmp_path / "a.o")]
        said += subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert ("is made for cortex-m4, cortex-m55" in said) != compiles
    assert bool(said) != compiles


def test_what_is_the_same_stands_once_and_blobs_are_named_after_targets(tmp_path: Path) -> None:
    folder = folder_for("x86-64-v3,aarch64,generic", tmp_path)
    assert "#elif" not in (folder / "runtime" / "mcc.h").read_text()
    blobs = ["conv-aarch64.mcb", "conv-generic.mcb", "conv-x86-64-v3.mcb"]
    assert sorted(path.name for path in folder.glob("*.mcb")) == blobs
    report = json.loads((folder / "report.json").read_text())
    assert [each["target"] for each in report["targets"]] == ["x86-64-v3", "aarch64", "generic"]
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {*report["files"], "report.json"} == there


@pytest.mark.parametrize(
    ("targets", "options", "said"),
    [
        ("cortex-m4,cortex-m7", {}, "cannot be told apart"),
        ("cortex-m4,cortex-m0,cortex-m4", {}, "name it once"),
        ("generic,cortex-m4", {}, "would never be used"),
        ("cortex-m4,generic", {"blob": "incbin"}, "brought in by the assembler"),
        ("cortex-m4,cortex-m99", {}, "unknown target"),
    ],
)
def test_what_cannot_be_is_refused(targets: str, options: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=said):
        folder_for(targets, tmp_path, **options)
