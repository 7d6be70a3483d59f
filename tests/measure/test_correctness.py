"""A wrong result is found, and where it begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.base.errors import CheckFailed
from mccompile.check.oracle import Oracle
from mccompile.driver import Options
from mccompile.emit import kernels
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.measure.correctness import Tolerance, check
from mccompile.plan.ir import Function
from mccompile.targets import api as targets
from tests import small_models
from tests.small_models import save

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
CHANCE = np.random.default_rng(2)
WEIGHTS = CHANCE.standard_normal((64, 8)).astype(np.float32)


def model_of(text: str, path: Path, *weights: np.ndarray) -> Path:
    """Saves a model whose constants are w0, w1 ..."""
    made = parser.parse_model(HEAD + text)
    made.graph.initializer.extend(numpy_helper.from_array(array, f"w{i}") for i, array in enumerate(weights))
    onnx.save(made, path)
    return path


def bytes_of_activations(path: Path, changed: int = 0) -> Path:
    """Two products whose activations are made bytes."""
    first = np.clip(WEIGHTS * 40, -127, 127).astype(np.int8)
    first[3, 5] += changed
    second = np.random.default_rng(1).integers(-127, 128, (8, 4)).astype(np.int8)
    text = """g (float[4,64] x) => (float[4,4] y) {
        q, s, z = DynamicQuantizeLinear(x)
        a = MatMulInteger(q, w0, z)
        b = Cast<to = 1>(a)
        c = Mul(b, s)
        r, t, o = DynamicQuantizeLinear(c)
        d = MatMulInteger(r, w1, o)
        e = Cast<to = 1>(d)
        y = Mul(e, t)
    }"""
    return model_of(text, path, first, second)


def damage(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Replaces a text in the C of every kernel."""
    text = kernels.function_text
    monkeypatch.setattr(kernels, "function_text", lambda function: text(function).replace(old, new))


def test_a_right_model_is_right(tmp_path: Path) -> None:
    verdict = check(save(small_models.branches(), tmp_path), Options())
    assert verdict.ok and verdict.first is None
    assert len(verdict.runs) == 3
    assert [output.name for output in verdict.worst()] == ["y", "z"]


def test_the_first_tensor_that_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch, "expf(", "1.01f * expf(")  # the Sigmoid
    verdict = check(save(small_models.branches(), tmp_path), Options(), runs=1)
    assert not verdict.ok
    assert verdict.first is not None and verdict.first.tensor == "right"
    assert verdict.first.nodes == ("right/Sigmoid",)


def test_a_difference_that_observing_hides_is_narrowed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage to the fused kernel only: with every inner tensor an output nothing is fused and all is right."""
    text = kernels.function_text

    def damaged(function: Function) -> str:
        epilogue = str(function.call.kind.expressions())
        return text(function).replace("0.0f", "0.5f") if "add" in epilogue and "max" in epilogue else text(function)

    monkeypatch.setattr(kernels, "function_text", damaged)
    verdict = check(save(small_models.conv(), tmp_path), Options(), runs=1)
    assert not verdict.ok
    assert verdict.first is None or verdict.first.tensor in ("c1", "r1", "c2", "sum")


def test_a_run_that_depends_on_the_one_before_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch, "= -", "= y[0] - ")
    with pytest.raises(CheckFailed, match="a second run gives another result"):
        check(save(small_models.passthrough(), tmp_path), Options(), runs=1)


def test_narrow_floats_may_be_rounded_at_other_places(tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]> '
    wide = load_proto(parser.parse_model(head + "g (float[3] x) => (float[3] y) { y = Exp(x) }"))
    narrow = load_proto(parser.parse_model(head + "g (float16[3] x) => (float16[3] y) { y = Exp(x) }"))
    target, want = targets.load("generic"), np.array([1.0, 1.0], np.float32)
    near, far = (np.array([1.0, 1.0 + off], np.float32) for off in (2.5e-3, 4e-3))
    assert not Tolerance().suiting(wide, target).compare("y", near, want).ok
    assert Tolerance().suiting(narrow, target).compare("y", near, want).ok
    assert not Tolerance().suiting(narrow, target).compare("y", far, want).ok


def test_what_the_reference_itself_cannot_tell_is_near(tmp_path: Path) -> None:
    """The last bits of a product decide about the sine."""
    pytest.importorskip("onnxruntime")
    text = "g (float[5,64] x) => (float[5,8] y) <float k = {3e5}> { p = MatMul(x, w0) s = Mul(p, k) y = Sin(s) }"
    verdict = check(model_of(text, tmp_path / "m.onnx", WEIGHTS), Options())
    assert not all(run.ok for run in verdict.runs) and verdict.ok and verdict.first is None
    (spread,) = verdict.spreads
    assert spread.covers and spread.sets == correctness.RUNS_TO_TELL
    assert spread.found.mismatches and spread.own.mismatches


@pytest.mark.parametrize("changed", [0, 9])
def test_a_changed_weight_is_wrong_where_activations_are_rounded(
    changed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    original = bytes_of_activations(tmp_path / "original.onnx")
    monkeypatch.setattr(correctness, "Oracle", lambda path, also=(): Oracle(original, also))
    verdict = check(bytes_of_activations(tmp_path / "changed.onnx", changed), Options())
    assert verdict.ok == (changed == 0)


def test_a_changed_weight_is_wrong_where_sums_nearly_cancel_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    text = "g (float[5,64] x) => (float[5,8] y) { p = MatMul(x, w0) q = MatMul(x, w1) y = Sub(p, q) }"
    wrong = WEIGHTS.copy()
    wrong[3, 5] += 0.01
    original, other = WEIGHTS.copy(), WEIGHTS * np.float32(1 + 1e-5)
    path = model_of(text, tmp_path / "original.onnx", original, other)
    monkeypatch.setattr(correctness, "Oracle", lambda _, also=(): Oracle(path, also))
    verdict = check(model_of(text, tmp_path / "changed.onnx", wrong, other), Options())
    assert not verdict.ok and verdict.spreads
