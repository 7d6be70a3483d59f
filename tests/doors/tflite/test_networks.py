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

_CONV = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
RELU, RELU6 = 1, 3


def residual_network() -> bytes:
    """Convolutions in two branches, a pool, and a classifier."""
    chance = np.random.default_rng(0)
    net = Net()

    def weights(*shape: int, axis: int = 0) -> tuple[int, int]:
        scales = chance.uniform(0.002, 0.006, shape[axis])
        array = chance.integers(-127, 128, shape).astype(np.int8)
        bias = chance.integers(-900, 900, shape[axis]).astype(np.int32)
        return net.constant(array, scales, axis=axis), net.constant(bias, scales * 0.05)

    def image(channels: int, zero: int = -128) -> int:
        return net.tensor((1, 8, 8, channels), "INT8", 0.05, zero)

    x = net.input((1, 8, 8, 3), "INT8", 0.05, 3, name="image")
    first, middle, deep, side, sum = image(8), image(8), image(8), image(8, 5), image(8)
    net.op("CONV_2D", [x, *weights(8, 3, 3, 3)], [first], "Conv2DOptions", FusedActivationFunction=RELU, **_CONV)
    depthwise = {"DepthMultiplier": 1, "FusedActivationFunction": RELU6, **_CONV}
    for source, made in ((first, middle), (middle, deep)):
        operands = [source, *weights(1, 3, 3, 8, axis=3)]
        net.op("DEPTHWISE_CONV_2D", operands, [made], "DepthwiseConv2DOptions", **depthwise)
    net.op("CONV_2D", [first, *weights(8, 1, 1, 8)], [side], "Conv2DOptions", **_CONV)
    net.op("ADD", [side, deep], [sum], "AddOptions", FusedActivationFunction=RELU)
    pooled, flat = net.tensor((1, 1, 1, 8), "INT8", 0.05, -128), net.tensor((1, 8), "INT8", 0.05, -128)
    window = {"Padding": 1, "StrideH": 8, "StrideW": 8, "FilterHeight": 8, "FilterWidth": 8}
    net.op("AVERAGE_POOL_2D", [sum], [pooled], "Pool2DOptions", **window)
    net.op("RESHAPE", [pooled, net.constant(np.array([1, 8], np.int32))], [flat])
    scores, shares = net.tensor((1, 4), "INT8", 0.1, 9), net.tensor((1, 4), "INT8", 1 / 256, -128, name="scores")
    net.op("FULLY_CONNECTED", [flat, *weights(4, 8)], [scores], "FullyConnectedOptions")
    net.op("SOFTMAX", [scores], [shares], "SoftmaxOptions", Beta=1.0)
    return net.file([shares])


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
        "mccompile.doors.tflite.convert.find_spec", lambda name: None if name == "tflite" else found(name)
    )
    with pytest.raises(BadFile, match=r'fix    pip install "mccompile\[tflite\]"'):
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
