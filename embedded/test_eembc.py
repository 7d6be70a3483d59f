"""A board that answers the runner of MLPerf Tiny, in a scripted session over its emulated UART."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto

from benchmarks.mlperf_tiny import emulated, measured
from mccompile.cli import run
from mccompile.measure.eembc import BENCHMARKS
from mccompile.measure.mlperf_runner import Board, BoardError, Detections, detections, session
from mccompile.toolchain.serial_line import Port
from mccompile.toolchain.tools import missing
from tests.passes.stream.pushed import floats, model

from .quantized_models import resnet_int8
from .serial_board import firmware, served

pytestmark = pytest.mark.skipif(
    bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="nothing emulates the board"
)


def _quantized(body: str, dtype: str, shape: str, out: str) -> ModelProto:
    """From integers to integers, with a scale of each."""
    return model(
        f"({dtype}[{shape}] x) => (int8[{out}] y) {{ r = DequantizeLinear(x, si, zi) {body}"
        f" y = QuantizeLinear(p, so, zo) }}",
        si=np.array(0.05, np.float32), zi=np.array(3, np.int8), so=np.array(1 / 32, np.float32),
        zo=np.array(-5, np.int8), w=floats(12, 4), v=floats(12, 12) / 4,
    )  # fmt: skip


CLASSES = _quantized("f = Flatten(r) p = MatMul(f, w)", "int8", "1,3,4", "1,4")
REBUILT = _quantized("p = MatMul(r, v)", "int8", "1,12", "1,12")


def _board(made: ModelProto, benchmark: str, folder: Path) -> Path:
    onnx.save(made, folder / "m.onnx")
    out = folder / "out"
    assert run([str(folder / "m.onnx"), "-o", str(out), "--target", "cortex-m4"]) == 0
    assert run(["serve", str(out), "--mlperf-tiny", benchmark]) == 0
    return firmware(out, folder, flags=["-Werror", "-Wall"], entry="eembc")


def _reals(made: ModelProto, x: np.ndarray) -> np.ndarray:
    made = onnx.ModelProto.FromString(made.SerializeToString())
    y = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})[0]
    return (np.asarray(y, np.float64) + 5) / 32


@pytest.mark.parametrize("benchmark", ["kws", "ic"])
def test_accuracy_and_performance_of_classes(benchmark: str, tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    sent = chance.integers(0, 256, (4, 12)).astype(np.uint8)
    given = sent.view(np.int8) if benchmark == "kws" else (sent.astype(np.int16) - 128).astype(np.int8)
    wanted = [_reals(CLASSES, each.reshape(1, 3, 4))[0] for each in given]
    labels = [int(np.argmax(each)) for each in wanted]
    labels[0] = (labels[0] + 1) % 4
    with served(_board(CLASSES, benchmark, tmp_path)) as port:
        line = Port(port).open()
        board = Board(line)
        found = session(board, BENCHMARKS[benchmark], [each.tobytes() for each in sent], labels, runs=20)
        assert (found["vendor"], found["model"], found["accuracy"]) == ("mccompile", f"{benchmark}01", 0.75)
        assert 0.1 < float(found["microseconds"]) < 100  # a nanosecond for each instruction
        board.load(sent[1].tobytes())
        np.testing.assert_allclose(board.infer(1, 2).scores, wanted[1], atol=1 / 32 + 1e-3)
        assert board.ask("timestamp")[0].startswith("m-lap-us-")
        assert board.ask("db print")[0] == "m-buffer-" + "-".join(f"{byte:02x}" for byte in sent[1][:8])
        line.close()


def test_what_is_wrong_is_said_and_the_next_command_answered(tmp_path: Path) -> None:
    with served(_board(CLASSES, "kws", tmp_path)) as port:
        line = Port(port).open()
        board = Board(line)
        for command, said in (
            ("infer 0", "iterations must be >0"),
            ("infer 1 0", "a size is outside the bounds"),
            ("db", "requires a subcommand"),
            ("db 00", "comes first"),
            ("db load 13", "exceeds maximum of 12"),
            ("db load x", "must be >0"),
            ("nonsense", "Unknown command: nonsense"),
            ("x" * 300, "Unknown command: xxx"),
        ):
            with pytest.raises(BoardError, match=said):
                board.ask(command)
        board.ask("db load 12")
        for command, said in (("db 0", "number of hex digits"), ("db 0g", "Invalid hex digit")):
            with pytest.raises(BoardError, match=said):
                board.ask(command)
        assert board.named() == ("mccompile", "kws01")
        line.close()


def test_anomalies_are_what_is_not_rebuilt(tmp_path: Path) -> None:
    chance = np.random.default_rng(2)
    x = chance.uniform(-3, 3, (4, 12)).astype(np.float32)
    q = np.clip(np.floor(x / np.float32(0.05) + np.float32(0.5)) + 3, -128, 127).astype(np.int8)
    wanted = [float(np.mean((_reals(REBUILT, each[None])[0] - real) ** 2)) for each, real in zip(q, x, strict=True)]
    labels = [int(each > sorted(wanted)[1]) for each in wanted]
    with served(_board(REBUILT, "ad", tmp_path)) as port:
        line = Port(port).open()
        board = Board(line)
        sent = [each.tobytes() for each in x]
        assert session(board, BENCHMARKS["ad"], sent, labels, runs=2)["area_under_roc"] == 1.0
        board.load(sent[3])
        (score,) = board.infer(1, 0).scores
        assert score == pytest.approx(wanted[3], abs=0.05)
        line.close()


def test_the_form_of_a_project_is_filled_over_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command of its README; a project with figures is deployed again, and one of other code not filled."""
    onnx.save(CLASSES, tmp_path / "m.onnx")
    project, data = tmp_path / "project", tmp_path / "data.npz"
    deploy = ["deploy", str(tmp_path / "m.onnx"), "--board", "nucleo_l4r5zi", "-o", str(project)]
    deploy += ["--for", "cmake", "--mlperf-tiny", "kws"]
    assert run(deploy) == 0
    x = np.random.default_rng(1).integers(-128, 128, (4, 3, 4)).astype(np.int8)
    labels = [int(np.argmax(_reals(CLASSES, each[None]))) for each in x]
    np.savez(data, x=x, labels=[(labels[0] + 1) % 4, *labels[1:]])
    assert "| accuracy |  |  |" in (project / "results.md").read_text()
    said = re.search(r"^mccompile (bench .*)$", (project / "README.md").read_text(), re.MULTILINE)
    assert said is not None and said[1].endswith(f" --results {project}")
    with emulated(project) as port:
        bench = said[1].replace("tcp:localhost:5000", port).replace("m.onnx", str(tmp_path / "m.onnx")).split()
        bench += ["--data", str(data), "--seconds", "0.001"]
        assert run([*bench, "--prefer", "ram", "-O0"]) == 2
        assert "the project is of another build" in capsys.readouterr().err
        assert run([*bench, "--json"]) == 0, capsys.readouterr().err
        told = json.loads(capsys.readouterr().out)["mlperf_tiny"]
    assert (told["model"], told["accuracy"], told["samples"], told["windows"]) == ("kws01", 0.75, 4, 5)
    assert 0.1 < told["microseconds"] < 100 and told["runs"] >= 10  # a nanosecond for each instruction
    page = json.loads((project / "results.json").read_text())
    assert {key: page["measured"][key] for key in told} == told
    assert "| accuracy |  | 0.75 |" in (project / "results.md").read_text()
    assert run(deploy) == 0
    assert json.loads((project / "results.json").read_text())["measured"] == {}


def test_a_session_of_the_larger_resnet(tmp_path: Path) -> None:
    onnx.save(resnet_int8(), tmp_path / "resnet.onnx")
    found = measured("ic02", tmp_path / "resnet.onnx", "nucleo_l4r5zi", 1, 1, tmp_path)
    assert (found["model"], found["accuracy"]) == ("ic02", 1.0)
    assert 20_000 < float(found["microseconds"]) < 30_000


STREAM = model(  # of samples, as a front end and a network in one
    "(int16[1,1,20] x) => (int8[1,3] y) { r = Cast<to=1>(x) c = Conv(r, w) f = Flatten(c)"
    " y = QuantizeLinear(f, so, zo) }",
    w=floats(3, 1, 20) / 4, so=np.array(8, np.float32), zo=np.array(-5, np.int8),
)  # fmt: skip


def test_a_stream_is_heard_between_start_and_stop(tmp_path: Path) -> None:
    """Samples of a push come over the line, where the runner's interface board would play them."""
    onnx.save(STREAM, tmp_path / "m.onnx")
    out, x = tmp_path / "out", np.random.default_rng(3).integers(-300, 300, 80).astype(np.int16)
    assert run([str(tmp_path / "m.onnx"), "-o", str(out), "--target", "cortex-m4", "--stream", "x=2,hop=8"]) == 0
    assert run(["serve", str(out), "--mlperf-tiny", "sww"]) == 0
    session = onnxruntime.InferenceSession(STREAM.SerializeToString())
    windows = [x[end - 20 : end].reshape(1, 1, 20) for end in range(24, 81, 8)]
    wanted = [int(session.run(None, {"x": window})[0][0, 0]) for window in windows]
    with served(firmware(out, tmp_path, flags=["-Werror", "-Wall"], entry="eembc")) as port:
        line = Port(port).open()
        board = Board(line)
        assert board.ask("stop") == ["It does not listen."]
        for _ in range(2):  # a start forgets what was before
            found = board.listen([part.tobytes() for part in x.reshape(-1, 8)])
            assert len(found) == 10 and np.abs(np.subtract(found[2:], wanted)).max() <= 1
        assert board.named() == ("mccompile", "sww01")
        line.close()


def test_detections_are_counted_as_the_runner_does() -> None:
    scores = [116 if at in (9, 12, 30, 31, 45) else 115 for at in range(60)]
    assert detections(scores, 0.1, [(0.8, 0.9), (2.0, 2.05)]) == Detections(hits=1, missed=1, false=2)


def test_models_of_another_form_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(CLASSES, tmp_path / "m.onnx")
    onnx.save(model("(float[1,4] x) => (float[1,4] y) { y = Relu(x) }"), tmp_path / "f.onnx")
    assert run([str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m")]) == 0
    assert run([str(tmp_path / "f.onnx"), "-o", str(tmp_path / "f")]) == 0
    for folder, benchmark, said in (
        ("m", "kwz", "did you mean kws"),
        ("m", "ad", "its output has not the size of its input"),
        ("f", "kws", "kws01 sends bytes, and its input has none"),
    ):
        assert run(["serve", str(tmp_path / folder), "--mlperf-tiny", benchmark]) == 2
        assert said in capsys.readouterr().err
