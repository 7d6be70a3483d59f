"""A model that is served says what the same model says here: whatever it keeps, wherever its memory lies."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import onnx
import pytest

from mccompile.cli import run
from mccompile.cli.told import schemas
from mccompile.measure import streaming
from tests import small_models
from tests.passes.stream.pushed import floats, model
from tests.thorough import some

from .served_here import built, program_of, serving
from .test_growing import counting

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

CELL = model("(float[1,4] x, float[1,4] h) => (float[1,4] y, float[1,4] n) { s = Add(x, h) n = Tanh(s) y = Relu(n) }")
ROWS = model("(float[n,4] x) => (float[n,2] y) { y = MatMul(x, w) }", w=floats(4, 2))
WINDOW = model("(float[1,2,10] x) => (float[1,3,8] y) { y = Conv(x, w) }", w=floats(3, 2, 3))


def saved(made: onnx.ModelProto, path: Path) -> Path:
    onnx.save(made, path)
    return path


@some(
    4,
    ("made", "options"),
    [
        pytest.param(small_models.conv(), [], id="plain"),
        pytest.param(small_models.conv(), ["--slices"], id="slices"),
        pytest.param(small_models.conv(), ["--profile", "--dump-values"], id="looking inside"),
        pytest.param(small_models.conv(), ["--io", "external"], id="outside the arena"),
        pytest.param(small_models.conv(), ["--mem", "near=1K,fast", "--mem", "far=1M"], id="two memories"),
        pytest.param(CELL, ["--state", "n=h"], id="state"),
        pytest.param(CELL, ["--state", "n=h", "--slices", "--dump-values"], id="state in slices"),
        pytest.param(ROWS, ["--dim", "n=1..6"], id="free sizes"),
        pytest.param(counting(), ["--state", "k2=k", "--dim", "past=0..9,more=1..4,total=1..13"], id="growing state"),
        pytest.param(WINDOW, ["--stream", "x=2,hop=2"], id="stream"),
    ],
)
def test_check_says_what_it_says_here(
    made: onnx.ModelProto,
    options: Sequence[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "HERE", streaming.ELSEWHERE)
    path = saved(made, tmp_path / "m.onnx")
    check = ["check", str(path), *options]
    program = built(path, tmp_path, options)
    capsys.readouterr()
    assert run(check) == 0
    wanted = capsys.readouterr().out
    with serving(program) as port:
        assert run([*check, "--serial", port]) == 0
    found = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("board")]
    assert found == wanted.splitlines()


def _served(options: Sequence[str], folder: Path, flags: Sequence[str] = ()) -> tuple[Path, Path]:
    """A model, and the program that serves it."""
    path = saved(small_models.conv(), folder / "m.onnx")
    return path, built(path, folder, options, flags)


def test_bench_and_the_report_have_the_ticks_of_the_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, program = _served(["--profile"], tmp_path, ["-DMCC_CLOCK_HZ=1000000u"])
    page = tmp_path / "page.html"
    with serving(program) as port:
        capsys.readouterr()
        assert run(["bench", str(path), "--profile", "--json", "--serial", port]) == 0
        found = json.loads(capsys.readouterr().out)
        assert run(["bench", str(path), "--profile", "--serial", port]) == 0
        shown = capsys.readouterr().out
        assert run(["analyze", str(path), "--profile", "--measure", "--serial", port, "--html", str(page)]) == 0
    jsonschema.validate(found, schemas()["bench"])
    assert found["runs"] == 5 and found["ticks_per_second"] == 1_000_000 and "run_stack_bytes" not in found
    assert sum(step["ticks"] for step in found["steps"]) > 0 and found["median_us"] == found["run_ticks"] > 0
    assert all(step["us"] == step["ticks"] for step in found["steps"])
    assert "on its board, 5 runs" in shown and "stack not told" in shown and "per mac" in shown
    data = re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert data is not None
    (build,) = json.loads(data[1])["builds"]
    assert build["figures"]["run_ticks"] > 0 and all("ticks" in step for step in build["steps"])


def test_the_first_tensor_that_a_board_gets_wrong_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = _served(["--dump-values"], tmp_path)
    out, board = tmp_path / "out", tmp_path / "board"
    shutil.copytree(out, board)
    right = (board / "m.c").read_text()
    place = re.search(r'DUMP\(MCC_DUMP_VALUE, "r1".*A\(const uint8_t, (\w+)', right)
    assert place is not None
    (board / "m.c").write_text(right.replace(place[0], f"A(float, {place[1]})[0] += 1.0f;\n{place[0]}"))
    with serving(program_of(board, tmp_path)) as port:
        capsys.readouterr()
        assert run(["check", str(path), "--dump-values", "--serial", port]) == 1
        told = capsys.readouterr().err
        assert run(["compare", str(out), "--serial", port, "--model", str(path)]) == 1
        compared = capsys.readouterr()
    assert """the first tensor that differs is 'r1', made by node "r1/Relu\"""" in told and "mccompile compare" in told
    assert "the board differs from the same code on this machine" in compared.err and "value 'r1'" in compared.err
    assert "DIFFERS" in compared.out.splitlines()[2]
