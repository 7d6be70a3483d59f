"""What takes floats apart where there is no FPU gives the same bits as what computes with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from mccompile.toolchain.build import compile_shared, find_compiler
from tests.runtime_c.conftest import Runtime
from tests.runtime_c.test_float import near, near_cases

HARNESS = Path(__file__).with_name("harness.c")
SPECIAL = [0, 1, 0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3FC00000, 0x4AFFFFFF, 0x4B000000, 0x4EFFFFFF]
SPECIAL += [0x4F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x40200000, 0x40600000, 0x42FF0000]


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> list[Runtime]:
    folder, include = tmp_path_factory.mktemp("soft"), [data_folder("runtime_c") / "include"]
    made = []
    for soft in (0, 1):
        out = folder / f"soft{soft}.so"
        compile_shared(find_compiler("cc"), [HARNESS], include, out, ["-std=c99", "-O1", f"-DMCC_SOFT_FLOAT={soft}"])
        made.append(Runtime(out, True))
    return made


def numbers() -> np.ndarray:
    chance = np.random.default_rng(1)
    some = np.array([*SPECIAL, *chance.integers(0, 1 << 31, 3000), *(chance.integers(0x3E8, 0x4F8, 3000) << 20)])
    some = some.astype(np.uint32)
    return np.concatenate([some, some | np.uint32(1 << 31)]).view(np.float32)


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint32) if array.dtype == np.float32 else array


@pytest.mark.parametrize("name", ["round_even_f32", "f32_to_i32", "f32_to_i8", "f32_to_u16", "f32_to_u32"])
def test_functions_of_one_number(name: str, forms: list[Runtime]) -> None:
    dtype = {"i8": np.int8, "i32": np.int32, "u16": np.uint16, "u32": np.uint32}.get(name[7:], np.float32)
    computed, taken = (bits(form(name, numbers(), dtype=dtype)) for form in forms)
    np.testing.assert_array_equal(taken, computed)


@pytest.mark.parametrize("name", ["min_f32", "max_f32"])
def test_minimum_and_maximum(name: str, forms: list[Runtime]) -> None:
    a = numbers()
    for b in (a[::-1].copy(), a, np.roll(a, len(a) // 2), np.roll(a, 7)):
        computed, taken = (bits(form(name, a, b)) for form in forms)
        np.testing.assert_array_equal(taken, computed)


@pytest.mark.parametrize("integer", [np.int8, np.uint8, np.int16, np.uint16])
def test_numbers_are_rounded_and_saturate(integer: type[np.integer], forms: list[Runtime]) -> None:
    values, zeros = near_cases(np.dtype(integer))
    name = f"f32_near_{np.dtype(integer).kind}{np.dtype(integer).itemsize * 8}"
    found = forms[1](name, values, zeros, dtype=integer)
    np.testing.assert_array_equal(found, near(values, zeros, np.dtype(integer)))
