"""Weights of 4 bits: their scales are numbers of 16 bits where these can hold them, and lie so in the blob."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import mccompile
from mccompile import cli
from mccompile.driver import Options, compile
from mccompile.frontend.load import load
from mccompile.frontend.save import write
from mccompile.importers.decoders.family import LLAMA_NAMES
from mccompile.quantize.weights_only import quantize_weights
from tests import small_models
from tests.importers.decoders.files import LLAMA, SIZES, folder, named
from tests.importers.decoders.reference import random_weights


def stored(size: float, bits: int, folder: Path) -> tuple[np.ndarray, set[str]]:
    """The scales of 256x80 weights of a size, and the types in the blob."""
    weights = {"w": small_models.floats(3, 256, 80) * np.float32(size)}
    nodes = [small_models.node("MatMul", "x w", "y")]
    made = small_models.model("few", nodes, [("x", (1, 256))], [("y", (1, 80))], weights)
    graph = load(small_models.save(made, folder))
    quantize_weights(graph, bits)
    scales = next(v.constant.array for v in graph.constants() if v.constant is not None and v.name.endswith("/scale"))
    write(graph, folder / "few_bits.onnx")
    plan = compile(folder / "few_bits.onnx", Options()).plan
    return scales, {entry.contents.type.dtype.name for entry in plan.entries}


def test_scales_are_rounded_to_halves(tmp_path: Path) -> None:
    scales, types = stored(1, 4, tmp_path)
    assert scales.shape == (8, 80) and np.array_equal(scales, scales.astype(np.float16))
    assert types == {"i4", "f16"}


@pytest.mark.parametrize("size", [1e-6, 1e7])
def test_what_halves_cannot_hold_stays(size: float, tmp_path: Path) -> None:
    scales, types = stored(size, 4, tmp_path)
    assert np.abs(scales / size).max() > 0.05 and types == {"i4", "f32"}


def test_a_folder_becomes_a_file_that_onnxruntime_reads_and_that_compiles_without_options(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    made = random_weights(SIZES, np.random.default_rng(3))
    llama = folder(tmp_path / "llama", LLAMA, named(made, LLAMA_NAMES))
    file, tokens = tmp_path / "few_bits.onnx", np.arange(9)[None]
    assert cli.run(["quantize", str(llama), "--weights-only", "4", "-o", str(file)]) == 0
    options = ort.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # activations stay floats
    session = ort.InferenceSession(file.read_bytes(), options)
    caches = {entry.name: np.zeros((1, 2, 0, 8), np.float32) for entry in session.get_inputs()[1:]}
    (wanted,) = session.run(["logits"], {"input_ids": tokens, **caches})
    net = mccompile.load(file, target="generic", cc=shutil.which("tcc") or "cc")
    net(tokens[:, :4])
    np.testing.assert_allclose(net(tokens[:, 4:])[0].reshape(-1), wanted.reshape(-1), rtol=1e-4, atol=1e-4)


def test_weights_that_are_too_few_are_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, weights = [small_models.node("MatMul", "x w", "y")], {"w": small_models.floats(3, 9, 7)}
    made = small_models.model("few", nodes, [("x", (1, 9))], [("y", (1, 7))], weights)
    words = ["quantize", str(small_models.save(made, tmp_path)), "--weights-only", "8", "-o", str(tmp_path / "q.onnx")]
    assert cli.run(words) == 3
    assert "no layer has constant f32 weights of 64 elements or more" in capsys.readouterr().err
