"""Networks with free dimensions are quantized, at one size or for a range of them, by the command and on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile import cli
from tests import small_models

pytest.importorskip("onnxruntime")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    made = small_models.conv()
    for entry in (*made.graph.input, *made.graph.output):
        entry.type.tensor_type.shape.dim[0].dim_param = "batch"
    np.savez(tmp_path / "s.npz", x=small_models.floats(3, 4, 2, 6, 6))
    return small_models.save(made, tmp_path)


@pytest.mark.parametrize("how", [["--data", "s.npz"], ["--dynamic"], ["--weights-only", "8"]], ids=lambda how: how[0])
@pytest.mark.parametrize(("sizes", "batch"), [("batch=2", 2), ("batch=1..4", "batch")])
def test_the_command_writes_what_compiles(
    how: list[str], sizes: str, batch: int | str, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(network.parent)
    assert cli.run(["quantize", network.name, *how, "--dim", sizes, "-o", "int8.onnx"]) == 0
    first = onnx.load("int8.onnx").graph.input[0].type.tensor_type.shape.dim[0]
    assert (first.dim_param or first.dim_value) == batch
    left = ["--dim", sizes] if isinstance(batch, str) else []
    assert cli.run(["int8.onnx", "-o", "out", *left]) == 0


def test_weights_alone_need_no_sizes(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(network.parent)
    assert cli.run(["quantize", network.name, "--weights-only", "8", "-o", "int8.onnx"]) == 0
    assert onnx.load("int8.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert cli.run(["int8.onnx", "-o", "out", "--dim", "batch=1..40"]) == 0
    assert cli.run(["quantize", network.name, "--dynamic", "-o", "int8.onnx"]) == 3


@pytest.mark.parametrize("sizes", [["--dim", "batch=1..4"], ["--shape", "x=n,2,6,6", "--dim", "n=1..4"]])
def test_on_the_way(sizes: list[str], network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(network.parent)
    assert cli.run([network.name, "--quantize", "s.npz", *sizes, "-o", "out"]) == 0
