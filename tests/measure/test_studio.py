"""Builds of a page: the smallest plan is named where RAM of all kinds is over the budget of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.driver import Options
from mccompile.measure.studio import add_smallest, built
from tests import small_models


@pytest.mark.parametrize(("stack", "named"), [(0, False), (64 * 1024, True)])
def test_stack_counts_as_ram(stack: int, named: bool, tmp_path: Path) -> None:
    build = built(small_models.save(small_models.conv(), tmp_path), Options(), measure=False, plans=False)
    assert 0 < build.analysis["arena_bytes"] <= 64 * 1024
    build.analysis["run_stack_bytes"] = stack
    add_smallest(build)
    assert ("smallest" in build.analysis) == named
