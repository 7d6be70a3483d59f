"""Models with operators that only Python of the user knows: bit-exact by onnxruntime around them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from mccompile.base.errors import CheckFailed
from mccompile.base.own_functions import OwnFunction
from mccompile.check.oracle import EVALUATOR, JUDGE, Oracle
from mccompile.importers.api import Reading
from tests.small_models import save

# Versions of QuantizeLinear that onnx's reference evaluator does not have.
TEXT = """<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2,3] x) => (float[2,3] y, int8[2,3] r)
<float s = {0.03}, int8 z = {5}, float one = {1.0}> {
  q = QuantizeLinear(x, s, z)
  d = DequantizeLinear(q, s, z)
  a, b = mine.Both <by = 2.0> (d, one)
  c = Add(a, b)
  e = mine.Once(c)
  r = QuantizeLinear(e, s, z)
  y = Mul(e, d)
}"""
PYTHON = """
import numpy as np

def run(operands, attributes):
    assert all(each.dtype == np.float32 for each in operands)
    x = operands[0]
    return (x * np.float32(attributes["by"]), x + operands[1]) if "by" in attributes else np.tanh(x)
"""


def oracle(folder: Path, python: str = PYTHON, also: tuple[str, ...] = ()) -> Oracle:
    (folder / "mine.py").write_text(python)
    own = tuple(OwnFunction(name, name.lower(), python=str(folder / "mine.py")) for name in ("Both", "Once"))
    return Oracle(save(onnx.parser.parse_model(TEXT), folder), also, reading=Reading(functions=own))


X = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)


def wanted() -> tuple[np.ndarray, np.ndarray]:
    s = np.float32(0.03)
    d = np.rint(X / s) * s
    e = np.tanh(d * np.float32(2) + (d + np.float32(1)))
    return e * d, np.clip(np.rint(e / s) + 5, -128, 127).astype(np.int8)


def test_a_runtime_computes_what_lies_between(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    found = oracle(tmp_path, also=("q",))
    for sign in (1, -1):  # the second run uses the same pieces
        results = found.run({"x": sign * X})
        assert found.name == "onnxruntime"
    np.testing.assert_array_equal(results["q"], np.rint(-X / np.float32(0.03)) + 5)
    results = found.run({"x": X})
    np.testing.assert_allclose(results["y"], wanted()[0], rtol=1e-6)
    np.testing.assert_array_equal(results["r"], wanted()[1])


def test_without_a_runtime_the_judge_computes_what_the_evaluator_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mccompile.check.oracle.find_spec", lambda name: None)
    found = oracle(tmp_path)
    results = found.run({"x": X})
    assert found.name in (JUDGE, EVALUATOR)
    assert results["y"].dtype == np.float32
    np.testing.assert_allclose(results["y"], wanted()[0], rtol=1e-5)
    np.testing.assert_array_equal(results["r"], wanted()[1])


def test_what_python_of_a_user_raises_is_told(tmp_path: Path) -> None:
    found = oracle(tmp_path, "def run(operands, attributes):\n    return operands[7]\n")
    with pytest.raises(CheckFailed, match="list index out of range"):
        found.run({"x": X})
