"""Vectors of floats compute what scalars do, on every machine that has any and runs programs under emulation: the tests
of tests/runtime_c/test_vec.py. 32-bit Arm rounds denormal numbers to zero, and is not among them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from mccompile.targets import api as targets
from mccompile.toolchain.emulate import run_command
from tests.runtime_c.test_vec import (
    ALL,
    HARNESS,
    Vectors,
    test_bounds_keep_nan,
    test_functions_are_as_accurate_as_documented,
    test_larger_and_smaller_propagate_nan,
    test_numbers_that_lie_apart,
    test_parts_touch_nothing_beyond,
    test_powers_are_as_accurate_as_documented,
    test_product_and_smallest_see_every_lane,
    test_remainders_are_exact,
    test_rounding_and_roots_are_exact,
    test_sum_and_largest_see_every_lane,
    test_tiles_are_transposed_and_rows_woven,
)

__all__ = [
    "test_bounds_keep_nan",
    "test_functions_are_as_accurate_as_documented",
    "test_larger_and_smaller_propagate_nan",
    "test_numbers_that_lie_apart",
    "test_parts_touch_nothing_beyond",
    "test_powers_are_as_accurate_as_documented",
    "test_product_and_smallest_see_every_lane",
    "test_remainders_are_exact",
    "test_rounding_and_roots_are_exact",
    "test_sum_and_largest_see_every_lane",
    "test_tiles_are_transposed_and_rows_woven",
]
VARIANTS = [
    ("aarch64", 4),
    ("riscv64v", 4),
    ("riscv64v", 8),
    ("riscv64v", 16),
    ("riscv64v256", 16),
    ("wasm32", 4),
    ("wasm32-relaxed", 4),
]


def emulated(name: str, lanes: int, folder: Path) -> Vectors:
    """The functions on a target's vectors, as a program that runs there."""
    target, program = targets.load(name), folder / "program"
    flags = [*target.cflags, "-static", f"-DLANES={lanes}", "-DPROGRAM", f"-I{data_folder('runtime_c') / 'include'}"]
    subprocess.run([target.compiler, *flags, str(HARNESS), "-o", str(program), "-lm"], check=True)

    def call(function: str, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        given = np.array([ALL.index(function), z.size], np.int32).tobytes() + b"".join(a.tobytes() for a in (x, y, z))
        done = subprocess.run([*run_command(target), str(program)], input=given, capture_output=True, check=True)
        return np.frombuffer(done.stdout, np.float32)

    return Vectors(lanes, call)


@pytest.fixture(scope="module", params=VARIANTS, ids=str)
def vectors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vectors:
    name, lanes = request.param
    return emulated(name, lanes, tmp_path_factory.mktemp("vec"))
