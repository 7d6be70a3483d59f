"""Functions that some C libraries lack are near those of numpy in doubles, at both ends of floats too."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mccompile.toolchain.build import Library
from tests.runtime_c.accuracy import computed, most_ulp
from tests.runtime_c.built import built

FUNCTIONS = {
    "expm1": np.expm1,
    "log1p": np.log1p,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "erf": np.vectorize(math.erf),
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Library:
    declared = "\n".join(f"void own_{name}(const float *x, float *y, size_t count);" for name in FUNCTIONS)
    folder = tmp_path_factory.mktemp("libm")
    return built(Path(__file__).parent / "libm_harness.c", folder, "gcc", declared, "-ffp-contract=off")


def _of_all_sizes() -> np.ndarray:
    """Every 65,537th float, NaN left out, and those where forms change."""
    bits = np.arange(0, 2**32, 65537, np.uint64).astype(np.uint32)
    near = [0.0, -0.0, 1.0, -1.0, 0.92, 0.94, 3.9, 4.1, 9.9e8, 1.1e9, 88.7, 88.8, -17, -104, np.inf, -np.inf]
    x = np.concatenate([bits.view(np.float32), np.float32(near)])
    return x[~np.isnan(x)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_near_the_function(own: Library, name: str) -> None:
    assert most_ulp(own, name, FUNCTIONS[name], _of_all_sizes()) <= 4


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_stays(own: Library, name: str) -> None:
    assert np.isnan(computed(own, name, np.float32([np.nan]))[0])
