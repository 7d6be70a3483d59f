"""A few networks counted with every preference: what benchmarks/preferences.json has of all is still so, and each
preference leads in what it is meant for."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

from benchmarks.preferences import dominated, measured, name_of, networks, recorded

COUNTED = [
    ("recurrent", "cortex-m4"),
    ("separable_int8", "cortex-m4"),
    ("transposed_3_1_f32", "cortex-m4"),
    ("separable_int8", "cortex-m55"),
    ("separable_int8", "cortex-m33"),
    ("separable_int8", "cortex-m0"),
    ("separable_int8", "cortex-m7"),
]


@pytest.mark.parametrize(("network", "target"), COUNTED)
def test_what_is_recorded_is_still_so(network: str, target: str, tmp_path: Path) -> None:
    (path,) = (path for path in networks(tmp_path, None) if name_of(path) == network)
    wanted = recorded()[f"{network} {target}"]
    for prefer, found in measured(target, path).items():
        assert astuple(found) == pytest.approx(astuple(wanted[prefer]), rel=0.02), prefer


def test_no_preference_is_dominated() -> None:
    assert {row: found for row, figures in recorded().items() if (found := dominated(figures))} == {}
