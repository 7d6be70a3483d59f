"""What samples that do not fit are told: the command is pasted to a shell, and the samples then fit."""

from __future__ import annotations

import pickle
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import BadFile
from mccompile.frontend.load import load
from mccompile.quantize.samples import read_samples

PLAIN = "g (float[1,2,3] x) => (float[1,2,3] y) { y = Relu(x) }"
PAIR = "g (float[1,2,3] image, float[1,5] state) => (float[1,2,3] y) { s = ReduceSum(state) y = Add(image, s) }"
INTEGERS = """g (int8[1,2,3] x) => (float[1,6] y) <float s = {0.5}, int8 z = {-3}, int64[2] to = {1, 6}>
    { flat = Reshape(x, to) y = DequantizeLinear(flat, s, z) }"""
X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(8, 2, 3)
STATE = np.ones((8, 5), np.float32)
CLASSES = np.arange(8) % 4


def _told(model: str, stored: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The samples that are read once the fix was pasted."""
    monkeypatch.chdir(tmp_path)
    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {model}')
    Path("m.onnx").write_bytes(made.SerializeToString())
    graph, path = load(Path("m.onnx")), Path("s.npz")
    np.savez(path, **stored)
    with pytest.raises(BadFile) as refused:
        read_samples(path, graph)
    command = re.search(r"python -c \".*\"", refused.value.problems[0].fix)
    assert command is not None, str(refused.value)
    subprocess.run(["bash", "-c", command[0]], check=True)
    return read_samples(path, graph)


CASES: list[tuple[str, str, dict[str, Any], Callable[[Any], bool]]] = [
    ("training", PLAIN, {"x_train": X, "y_train": CLASSES}, lambda s: (s.labels == CLASSES).all()),
    ("further", PLAIN, {"inputs": X, "ids": STATE}, lambda s: s.labels is None and len(s.feeds) == 8),
    ("by shape", PAIR, {"a": STATE, "b": X}, lambda s: np.array_equal(s.feeds[3]["image"][0], X[3])),
    ("one-hot", PLAIN, {"x": X, "labels": np.eye(4)[CLASSES]}, lambda s: (s.labels == CLASSES).all()),
    ("one less", PLAIN, {"x": X, "labels": CLASSES[1:]}, lambda s: s.labels is None and len(s.feeds) == 8),
    ("one more", PLAIN, {"x": X, "y": np.arange(9)}, lambda s: s.labels is None),
    ("counted", INTEGERS, {"x": X}, lambda s: [f["x"].ravel()[0] for f in s.feeds] == [-5, -4, -4, -3, -3, -2, -2, -1]),
    ("whole", INTEGERS, {"x": np.rint(X * 100)}, lambda s: s.feeds[7]["x"].max() == 100),
]


@pytest.mark.parametrize(("model", "stored", "holds"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_samples_fit_once_the_fix_is_pasted(
    model: str, stored: dict[str, Any], holds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holds(_told(model, stored, tmp_path, monkeypatch))


def test_several_labels_of_each_sample_are_left_alone(tmp_path: Path) -> None:
    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {PLAIN}')
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    np.savez(tmp_path / "s.npz", x=X, labels=np.arange(16))
    found = read_samples(tmp_path / "s.npz", load(tmp_path / "m.onnx"))
    assert found.labels is not None and len(found.labels) == 16


def test_a_pickle_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {PLAIN}')
    Path("m.onnx").write_bytes(made.SerializeToString())
    Path("s.pkl").write_bytes(pickle.dumps({"x": X}))
    with pytest.raises(BadFile, match="it is a pickle") as refused:
        read_samples(Path("s.pkl"), load(Path("m.onnx")))
    subprocess.run(["bash", "-c", refused.value.problems[0].fix], check=True)
    assert len(read_samples(Path("s.npz"), load(Path("m.onnx"))).feeds) == 8
