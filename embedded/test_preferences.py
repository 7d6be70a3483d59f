"""A few networks counted with every preference: what benchmarks/preferences.json has of all is still so."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

from benchmarks.preferences import measured, name_of, networks, recorded

COUNTED = ("recurrent", "separable_int8", "transposed_3_1_f32")


@pytest.mark.parametrize("network", COUNTED)
def test_what_is_recorded_is_still_so(network: str, tmp_path: Path) -> None:
    (path,) = (path for path in networks(tmp_path, None) if name_of(path) == network)
    wanted = recorded()[f"{network} cortex-m4"]
    for prefer, found in measured("cortex-m4", path).items():
        assert astuple(found) == pytest.approx(astuple(wanted[prefer]), rel=0.02), prefer
