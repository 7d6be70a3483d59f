"""Estimates order the steps of int8 networks as their counted instructions do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ranks import WANTED, correlation
from embedded.models import path_of


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_depthwise_windows_count_beside_dense_ones(target: str, tmp_path: Path) -> None:
    assert correlation(path_of("separable_int8", tmp_path), target)[0] >= WANTED
