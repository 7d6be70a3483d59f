"""Vectors of floats, and floats, from and to f16 and bf16 agree with numpy and ml_dtypes on every width of vector that
this machine has: every code read, every neighbourhood of a tie rounded, NaN, infinities and denormal numbers included
(embedded/test_vec_narrow.py: on other machines)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.toolchain.tools import missing
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


MANY = """#include "mcc_vec_narrow.h"
void sums(float *y, const uint16_t *x, int n)
{
    mcc_f32x4 s[7] = {0};
    int i, k;
    for (i = 0; i < n; i++)
        for (k = 0; k < 7; k++) s[k] = mcc_add_f32x4(mcc_mul_f32x4(s[k], s[(k + 1) % 7]), mcc_load_f16_f32x4(x++));
    for (k = 0; k < 7; k++) mcc_store_f32x4(y + 4 * k, s[k]);
}
"""


@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_helium_converts_in_registers_that_every_assembler_encodes(level: str, tmp_path: Path) -> None:
    """GNU's assembler, before it was mended, took vcvtb.f32.f16 of q4 to q7 for other instructions."""
    if missing(("arm-none-eabi-gcc",)):
        pytest.skip("needs a cross-compiler")
    (tmp_path / "many.c").write_text(MANY)
    include = Path(__file__).resolve().parents[2] / "runtime_c" / "include"
    flags = ["-std=c99", level, "-funroll-all-loops", "-mthumb", "-mcpu=cortex-m55", "-mfloat-abi=hard", f"-I{include}"]
    command = ["arm-none-eabi-gcc", *flags, "-S", "many.c", "-o", "-"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    registers = re.findall(r"vcvtb\.f32\.f16\s+q(\d), q(\d)", made)
    assert registers and {number for pair in registers for number in pair} <= {*"0123"}
