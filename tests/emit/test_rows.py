"""Long chains of rows are functions that ask each other, short ones are loops in each other; both compute the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mccompile.driver import Options
from mccompile.emit import items, rows
from mccompile.measure.correctness import check
from tests.emit.c_faults import DEEPEST, TOO_DEEP, faults
from tests.lengths import functions
from tests.small_models import compiled, save
from tests.small_quantized import convolutions

LAYERS = [(8, 3, 1)] * 6
STRICT = Options(target="generic", prefer="ram")


def test_a_long_chain_is_a_function_for_each_stage(tmp_path: Path) -> None:
    made = convolutions(24, LAYERS)
    text = compiled(made, STRICT).files["convolutions.c"].decode()
    stages = [name for name, _ in functions(text) if "rows_of_" in name]
    assert len(re.findall(r"^MCC_PART void rows_of_\d+", text, re.MULTILINE)) > rows.DEEPEST, stages
    assert TOO_DEEP not in {fault for fault, _ in faults(text)}
    assert check(save(made, tmp_path), STRICT, runs=1).ok


def test_a_short_chain_is_loops(tmp_path: Path) -> None:
    made = convolutions(24, LAYERS[:2])
    text = compiled(made, STRICT).files["convolutions.c"].decode()
    assert "while (made_" in text and "rows_of_" not in text
    assert check(save(made, tmp_path), STRICT, runs=1).ok


def test_both_make_the_same_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(items, "is_deep", lambda region: False)
    made = convolutions(24, LAYERS)
    text = compiled(made, STRICT).files["convolutions.c"].decode()
    assert text.count("while (made") > DEEPEST and "rows_of_" not in text
    assert check(save(made, tmp_path), STRICT, runs=1).ok
