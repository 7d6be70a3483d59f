"""Costs need an emulator; figures are summed as they are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options
from mccompile.measure.cost import Cost, cost
from mccompile.toolchain.stack import Bound
from tests import small_models
from tests.small_models import compiled, save


def test_a_target_without_an_emulator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="names no emulator"):
        cost(save(small_models.conv(), tmp_path), Options())


def test_code_is_all_flash_but_the_weights() -> None:
    sections = {
        "kernels": {"text": 100, "rodata": 10, "bss": 4000},
        "model": {"text": 20},
        "libraries": {"text": 3, "data": 1},
        "weights": {"rodata": 5000},
    }
    figures = Cost(compiled(small_models.conv()), 1, 2, sections, 12, 30, 40, Bound(36, ("expf",)), {"conv": 28})
    assert (figures.code_bytes, figures.own_code_bytes) == (134, 130)
    assert figures.as_dict()["macs"] == figures.macs > 0
    assert figures.as_dict()["function_stack_bytes"] == {"conv": 28}
    assert figures.as_dict()["steps"] == 2
    counted = replace(figures, by_step=(7, 9)).as_dict()["steps"]
    assert [step["instructions"] for step in counted] == [7, 9] and counted[0]["name"]
    assert "stack 40 bytes" in figures.show()
    assert "stack    static bound 36 bytes, plus expf (unknown)" in figures.show()
