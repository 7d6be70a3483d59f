"""Vectors of floats, and floats, from and to f16 and bf16 agree with numpy and ml_dtypes on every width of vector that
this machine has: every code read, every neighbourhood of a tie rounded, NaN, infinities and denormal numbers included
(embedded/test_vec_narrow.py: on other machines)."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.discovery import data_folder
from tests.runtime_c.test_narrow import TYPES, codes_of, floats_around, same_codes
from tests.runtime_c.test_vec import Vectors, vectors

__all__ = ["vectors"]
DTYPES = ("f16", "bf16")


@pytest.mark.parametrize("of", ["", "scalar_"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_code_is_read_as_its_number(vectors: Vectors, dtype: str, of: str) -> None:
    codes = codes_of(dtype)
    x = np.zeros(codes.size, np.float32)
    x.view(np.uint16)[: codes.size] = codes
    got, want = vectors.apply(f"{of}load_{dtype}", x), codes.view(TYPES[dtype]).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]), "sign of zero")


@pytest.mark.parametrize("dtype", DTYPES)
def test_floats_are_rounded_half_to_even(vectors: Vectors, dtype: str) -> None:
    x = floats_around(dtype)
    x = np.resize(x, -(-x.size // 16) * 16)
    with np.errstate(all="ignore"):
        want = x.astype(TYPES[dtype])
    stored = vectors.apply(f"store_{dtype}", x).view(np.uint16)[: x.size]
    same_codes(stored, want, dtype)
    same_codes(vectors.apply(f"scalar_store_{dtype}", x).view(np.uint16)[: x.size], want, dtype)
    rounded = vectors.apply(f"round_{dtype}", x)
    np.testing.assert_array_equal(rounded, want.astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_touch_nothing_beyond(vectors: Vectors, dtype: str) -> None:
    lanes = vectors.lanes
    x, z = np.zeros(lanes, np.float32), np.zeros(lanes, np.float32)
    x.view(np.uint16)[:lanes] = np.arange(lanes).astype(TYPES[dtype]).view(np.uint16)
    z.view(np.uint16)[:] = np.uint16(9)
    got = vectors.apply(f"part_{dtype}", x, z=z).view(np.uint16)
    np.testing.assert_array_equal(got[: lanes - 1].view(TYPES[dtype]), np.arange(1, lanes).astype(TYPES[dtype]))
    np.testing.assert_array_equal(got[lanes - 1 :], 9)


@pytest.mark.skipif(shutil.which("gcc") is None or platform.machine() != "x86_64", reason="asks gcc for x86-64")
@pytest.mark.parametrize(("lanes", "count"), [(8, 7), (16, 10)])
def test_a_part_is_read_by_one_load(tmp_path: Path, lanes: int, count: int) -> None:
    """A vector that is read right after its parts were stored waits for them."""
    type, text = f"mcc_f32x{lanes}", tmp_path / "f.c"
    head = f'#include "mcc_vec_narrow.h"\n{type} f(const uint16_t *p);\n{type} f(const uint16_t *p) {{'
    text.write_text(f"{head} return mcc_load_part_f16_f32x{lanes}(p, {count}); }}\n")
    command = ["gcc", "-O2", "-march=x86-64-v4", "-S", "-o", "-", f"-I{data_folder('runtime_c') / 'include'}"]
    made = subprocess.run([*command, str(text)], capture_output=True, text=True, check=True).stdout
    assert "{z}" in made and "rsp" not in made
