"""What is written builds as it lies: with make and CMake, for every target of the host, whatever the model is called;
compilers that are not given the flags are told which."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from mccompile import cli
from mccompile.driver import Options, arrange, compile_jobs
from mccompile.emit.building import missing_flags
from mccompile.emit.folder import write_folder
from mccompile.emit.layouts import layouts
from mccompile.targets import api
from tests import small_models
from tests.small_models import compiled, save
from tests.thorough import some

VECTORS = {"x86-64-v3": "-march=x86-64-v3", "x86-64-v4": "-march=x86-64-v4"}
TAKEN = ["all", "clean", "help", "install", "m", "runtime", "test"]
WAYS = ["make", "cmake", "package-make", "package-cmake"]
HOST = [("native", "make"), ("native", "cmake"), ("x86-64-v4", "make"), *(("x86-64-v3", way) for way in WAYS)]


def build(way: str, folder: Path, name: str, target: str = "generic") -> list[Path]:
    """Builds one model in one way; gives the libraries and programs that came out."""
    files = compiled(small_models.conv(), Options(target=target, name=name)).files
    if way.startswith("package"):
        files = arrange(files, way.removeprefix("package-"), name, Options())
    out = folder / "out"
    write_folder(out, files)
    return built(out, "cmake" if "cmake" in way else "make", folder / "build")


def built(out: Path, tool: str, aside: Path, *settings: str) -> list[Path]:
    if tool == "make":
        run("make", "-C", out, *settings)
    else:
        out_of_source = [f"-D{setting}" for setting in settings]
        run("cmake", "-S", out, "-B", aside, *out_of_source)
        run("cmake", "--build", aside)
        out = aside
    return [path for path in out.iterdir() if path.suffix == ".a" or is_program(path)]


def is_program(path: Path) -> bool:
    return path.is_file() and not path.suffix and path.read_bytes()[:4] in (b"\x7fELF", b"\0asm")


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr.lower(), done.stderr
    return done.stdout


@some(3, ("target", "way"), HOST)
def test_every_target_of_the_host_builds(target: str, way: str, tmp_path: Path) -> None:
    if "cmake" in way and not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    assert sorted(path.suffix for path in build(way, tmp_path, "conv", target)) == ["", ".a"]


@some(
    4,
    ("name", "way"),
    [*((name, "make") for name in TAKEN), ("all", "cmake"), ("m", "cmake"), ("test", "cmake"), ("m", "package-cmake")],
)
def test_a_name_that_builds_have_taken_is_none_of_a_model_s_targets(name: str, way: str, tmp_path: Path) -> None:
    if "cmake" in way and not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    found = build(way, tmp_path, name)
    assert sorted(path.suffix for path in found) == ["", ".a"]
    assert f"lib{name}.a" not in {path.name for path in found}  # -lm with -L of this folder is the C library's
    assert run(next(path for path in found if not path.suffix)).startswith("y f32[")


def test_names_that_builds_have_taken_among_several(tmp_path: Path) -> None:
    jobs = []
    for name in ("all", "clean"):
        made = small_models.conv()
        made.graph.name = name
        jobs.append((save(made, tmp_path), Options()))
    write_folder(tmp_path / "out", compile_jobs(jobs, "test")[1])
    assert len(built(tmp_path / "out", "make", tmp_path)) == 3


@pytest.mark.parametrize("target", api.names())
def test_what_tells_of_missing_flags_has_no_long_line(target: str) -> None:
    assert max(map(len, missing_flags(api.load(target).build, "model_of_a_name").splitlines()), default=0) <= 120


@some(1, "single", [False, True])
@pytest.mark.parametrize("target", VECTORS)
def test_a_compiler_without_the_flags_is_told_which(target: str, single: bool, tmp_path: Path) -> None:
    made = compiled(small_models.conv(), Options(target=target, single_file=single))
    write_folder(tmp_path, made.files)
    source = tmp_path / ("conv.c" if single else "conv_kernels.c")
    command = ["gcc", "-std=c99", f"-I{tmp_path}/runtime", "-fsyntax-only", str(source)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    first = next(line for line in said.splitlines() if "error" in line)
    assert "#error" in first and VECTORS[target] in first
    run(*command, VECTORS[target])


@pytest.mark.parametrize("target", VECTORS)
def test_header_report_and_summary_name_the_flags(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save(small_models.conv(), tmp_path)
    assert cli.run([str(model), "--target", target, "-o", str(tmp_path / "out")]) == 0
    flags = [VECTORS[target], "-ffp-contract=off"]
    assert f"flags    {' '.join(flags)}\n" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "report.json").read_text())["flags"] == flags
    assert VECTORS[target] in (tmp_path / "out" / "conv.h").read_text().partition("#ifndef")[0]


@pytest.mark.parametrize("layout", sorted(layouts()))
def test_every_package_names_the_flags(layout: str) -> None:
    wanted = layouts()[layout]
    options = Options(target=wanted.target or "x86-64-v3", wrappers=tuple(filter(None, [wanted.wrapper])))
    made = compiled(small_models.conv(), options).files
    files = arrange(made, layout, "conv", options)
    build_files = {path: text for path, text in files.items() if not path.endswith((".c", ".h", ".mcb", ".ino"))}
    for flag in json.loads(made["report.json"])["flags"]:
        assert any(flag.encode() in text for path, text in build_files.items() if path != "report.json"), flag


@pytest.mark.parametrize(
    ("layout", "file", "anywhere"),
    [
        ("arduino", "library.properties", b"architectures=*"),
        ("platformio", "library.json", b'"platforms": "*"'),
        ("cmsis-pack", "mccompile.conv.pdsc", b' Cversion="'),
    ],
)
def test_a_package_says_where_its_code_runs(layout: str, file: str, anywhere: bytes) -> None:
    def text(target: str) -> bytes:
        made = compiled(small_models.conv(), Options(target=target)).files
        return arrange(made, layout, "conv", Options())[file]

    assert anywhere in text("generic") and b"condition=" not in text("generic")
    for target in ("cortex-m4", "cortex-m7", "cortex-m33"):
        assert anywhere not in text(target) or b' condition="conv core"' in text(target)


@pytest.mark.parametrize("tool", ["make", "cmake"])
def test_models_for_several_targets_have_flags_of_their_own(tool: str, tmp_path: Path) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    jobs = [
        (save(small_models.conv(), tmp_path), Options(target="x86-64-v3")),
        (save(small_models.mlp(), tmp_path), Options(target="generic")),
    ]
    write_folder(tmp_path / "out", compile_jobs(jobs, "both")[1])
    assert len(built(tmp_path / "out", tool, tmp_path / "build")) == 3


@pytest.mark.parametrize("tool", ["make", "cmake"])
@some(1, "target", ["x86-64-v3", "generic"])
def test_a_folder_of_several_targets_is_told_which(target: str, tool: str, tmp_path: Path) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    job = (save(small_models.conv(), tmp_path), Options(target="x86-64-v3,aarch64,generic"))
    write_folder(tmp_path / "out", compile_jobs([job], "conv")[1])
    setting = f"TARGET={target}" if tool == "make" else f"MCC_CONV_TARGET={target}"
    assert len(built(tmp_path / "out", tool, tmp_path / "build", setting)) == 2


def test_models_whose_files_would_be_called_alike_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = []
    for name in ("kws", "kws_main"):
        made = small_models.conv() if name == "kws" else small_models.mlp()
        made.graph.name = name
        models.append(str(save(made, tmp_path)))
    assert cli.run([*models, "-o", str(tmp_path / "out")]) == 2
    assert "'kws_main.c'" in capsys.readouterr().err and not (tmp_path / "out").exists()
