"""Convolutions in vectors: tiles of one point where flash comes first, without code for the edges of an image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mccompile.kernels.api import Needs
from mccompile.targets import api as targets
from tests.kernels.harness import call_of
from tests.kernels.test_matrix import KERNELS, wrong_results

KERNEL = KERNELS["conv/f32_nhwc_tile__vec"]


def by_point(prefer: str) -> list[str]:
    """The cases that get such tiles."""
    target, found = replace(targets.load("native"), prefer=prefer), []
    for case in KERNEL.cases():
        needs = KERNEL.match(call_of(KERNEL, case)[0], target)
        found += [case.name] if isinstance(needs, Needs) and needs.blocks[-1] else []
    return found


def test_tiles_have_one_point_where_bytes_count_more() -> None:
    assert {"odd", "1d", "3d", "groups_strided"} <= set(by_point("flash"))
    assert not by_point("time")


@pytest.mark.thorough
@pytest.mark.skipif("vec" not in targets.load("native").isas, reason="this machine has no vectors")
def test_tiles_of_one_point_find_the_taps_inside(tmp_path: Path) -> None:
    names = by_point("flash")
    cases = [case for case in KERNEL.cases() if case.name in names]
    assert not wrong_results(KERNEL, replace(targets.load("native"), prefer="flash"), tmp_path, cases, ["-O0"])
