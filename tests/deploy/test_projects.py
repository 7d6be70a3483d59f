"""Projects: whole for every ecosystem, with the names it has for boards, and refused with a fix where there is none."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile import cli
from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.deploy.ecosystem import ecosystem_of, ecosystems, mains, templates
from mccompile.deploy.projects import ProjectOptions, project
from mccompile.driver import Options
from mccompile.emit.layouts import layouts
from mccompile.option_texts import stream as read_stream
from mccompile.targets.api import load
from mccompile.targets.boards import catalogue
from tests.small_models import conv, save

TOP = Path(__file__).resolve().parents[2]
BOARDS = {
    "arduino": "uno_r4_minima",
    "cmake": "nucleo_f446re",
    "cubeide": "nucleo_f446re",
    "esp-idf": "esp32_c3_devkitm_1",
    "keil": "nucleo_f446re",
    "pico-sdk": "rpipico2",
    "platformio": "teensy41",
    "zephyr": "nrf52840_dk",
}


def rebuilder(folder: Path) -> Path:
    """An autoencoder as MLPerf Tiny's anomaly detection is one."""
    return _saved("g (float[1, 4] x) => (float[1, 4] y) { y = Relu(x) }", folder)


def _saved(text: str, folder: Path) -> Path:
    graph, path = onnx.parser.parse_graph(text), folder / "conv.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return path


HEARD = {"arduino": ("nano33ble", "pdm"), "cubeide": ("nucleo_f446re", "i2s"), "esp-idf": ("esp32dev", "i2s")}
HEARD |= {"pico-sdk": ("rpipico2", "adc"), "zephyr": ("nrf52840_dk", "pdm")}


def hearing(folder: Path, ecosystem: str, board: str = "", kind: str = "", stream: str = "x=2,hop=4") -> ProjectOptions:
    """A project whose program runs a stream on a microphone's samples."""
    text = "g (float[1, 1, 20] x) => (float[1, 1, 17] y) <float[1, 1, 4] w = {1, 2, 3, 4}> { y = Conv(x, w) }"
    path = _saved(text, folder)
    usual = HEARD.get(ecosystem, ("nucleo_f446re", "i2s"))
    options = Options(board=board or usual[0], stream=read_stream((stream,) if stream else ()))
    return ProjectOptions(path, options, ecosystem, microphone=kind or usual[1])


def made(folder: Path, ecosystem: str = "", main: str = "serve", board: str = "", **more: object) -> dict[str, str]:
    if main == "microphone":
        found = project(hearing(folder, ecosystem, board)).files
        return {path: found[path].decode("utf-8", "replace") for path in found}
    benchmark = "ad" if main == "mlperf-tiny" else ""
    model = rebuilder(folder) if benchmark else save(conv(), folder)
    board = board or BOARDS[ecosystem]
    found = project(ProjectOptions(model, Options(board=board, **more), ecosystem, main, benchmark))  # type: ignore[arg-type]
    return {path: found.files[path].decode("utf-8", "replace") for path in found.files}


@pytest.mark.parametrize("main", sorted(mains()))
@pytest.mark.parametrize("ecosystem", sorted(ecosystems()))
def test_a_project_is_whole(ecosystem: str, main: str, tmp_path: Path) -> None:
    if main == "microphone" and ecosystem not in HEARD:
        pytest.skip("it has no driver of a microphone")
    files = made(tmp_path, ecosystem, main)
    assert {Path(path).name for path in files} >= {"README.md", "app.c", "app.h", "conv.c", "conv_weights.c"}
    servers = {path for path in map(Path, files) if path.name in ("conv_serve.c", "conv_eembc.c")}
    assert {path.stem.removeprefix("conv_") for path in servers} == {mains()[main].server} - {""}
    text = files["README.md"]
    board = HEARD[ecosystem][0] if main == "microphone" else BOARDS[ecosystem]
    assert catalogue.find(board).name in text and "```sh" in text
    assert all(path.partition("/")[0] in files or "/" in path for path in files)
    listed = json.loads(files["report.json"])["files"]
    assert set(listed) == set(files) - {"report.json"}


@pytest.mark.parametrize("ecosystem", sorted(ecosystems()))
def test_a_readme_is_short(ecosystem: str, tmp_path: Path) -> None:
    lines = [line for line in made(tmp_path, ecosystem)["README.md"].splitlines() if line and "```" not in line]
    assert len(lines) <= 14


@pytest.mark.parametrize("ecosystem", sorted(ecosystems()))
def test_facts_and_templates_go_together(ecosystem: str) -> None:
    """Each pattern of an ecosystem's facts is met by a board."""
    found = ecosystems()[ecosystem]
    met = [set() for _ in found.facts]  # type: list[set[str]]
    for board in catalogue.boards().values():
        names = (board.key, board.chip.lower(), f"from:{board.source}")
        for seen, table in zip(met, found.facts.values(), strict=True):
            seen |= {pattern for pattern in table if any(Path(name).match(pattern) for name in names)}
    unmet = [set(table) - seen - {"*"} for seen, table in zip(met, found.facts.values(), strict=True)]
    assert not any(unmet), unmet
    assert templates(found.folder)


@pytest.mark.parametrize(
    ("board", "ecosystem"),
    [
        ("nucleo_f446re", "cubeide"),
        ("esp32s3", "esp-idf"),
        ("rpipico2", "pico-sdk"),
        ("nrf52840_dk", "zephyr"),
        ("ek_ra8m1", "zephyr"),
        ("uno", "arduino"),
        ("max32630fthr", "platformio"),
    ],
)
def test_boards_have_a_usual_ecosystem(board: str, ecosystem: str) -> None:
    found = catalogue.find(board)
    assert ecosystem_of("", found).name == ecosystem
    assert ecosystem_of("", found).facts_of(found)


def test_every_board_has_an_ecosystem() -> None:
    for board in catalogue.boards().values():
        homes = [each for each in ecosystems().values() if each.has(board)]
        called = [each for each in homes if _called(each, board)]
        assert called, board.key


def test_the_library_is_for_the_platform_of_the_project() -> None:
    """PlatformIO leaves out libraries that do not name the board's platform."""
    ecosystem, layout = ecosystems()["platformio"], layouts()["platformio"]
    for board in catalogue.boards().values():
        if _called(ecosystem, board):
            platform = ecosystem.facts_of(board)["platform"]
            named = layout.runs_on([load(board.core.target).build])
            assert not named or platform in named, (board.key, platform)


def _called(ecosystem: object, board: catalogue.Board) -> bool:
    try:
        ecosystem.facts_of(board)  # type: ignore[attr-defined]
    except WrongUse:
        return False
    return True


@pytest.mark.parametrize(
    ("ecosystem", "board", "told", "fix"),
    [
        ("esp-idf", "nucleo_f446re", "esp-idf does not have nucleo_f446re", "--for cubeide"),
        ("pico-sdk", "esp32s3", "pico-sdk does not have esp32_s3", "--for"),
        ("zephir", "nucleo_f446re", "there is no ecosystem 'zephir'", "did you mean --for zephyr?"),
        ("cmake", "esp32s3", "cmake does not have esp32_s3", "--for esp-idf"),
        ("platformio", "ek_ra8m1", "platformio does not have ek_ra8m1", "--for zephyr"),
        ("zephyr", "max32630fthr", "zephyr has no name for max32630fthr", "--board-id NAME"),
    ],
)
def test_what_an_ecosystem_lacks_is_refused(ecosystem: str, board: str, told: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse) as raised:
        made(tmp_path, ecosystem, board=board)
    assert told in raised.value.problems[0].what and fix in raised.value.problems[0].fix


@pytest.mark.parametrize(
    ("main", "benchmark", "told", "fix"),
    [
        ("loop", "kws", "--main loop does not go with --mlperf-tiny", "leave out one"),
        ("mlperf-tiny", "", "nothing says which mlperf-tiny that is", "--mlperf-tiny kws"),
        ("microphone", "", "nothing says which microphone that is", "--microphone i2s"),
        ("", "kwz", "there is no benchmark 'kwz'", "did you mean kws?"),
        ("", "kws", "this model is not kws01 of MLPerf Tiny", "quantized to int8"),
    ],
)
def test_a_benchmark_has_a_program_of_its_own(main: str, benchmark: str, told: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse) as raised:
        project(ProjectOptions(rebuilder(tmp_path), Options(board="nucleo_f446re"), "cmake", main, benchmark))
    assert told in raised.value.problems[0].what and fix in raised.value.problems[0].fix


@pytest.mark.parametrize(("board", "has_room"), [("nucleo_f446re", True), ("stm32f103rb", False)])
def test_other_weights_have_room_where_ram_has(board: str, has_room: bool, tmp_path: Path) -> None:
    """Weights of 9 KB beside an arena of 15 KB, in 128 KB and in 20 KB."""
    model = TOP / "examples" / "bare_metal" / "kws.onnx"
    found = project(ProjectOptions(model, Options(board=board), "cmake"))
    assert (b"kws_serve_updates(" in found.files["src/app.c"]) == has_room


def test_a_board_may_be_named_by_the_user(tmp_path: Path) -> None:
    asked = ProjectOptions(
        save(conv(), tmp_path), Options(board="max32630fthr"), "zephyr", called="max32630fthr/max32630"
    )
    assert "west build -b max32630fthr/max32630 ." in project(asked).files["README.md"].decode()


def test_what_does_not_fit_says_by_how_much_and_what_would(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed) as raised:
        made(tmp_path, "cmake", board="nucleo_f446re", budget={"ram": 100})
    problem = raised.value.problems[0]
    assert "over the budget" in problem.what and "--board" in problem.fix


def test_the_rest_of_the_program_has_room(tmp_path: Path) -> None:
    """A plan that takes all of the board's RAM is made anew, and the README says how it was made."""
    model = TOP / "examples" / "bare_metal" / "kws.onnx"
    found = project(ProjectOptions(model, Options(board="stm32f103rb"), "cmake"))  # 20K
    assert found.package.plan.arena_bytes <= 15 << 10
    assert "--serial tcp:localhost:5000 --budget ram=15360\n" in found.files["README.md"].decode()


NUMBERS = [0.0, -0.0, 1.0, -2.5, 0.1, 123456.7, 9.999999e9, 1e-30, -3.4e38, 1.17549e-38, np.nan, np.inf, -np.inf]
PROGRAM = """
agraph (float[1,13] x, int32[3] n) => (float[1,13] same, int32[3] turned) <float one = {1.0}> {
  same = Mul(x, one)
  turned = Neg(n)
}
"""
LINE = """
#include <stdio.h>
#include "app.h"
void port_begin(void) {}
int port_read(void *stream) { (void)stream; return -1; }
void port_write(void *stream, const uint8_t *bytes, size_t count) { (void)stream; fwrite(bytes, 1, count, stdout); }
int port_goes_on(void) { return 0; }
int main(void) { app(); return 0; }
"""


def test_the_loop_prints_numbers_as_printf_does(tmp_path: Path) -> None:
    """On this machine: an ESP32's code is plain C."""
    graph = onnx.parser.parse_graph(PROGRAM.strip())
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "numbers.onnx"
    onnx.save(model, path)
    inputs = {"x": np.array([NUMBERS], np.float32), "n": np.array([2**31 - 1, 0, -7], np.int32)}
    made = project(ProjectOptions(path, Options(board="esp32dev"), "esp-idf", "loop", sample=lambda: inputs)).files
    for name in made:
        if name.endswith((".c", ".h")) and not name.endswith("port.c"):
            (tmp_path / Path(name).name).write_bytes(made[name])
    (tmp_path / "line.c").write_text(LINE)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    sources = [str(source) for source in tmp_path.glob("*.c")]
    subprocess.run(["cc", *strict, f"-I{tmp_path}", *sources, "-o", tmp_path / "numbers", "-lm"], check=True)
    done = subprocess.run([tmp_path / "numbers"], capture_output=True, text=True, check=True)
    same, turned = done.stdout.splitlines()
    wanted = [f"{abs(x) if x == 0 else x:.5e}" for x in map(float, inputs["x"][0])]
    assert [re.sub(r"e([+-])0(\d\d)", r"e\1\2", word) for word in same.split()[1:]] == wanted
    assert turned.split() == ["turned", "-2147483647", "0", "7"]


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = save(conv(), tmp_path), tmp_path / "out"
    command = ["deploy", str(model), "--board", "nucleo_f446re", "--for", "cmake", "-o", str(out)]
    assert cli.run(command) == 0
    assert "README.md has the commands" in capsys.readouterr().out
    assert cli.run(command) == 0  # over itself
    (out / "src" / "port_probe.c").write_text("mine")
    assert cli.run(command) == 2
    assert "edited" in capsys.readouterr().err
    assert cli.run(["deploy", str(model), "-o", str(out)]) == 2
    assert "no board is given" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("platformio") is None, reason="platformio is not installed")
def test_platformio_takes_the_file(tmp_path: Path) -> None:
    (tmp_path / "platformio.ini").write_text(made(tmp_path, "platformio")["platformio.ini"])
    home = {"PLATFORMIO_CORE_DIR": str(tmp_path / "home"), "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no"}
    command = [sys.executable, "-m", "platformio", "project", "config", "--lint", "--json-output", "-d", str(tmp_path)]
    done = subprocess.run(command, env=os.environ | home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ast.literal_eval(done.stdout) == {"errors": [], "warnings": []}


@pytest.mark.parametrize(
    ("ecosystem", "board", "kind", "stream", "told", "fix"),
    [
        ("cubeide", "nucleo_f446re", "pdm", "x=2,hop=4", "cubeide has no such microphone for nucleo_f446re", "i2s or"),
        ("cmake", "nrf52840_dk", "pdm", "x=2,hop=4", "cmake has no such microphone", "take --for zephyr"),
        ("pico-sdk", "pico", "i2s", "x=2,hop=4", "pico-sdk has no such microphone", "take --microphone adc"),
        (
            "zephyr",
            "nrf52840_dk",
            "pdm",
            "",
            "--microphone needs a model that takes audio samples",
            "--stream samples=1",
        ),
    ],
)
def test_what_does_not_hear_is_refused(
    ecosystem: str, board: str, kind: str, stream: str, told: str, fix: str, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse) as raised:
        project(hearing(tmp_path, ecosystem, board, kind, stream))
    assert told in raised.value.problems[0].what and fix in raised.value.problems[0].fix


MICROPHONE = """
#include <stdlib.h>
#include "microphone.h"
static int16_t next;
int microphone_begin(void) { return 0; }
void microphone_wait(void)
{
    int16_t block[MICROPHONE_BLOCK];
    size_t i;
    if (next >= 1200) exit(0);
    for (i = 0; i < MICROPHONE_BLOCK; i++, next++) block[i] = (int16_t)(next * next);
    microphone_heard(block, MICROPHONE_BLOCK);
}
"""


def test_every_sample_is_heard_once(tmp_path: Path) -> None:
    """On this machine, with a microphone of ours; the ring is passed twice."""
    made = project(hearing(tmp_path, "esp-idf")).files
    for name in made:
        if name.endswith((".c", ".h")) and Path(name).name not in ("port.c", "microphone.c"):
            (tmp_path / Path(name).name).write_bytes(made[name])
    (tmp_path / "line.c").write_text(LINE)
    (tmp_path / "ours.c").write_text(MICROPHONE)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    sources = [str(source) for source in tmp_path.glob("*.c")]
    subprocess.run(["cc", *strict, f"-I{tmp_path}", *sources, "-o", tmp_path / "hears", "-lm"], check=True)
    said = subprocess.run([tmp_path / "hears"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = np.array([[float(word) for word in line.split()[1:]] for line in said if line.startswith("y ")])
    samples = (np.arange(1200, dtype=np.int64) ** 2).astype(np.int16) / 32768
    wanted = np.correlate(samples, [1, 2, 3, 4], "valid")
    assert len(said) == len(found) > 290
    np.testing.assert_allclose(found.ravel(), wanted[-found.size :], atol=1e-4)
