"""No run takes more instructions than the bound of its machine code, nor much fewer; what has no bound is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.bounds import compared
from embedded.models import path_of


@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m33"])
@pytest.mark.parametrize("name", ["separable_int8", "residual_int8"])
def test_bounds_hold_and_are_close(name: str, target: str, tmp_path: Path) -> None:
    found = compared(path_of(name, tmp_path), target)
    assert found.bound.instructions is not None, found.bound.without
    assert found.count <= found.bound.instructions <= 1.1 * found.count


def test_loops_that_end_by_data_are_named(tmp_path: Path) -> None:
    found = compared(path_of("digits", tmp_path), "cortex-m4").bound
    assert found.instructions is None and any("ends by data" in each for each in found.without)
