"""Projects of `mccompile deploy`: those for cmake are built and run as their READMEs say, the others are compiled
against stand-ins for what their ecosystems bring (`stand_ins/`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile.check.inputs import random_sets
from mccompile.cli import run
from mccompile.deploy.ecosystem import ecosystems, mains
from mccompile.driver import Options, read
from mccompile.measure.eembc import BENCHMARKS
from mccompile.measure.mlperf_runner import Board, session
from mccompile.toolchain.serial_line import Port
from mccompile.toolchain.tools import missing
from tests.deploy.test_projects import rebuilder
from tests.passes.stream.pushed import floats, model
from tests.small_models import conv, save

from .serial_board import free_port, listening, wait_for

KWS = Path(__file__).resolve().parents[1] / "examples" / "bare_metal" / "kws.onnx"
STAND_INS = Path(__file__).with_name("stand_ins")
M4 = ["-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]
STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
PROGRAMS = sorted(set(mains()) - {"microphone"})  # which boards have in other ways
VENDORS = {
    "nucleo_f446re": "qemu-system-arm",
    "nrf52840_dk": "qemu-system-arm",
    "pico": "qemu-system-arm",
    "rpipico2": "qemu-system-arm",
    "ek_ra8m1": "qemu-system-arm",
    "esp32_c3_devkitm_1": "qemu-system-riscv32",
}


def deployed(folder: Path, *arguments: str, model: Path | None = None) -> Path:
    out = folder / "project"
    assert run(["deploy", str(model or save(conv(), folder)), "-o", str(out), *arguments]) == 0
    return out


def with_program(folder: Path, main: str, *arguments: str) -> Path:
    if main == "mlperf-tiny":
        return deployed(folder, "--mlperf-tiny", "ad", *arguments, model=rebuilder(folder))
    return deployed(folder, "--main", main, *arguments)


def commands(project: Path, blocks: int = 1) -> list[str]:
    """The first blocks of the README: what builds it, what flashes it."""
    found = re.findall(r"```sh\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)
    return [line for block in found[:blocks] for line in str(block).splitlines()]


def followed(project: Path, blocks: int = 1, **environment: str) -> str:
    """What the commands of the README say, which all succeed."""
    said = ""
    for command in commands(project, blocks):
        done = subprocess.run(
            ["bash", "-c", command], cwd=project, capture_output=True, text=True, env={**os.environ, **environment}
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        said += done.stdout
    return said


@pytest.mark.parametrize("board", VENDORS)
def test_three_commands_lead_to_scores(board: str, tmp_path: Path) -> None:
    if missing([VENDORS[board], "cmake"]):
        pytest.skip("needs cmake and an emulator")
    sample = random_sets(read(KWS, Options()), 3, 1).__next__().inputs
    np.savez(tmp_path / "sample.npz", **sample)
    arguments = ["--board", board, "--for", "cmake", "--main", "loop", "--data", str(tmp_path / "sample.npz")]
    project = deployed(tmp_path, *arguments, model=KWS)
    assert len(commands(project)) == 2  # behind the one that made it
    line = re.search(r"^scores (.*)$", followed(project), re.MULTILINE)
    assert line is not None
    found = [float(word) for word in line[1].split()]
    ort = pytest.importorskip("onnxruntime")
    wanted = ort.InferenceSession(str(KWS)).run(None, sample)[0].ravel()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_chip_s_own_memories_and_probe(tmp_path: Path) -> None:
    """An STM32F405, which QEMU has whole, runs what is linked for it."""
    project = deployed(tmp_path, "--board", "adafruit_feather_f405", "--for", "cmake", "--main", "loop")
    followed(project)
    subprocess.run(["cmake", "--build", "build"], cwd=project, check=True, capture_output=True)
    command = ["qemu-system-arm", "-M", "netduinoplus2", "-display", "none", "-monitor", "none", "-serial", "none"]
    program = project / "build" / "conv_on_board.elf"
    with subprocess.Popen(
        [*command, "-semihosting-config", "enable=on,target=native", "-kernel", str(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as board:
        assert board.stdout is not None
        assert re.match(r"y( -?\d\.\d{5}e[+-]\d{3})+$", board.stdout.readline().rstrip())
        board.kill()


@contextmanager
def emulated(project: Path) -> Iterator[str]:
    """A project that serves, built and run as its README says, but at a free port, whose name this gives."""
    build, emulate = commands(project)
    port = free_port()
    option = f"-DEMULATED_SERIAL={listening(port)}"
    for command in (build.split(), ["cmake", option, "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    quiet = subprocess.DEVNULL
    board = subprocess.Popen(emulate.split(), cwd=project, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        wait_for(port)
        yield f"tcp:127.0.0.1:{port}"
    finally:
        os.killpg(board.pid, signal.SIGKILL)
        board.wait()


def test_a_served_project_is_checked_over_its_uart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its stack, and with other weights."""
    first, second = tmp_path / "conv.onnx", tmp_path / "other.onnx"
    onnx.save(conv(0), first)
    onnx.save(conv(1), second)
    project = deployed(tmp_path, "--board", "nucleo_f446re", "--for", "cmake", model=first)
    said = re.search(r"^mccompile (check .*)$", (project / "README.md").read_text(), re.MULTILINE)
    assert said is not None
    with emulated(project) as port:
        check, _, *options = said[1].replace("tcp:localhost:5000", port).split()
        assert run([check, str(first), *options]) == 0, capsys.readouterr().err
        capsys.readouterr()
        assert run(["bench", str(first), *options, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["run_stack_bytes"] < 4096
        assert run(["blob", str(second), "--for", str(project), "--serial", port]) == 0, capsys.readouterr().err
        assert run([check, str(second), *options, "--name", "conv"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("board", VENDORS)
def test_a_benchmark_s_runner_is_answered(board: str, tmp_path: Path) -> None:
    if missing([VENDORS[board], "cmake"]):
        pytest.skip("needs cmake and an emulator")
    project = with_program(tmp_path, "mlperf-tiny", "--board", board, "--for", "cmake")
    with emulated(project) as name:
        line = Port(name).open()
        asked = Board(line)
        x = np.array([[1, -2, 3, -4], [1, 2, 3, 4]], np.float32)
        found = session(asked, BENCHMARKS["ad"], [each.tobytes() for each in x], [1, 0], runs=10000)
        assert (found["model"], found["area_under_roc"]) == ("ad01", 1.0)
        assert 0.01 < float(found["microseconds"]) < 20  # a nanosecond for each instruction
        line.close()


ZEPHYR = f"-DZephyr_DIR={STAND_INS / 'zephyr' / 'cmake'}"
RV32 = ["-march=rv32imc", "-mabi=ilp32", "--specs=picolibc.specs"]
M33 = ["-mthumb", "-mcpu=cortex-m33", "-march=armv8-m.main+fp+dsp", "-mfloat-abi=softfp"]  # as pico-sdk has it
BY_CMAKE = {
    "zephyr": ("nrf52840_dk", "arm-none-eabi-gcc", M4, [ZEPHYR], {}),
    "esp-idf": ("esp32_c3_devkitm_1", "riscv64-unknown-elf-gcc", RV32, [], {"IDF_PATH": str(STAND_INS / "esp-idf")}),
    "pico-sdk": ("rpipico2", "arm-none-eabi-gcc", M33, [], {"PICO_SDK_PATH": str(STAND_INS / "pico-sdk")}),
}


@pytest.mark.parametrize("main", PROGRAMS)
@pytest.mark.parametrize("ecosystem", BY_CMAKE)
def test_its_build_files_build_with_stand_ins(ecosystem: str, main: str, tmp_path: Path) -> None:
    project = with_program(tmp_path, main, "--board", BY_CMAKE[ecosystem][0], "--for", ecosystem)
    assert {"app", "port", "conv", "conv_weights"} <= built(project, ecosystem, tmp_path)


def built(project: Path, ecosystem: str, tmp_path: Path) -> set[str]:
    """The names of what its build files compile."""
    _, compiler, flags, options, environment = BY_CMAKE[ecosystem]
    configure = ["cmake", "-S", str(project), "-B", str(tmp_path / "build"), *options]
    configure += [f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_SYSTEM_NAME=Generic"]
    configure += ["-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY", f"-DCMAKE_C_FLAGS={' '.join(flags)} -Wall -Werror"]
    configure += [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_ASM_COMPILER={compiler}"]
    for command in (configure, ["cmake", "--build", str(tmp_path / "build")]):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return {path.name.partition(".")[0] for path in (tmp_path / "build").rglob("*.obj")}


@pytest.mark.parametrize("main", PROGRAMS)
@pytest.mark.parametrize(
    ("ecosystem", "board"),
    [
        ("arduino", "uno_r4_minima"),
        ("platformio", "teensy41"),
        ("platformio", "max32630fthr"),
        ("cubeide", "nucleo_g474re"),
        ("keil", "nucleo_f446re"),
    ],
)
def test_its_program_compiles_against_stand_ins(ecosystem: str, board: str, main: str, tmp_path: Path) -> None:
    compiled(with_program(tmp_path, main, "--board", board, "--for", ecosystem), ecosystem)


def compiled(project: Path, ecosystem: str) -> None:
    places = [f"-I{path}" for path in (STAND_INS / ecosystem, STAND_INS / "arduino")]
    headers = {path.parent for path in project.rglob("*.h")}
    places += [f"-I{path}" for path in sorted(headers)]
    sources = [path for path in project.rglob("*") if path.suffix in (".c", ".cpp", ".ino")]
    assert len(sources) >= 5
    for source in sources:
        if "example" in str(source.relative_to(project)):
            continue
        of_c = source.suffix == ".c"
        compiler = ["arm-none-eabi-gcc", "-std=c99"] if of_c else ["arm-none-eabi-g++", "-std=gnu++14", "-x", "c++"]
        first = ["-include", "Arduino.h"] if source.suffix == ".ino" else []
        command = [*compiler, *M4, *STRICT, *places, *first, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("ecosystem", "board", "kind"),
    [
        ("zephyr", "nrf52840_dk", "pdm"),
        ("zephyr", "nrf52840_dk", "i2s"),
        ("esp-idf", "esp32_c3_devkitm_1", "i2s"),
        ("esp-idf", "esp32_s3_devkitc_1", "pdm"),
        ("pico-sdk", "rpipico2", "adc"),
        ("arduino", "nano33ble", "pdm"),
        ("cubeide", "nucleo_f446re", "i2s"),
        ("cubeide", "nucleo_f446re", "adc"),
        ("cubeide", "nucleo_l476rg", "pdm"),
    ],
)
def test_its_microphone_compiles_against_stand_ins(ecosystem: str, board: str, kind: str, tmp_path: Path) -> None:
    path, options = tmp_path / "m.onnx", ["--stream", "x=2,hop=4", "--microphone", kind]
    onnx.save(model("(float[1,1,20] x) => (float[1,1,17] y) { y = Conv(x, w) }", w=floats(1, 1, 4)), path)
    project = deployed(tmp_path, "--board", board, "--for", ecosystem, *options, model=path)
    if ecosystem in BY_CMAKE:
        assert {"app", "microphone", "results"} <= built(project, ecosystem, tmp_path)
    else:
        compiled(project, ecosystem)


FOLLOWED = {
    "zephyr": "nrf52840_dk",
    "esp-idf": "esp32_c3_devkitm_1",
    "pico-sdk": "rpipico2",
    "arduino": "nano33ble",
    "platformio": "teensy41",
    "cubeide": "nucleo_f446re",
    "keil": "nucleo_f446re",
}


@pytest.mark.parametrize("ecosystem", FOLLOWED)
def test_a_readme_is_followed_with_stand_ins(ecosystem: str, tmp_path: Path) -> None:
    """What builds, and what flashes: with tools that check what they are told, and build where they have CMake."""
    project = deployed(tmp_path, "--board", FOLLOWED[ecosystem], "--for", ecosystem)
    environment = {"PATH": f"{STAND_INS / 'bin'}:{os.environ['PATH']}"}
    if ecosystem in BY_CMAKE:
        _, compiler, flags, options, more = BY_CMAKE[ecosystem]
        chain = tmp_path / "chain.cmake"
        lines = [f"set(CMAKE_{word}_COMPILER {compiler})" for word in ("C", "CXX", "ASM")]
        lines += ["set(CMAKE_SYSTEM_NAME Generic)", "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)"]
        chain.write_text("\n".join([*lines, f'set(CMAKE_C_FLAGS "{" ".join(flags)}" CACHE STRING "")']))
        environment |= {**more, "CMAKE_TOOLCHAIN_FILE": str(chain), "STAND_IN_CMAKE": " ".join(options)}
    followed(project, 1 + bool(ecosystems()[ecosystem].flash), **environment)
    assert (ecosystem in BY_CMAKE) == (project / "build").is_dir()


def test_a_csolution_names_what_is_there(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    project = deployed(tmp_path, "--board", "nucleo_f446re", "--for", "keil")
    solution = yaml.safe_load((project / "conv.csolution.yml").read_text())["solution"]
    assert solution["target-types"][0]["device"] == "STMicroelectronics::STM32F446RETx"
    cproject = yaml.safe_load((project / solution["projects"][0]["project"]).read_text())["project"]
    files = [entry["file"] for group in cproject["groups"] for entry in group["files"]]
    assert all((project / file).is_file() for file in files)
    assert {Path(file).name for file in files} == {path.name for path in project.rglob("*.c") if path.name != "main.c"}
    assert all((project / folder).is_dir() for folder in cproject["add-path"])


def test_every_ecosystem_is_tested() -> None:
    assert set(ecosystems()) == {*FOLLOWED, "cmake"}
    assert shutil.which("cmake")
