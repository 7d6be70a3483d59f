"""Functions of floats without branches are within 2 ulp of doubles, with and without fused multiply-add."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.toolchain.build import Library
from tests.runtime_c.accuracy import most_ulp
from tests.runtime_c.built import built

FUNCTIONS = {name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "tanh", "sin", "cos")}
ENDS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    88.7,
    88.8,
    89.1,
    -87.4,
    -103.9,
    -104.6,
    0.3,
    -0.3,
    9.0,
    9.2,
    0.70710677,
    2.0**-12,
]


@pytest.fixture(scope="module", params=["off", "fast"])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    declared = "\n".join(f"void own_{name}(const float *x, float *y, size_t count);" for name in FUNCTIONS)
    flags = [f"-ffp-contract={request.param}", *(["-march=native"] if request.param == "fast" else [])]
    folder = tmp_path_factory.mktemp("elementary")
    return built(Path(__file__).parent / "elementary_harness.c", folder, "gcc", declared, *flags)


def of_all_sizes() -> np.ndarray:
    """Every 4,099th float, NaN included, and those where forms change."""
    bits = np.arange(0, 2**32, 4099, np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), np.float32(ENDS), np.float32([np.nan])])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_within_two_ulp(own: Library, name: str) -> None:
    assert most_ulp(own, name, FUNCTIONS[name], of_all_sizes()) <= 2
