"""Vectors of floats from and to f16 and bf16 on every machine that has any and runs programs under emulation: the tests
of tests/runtime_c/test_vec_narrow.py. Nothing is asked of denormal floats but in bf16, which has them in its bits."""

from __future__ import annotations

import pytest

from embedded.test_vectors import VARIANTS, emulated
from tests.runtime_c.test_vec import Vectors
from tests.runtime_c.test_vec_narrow import (
    test_every_code_is_read_as_its_number,
    test_floats_are_rounded_half_to_even,
    test_parts_touch_nothing_beyond,
)

__all__ = [
    "test_every_code_is_read_as_its_number",
    "test_floats_are_rounded_half_to_even",
    "test_parts_touch_nothing_beyond",
]


@pytest.fixture(scope="module", params=[*VARIANTS, ("armv7a", 4)], ids=str)
def vectors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vectors:
    name, lanes = request.param
    return emulated(name, lanes, tmp_path_factory.mktemp("vec"))
