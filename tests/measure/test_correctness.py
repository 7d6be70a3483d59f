"""A wrong result is found, and where it begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import CheckFailed
from mccompile.driver import Options
from mccompile.emit import kernels
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import Tolerance, check
from mccompile.plan.ir import Function
from tests import small_models
from tests.small_models import save


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
    got, want = np.array([1.0, 1.01], np.float32), np.array([1.0, 1.0], np.float32)
    assert not Tolerance().suiting(wide).compare("y", got, want).ok
    assert Tolerance().suiting(narrow).compare("y", got, want).ok
