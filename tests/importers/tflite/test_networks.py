"""A whole network from a .tflite file: compiled as it stands, through the command line and Python, equal to LiteRT's
interpreter but for one step."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import mccompile
from mccompile import cli
from mccompile.base.errors import BadFile, UnsupportedModel

from .build import Net
from .litert import Litert
from .networks import residual_network


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tflite") / "net.tflite"
    path.write_bytes(residual_network())
    return path


def test_a_network_gives_what_the_interpreter_gives(network: Path) -> None:
    net, reference = mccompile.load(network), Litert(network.read_bytes())
    for seed in range(4):
        x = np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
        (got,), (wanted,) = net(x), reference([x])
        assert np.abs(got.astype(int) - wanted).max() <= 2  # there is a softmax
    assert net.input_names == ("image",) and got.dtype == np.int8


def test_pictures_stay_channels_last_and_nothing_is_transposed(network: Path) -> None:
    compiled = mccompile.compile(network, target="cortex-m4")
    assert compiled.report["inputs"][0]["shape"] == [1, 8, 8, 3]
    assert not compiled.report["moves"] and not compiled.report["float_in_quantized"]


def test_of_two_branches_the_longer_one_takes_the_sum(network: Path) -> None:
    """Whatever order they have in the file."""
    functions = [step["function"] for step in mccompile.compile(network, target="cortex-m4").report["steps"]]
    kinds = [function.split("_")[1] for function in functions]
    assert kinds[3] == "depthwise" and "conv_1x1" in " ".join(functions[1:3])


def test_convert_writes_what_is_compiled(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = network.with_name("net.onnx")
    assert cli.run(["convert", str(network), "-o", str(result)]) == 0
    onnx.checker.check_model(onnx.load(result), full_check=True)
    wanted, got = (mccompile.compile(path, name="net") for path in (network, result))
    assert {name: text for name, text in wanted.files.items() if name.endswith((".c", ".h", ".mcb"))} == {
        name: text for name, text in got.files.items() if name.endswith((".c", ".h", ".mcb"))
    }
    capsys.readouterr()


def test_the_commands_take_it(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check", str(network), "--runs", "1"]) == 0
    assert cli.run(["analyze", str(network)]) == 0
    assert "scores" in capsys.readouterr().out


def test_check_compares_with_the_interpreter(network: Path) -> None:
    verdict = mccompile.compile(network).check(runs=2)
    assert verdict.ok and {run.reference for run in verdict.runs} == {"LiteRT"}
    assert verdict.worst()[0].max_abs <= 2


def test_check_without_the_interpreter_runs_the_onnx_model(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mccompile.check.litert.find_spec", lambda name: None)
    verdict = mccompile.compile(network).check(runs=1)
    assert verdict.ok and verdict.runs[0].reference == "onnxruntime"


def test_a_signature_is_chosen_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = Net()
    x, y = net.input((1, 3)), net.tensor((1, 3))
    net.op("ABS", [x], [y], "AbsOptions")
    number, other = net.subgraph("other")
    a, made = other.input((2, 2)), other.tensor((2, 2))
    other.op("RELU", [a], [made])
    other.outputs = [made]
    net.signatures = [("sizes", 0, {"signal": x}, {"size": y}), ("cut", number, {"signal": a}, {"above": made})]
    path, result = tmp_path / "two.tflite", tmp_path / "cut.onnx"
    path.write_bytes(net.file([y]))
    assert mccompile.load(path).input_names == ("signal",)
    assert cli.run(["convert", str(path), "-o", str(result), "--signature", "cut"]) == 0
    graph = onnx.load(result).graph
    assert [graph.input[0].name, graph.output[0].name] == ["signal", "above"]
    assert mccompile.load(path, signature="cut").input_names == ("signal",)
    assert cli.run(["check", str(path), "--signature", "cut", "--runs", "1"]) == 0
    capsys.readouterr()
    assert cli.run(["convert", str(path), "-o", str(result), "--signature", "cuts"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert cli.run(["convert", str(result), "-o", str(tmp_path / "again.onnx"), "--signature", "cut"]) == 2
    capsys.readouterr()


def test_without_the_extra_the_error_names_it(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "mccompile.importers.registry.find_spec", lambda name: None if name == "tflite" else found(name)
    )
    with pytest.raises(BadFile, match="fix    pip install flatbuffers tflite"):
        mccompile.compile(network)


def test_all_operators_that_are_not_supported_are_named_at_once() -> None:
    net = Net()
    x, y, z = net.input((1, 4)), net.tensor((1, 4)), net.tensor((1, 4))
    net.op("MyLayer", [x], [y], custom=b"abc")
    net.op("LSH_PROJECTION", [x, x], [z])
    with pytest.raises(UnsupportedModel) as caught:
        mccompile.compile(net.file([y, z]))
    assert [problem.what for problem in caught.value.problems] == [
        "operator MyLayer is not supported",
        "operator LSH_PROJECTION is not supported",
    ]
