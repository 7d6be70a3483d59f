"""`make race` draws models that the standard allows; smaller cases are smaller ones of the same operator."""

from __future__ import annotations

import math
import random

import onnx
import pytest

from benchmarks.drawn_operators import (
    FAMILIES,
    LEAST,
    Case,
    drawn,
    model,
    smaller,
    types_of,
)
from benchmarks.race import main


def test_drawn_cases_are_models_and_meet_every_operator() -> None:
    draws = random.Random(1)
    cases = [drawn(draws) for _ in range(3000)]
    for case in cases[:600]:
        onnx.checker.check_model(model(case), full_check=True)
    assert {case.op for case in cases} == {op for family in FAMILIES for op in family}
    for op in ("Add", "Conv", "MaxPool", "Transpose"):
        of = {case.dtype for case in cases if case.op == op and not case.quantized}
        assert of <= set(types_of(op)) and len(of) > 1, op
        assert any(case.quantized for case in cases if case.op == op), op


def test_types_are_those_of_the_schema_that_onnxruntime_runs() -> None:
    pytest.importorskip("onnxruntime")
    assert {"double", "float16", "int64"} <= set(types_of("Add"))
    assert "float" in types_of("Conv") and types_of("BitwiseAnd") and "float" not in types_of("BitwiseAnd")


def test_the_same_seed_draws_the_same() -> None:
    first, second = random.Random(7), random.Random(7)
    assert [drawn(first) for _ in range(9)] == [drawn(second) for _ in range(9)]


def test_peers_that_are_not_installed_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["race", "--seconds", "0", "--peers", "onnxruntime", "no_such_peer"])
    with pytest.raises(SystemExit):
        main()
    assert "no_such_peer is not installed" in capsys.readouterr().out


@pytest.mark.parametrize("behind", ["", "Relu"])
def test_smaller_cases(behind: str) -> None:
    case = Case("Softmax", (64, 256), axes=(1,), before="Transpose", behind=behind)
    found = list(smaller(case))
    assert all(each.op == case.op and math.prod(each.shape) >= LEAST for each in found)
    assert {each.before for each in found} == {"", "Transpose"} and case not in found
    for each in found:
        onnx.checker.check_model(model(each), full_check=True)
