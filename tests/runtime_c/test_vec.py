"""Vectors of floats compute what scalars do, NaN, infinities and denormal numbers included, and mcc_vecmath.h is as
accurate as it says; on every width of vector that this machine has (embedded/test_vectors.py: that others have)."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.targets import api as targets
from tests.runtime_c.built import built

HARNESS = Path(__file__).with_name("vec_harness.c")
ULP = 2.0
UNARY = ("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")
UNARY += ("asinh", "acosh", "atanh")
BINARY = ("pow", "fmod", "mod")
EXACT: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
}
OTHERS = ("max", "min", "at_least", "at_most", "sum", "largest", "part", "product", "smallest", "apart", "transpose")
CONVERSIONS = ("load", "store", "round", "part", "scalar_load", "scalar_store")
NARROW = tuple(f"{what}_{dtype}" for dtype in ("f16", "bf16") for what in CONVERSIONS)
ALL = (*UNARY, *BINARY, *EXACT, *OTHERS, *NARROW, "weave")  # as vec_harness.c counts them
SPECIAL = [0.0, -0.0, 1e-45, -1e-45, 1e-38, 0.5, -0.5, 1.5, 2.5, -2.5, 88.7, 88.8, 100.0, -87.5, -103.9, -104.0, -110.0]
SPECIAL += [1.0, -1.0, 4.0, 8388607.5, 8388609.0, -8388608.0, 1e10, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan]


def _variants() -> list[tuple[int, str]]:
    """Lanes and the flags that make registers for them."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return [(4, "")]
    has = targets.load("native").isas
    found = [(4, "-msse2")]
    found += [(8, "-march=x86-64-v3"), (4, "-march=x86-64-v3")] if "avx2" in has else []
    return found + ([(lanes, "-march=x86-64-v4") for lanes in (16, 8, 4)] if "avx512" in has else [])


@dataclass(frozen=True)
class Vectors:
    """The functions on vectors of so many lanes; `call` runs one on operands and what the result holds before."""

    lanes: int
    call: Callable[[str, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

    def apply(self, name: str, x: np.ndarray, y: np.ndarray | None = None, z: np.ndarray | None = None) -> np.ndarray:
        return self.call(name, x, x if y is None else y, np.empty_like(x) if z is None else z)


@pytest.fixture(scope="module", params=[(c, *v) for c in ("gcc", "clang") for v in _variants()], ids=str)
def vectors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vectors:
    compiler, lanes, flag = request.param
    declared = "\n".join(f"void t_{name}(const float *x, const float *y, float *z, int n);" for name in ALL)
    library = built(HARNESS, tmp_path_factory.mktemp("vec"), compiler, declared, f"-DLANES={lanes}", *flag.split())

    def call(name: str, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        pointers = [library.ffi.cast("float *", array.ctypes.data) for array in (x, y, z)]
        getattr(library.functions, f"t_{name}")(*pointers, z.size)
        return z

    return Vectors(lanes, call)


def _values() -> np.ndarray:
    """Special numbers, and every size and sign; a multiple of 16 of them."""
    spread = np.arange(0, 1 << 32, 65537 * 3, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = np.linspace(-6, 6, 20011, dtype=np.float32)
    quiet = np.where(np.isnan(spread), np.float32(math.nan), spread)
    values = np.concatenate([np.array(SPECIAL, np.float32), quiet, near])
    return values[: len(values) // 16 * 16]


def _near(got: np.ndarray, want: np.ndarray, ulp: float) -> None:
    """Equal where a float is not finite or zero, signs of zeros included; else off by less."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(rounded[zero]), "sign of zero")
    of = np.spacing(np.maximum(np.abs(rounded[finite]), np.float32(1e-45))).astype(np.float64)
    assert np.max(np.abs(got[finite].astype(np.float64) - want[finite]) / of) <= ulp


@pytest.mark.parametrize("name", UNARY)
def test_functions_are_as_accurate_as_documented(vectors: Vectors, name: str) -> None:
    """vec_all_floats.c tries every float."""
    x = _values()
    wide = x.astype(np.float64)
    named = re.sub("^a(?!bs)", "arc", name)
    with np.errstate(all="ignore"):
        want = np.vectorize(math.erf)(wide) if name == "erf" else getattr(np, named)(wide)
    _near(vectors.apply(name, x), want, ULP)


def test_powers_are_as_accurate_as_documented(vectors: Vectors) -> None:
    x = _values()
    y = np.random.default_rng(0).permutation(x)
    usual = np.random.default_rng(1).uniform(-9, 9, x.shape).astype(np.float32)
    ends = np.array([*SPECIAL, 2, 3, -3, 16777215, 33], np.float32)
    pairs = [grid.reshape(-1) for grid in np.meshgrid(np.resize(ends, 48), np.resize(ends, 48))]
    for a, b in ((x, y), (x, usual), (x, np.round(usual)), (pairs[0], pairs[1])):
        with np.errstate(all="ignore"):
            want = np.power(a.astype(np.float64), b.astype(np.float64))
        _near(vectors.apply("pow", a, b), want, ULP)


@pytest.mark.parametrize("name", ["fmod", "mod"])
def test_remainders_are_exact(vectors: Vectors, name: str) -> None:
    x = _values()
    usual = np.random.default_rng(1).uniform(-9, 9, x.shape).astype(np.float32)
    ends = np.resize(np.array(SPECIAL, np.float32), 32)
    pairs = [grid.reshape(-1) for grid in np.meshgrid(ends, ends)]
    for a, b in ((x, np.random.default_rng(0).permutation(x)), (x, usual), (pairs[0], pairs[1])):
        with np.errstate(all="ignore"):
            want = np.fmod(a, b) if name == "fmod" else np.mod(a, b)
        got = vectors.apply(name, a, b)
        if name == "mod":  # numpy rounds the same sum; infinite divisors it gives NaN
            want = np.where(np.isinf(b) & np.isfinite(a), got, want)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", EXACT)
def test_rounding_and_roots_are_exact(vectors: Vectors, name: str) -> None:
    x = _values()
    with np.errstate(all="ignore"):
        want = EXACT[name](x)
    got = vectors.apply(name, x)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]), "sign of zero")


@pytest.mark.parametrize("name", ["max", "min"])
def test_larger_and_smaller_propagate_nan(vectors: Vectors, name: str) -> None:
    a, b = (grid.reshape(-1) for grid in np.meshgrid(np.resize(np.array(SPECIAL, np.float32), 32), _values()[:64]))
    want = {"max": np.maximum, "min": np.minimum}[name](a, b)
    np.testing.assert_array_equal(vectors.apply(name, a, b), want)


def test_bounds_keep_nan(vectors: Vectors) -> None:
    x = np.resize(np.array(SPECIAL, np.float32), 32)
    low = np.full_like(x, -1)
    np.testing.assert_array_equal(vectors.apply("at_least", x, low), np.maximum(x, low))
    np.testing.assert_array_equal(vectors.apply("at_most", x, low), np.minimum(x, low))


def test_sum_and_largest_see_every_lane(vectors: Vectors) -> None:
    lanes = vectors.lanes
    x = np.full((lanes, lanes), -3, np.float32)  # a vector per lane
    np.fill_diagonal(x, 5)
    first = slice(0, None, lanes)
    np.testing.assert_array_equal(vectors.apply("sum", x.reshape(-1))[first], 5 - 3 * (lanes - 1))
    np.testing.assert_array_equal(vectors.apply("largest", x.reshape(-1))[first], 5)
    np.fill_diagonal(x, math.nan)
    assert np.isnan(vectors.apply("largest", x.reshape(-1))[first]).all()


def test_product_and_smallest_see_every_lane(vectors: Vectors) -> None:
    lanes = vectors.lanes
    x = np.full((lanes, lanes), 2, np.float32)  # a vector per lane
    np.fill_diagonal(x, -3)
    first = slice(0, None, lanes)
    np.testing.assert_array_equal(vectors.apply("product", x.reshape(-1))[first], -3 * 2.0 ** (lanes - 1))
    np.testing.assert_array_equal(vectors.apply("smallest", x.reshape(-1))[first], -3)
    np.fill_diagonal(x, math.nan)
    assert np.isnan(vectors.apply("smallest", x.reshape(-1))[first]).all()


def test_numbers_that_lie_apart(vectors: Vectors) -> None:
    lanes = vectors.lanes
    x, z = np.arange(2 * lanes, dtype=np.float32), np.full(3 * lanes, 99, np.float32)
    want = z.copy()
    want[::3], want[1 : 3 * (lanes - 1) : 3] = x[::2], x[1 : 2 * (lanes - 1) : 2]
    np.testing.assert_array_equal(vectors.apply("apart", np.resize(x, 3 * lanes), z=z), want)


def test_tiles_are_transposed_and_rows_woven(vectors: Vectors) -> None:
    lanes = vectors.lanes
    if lanes == 16:
        pytest.skip("vectors of 16 have no such functions")
    x = np.arange(lanes * lanes, dtype=np.float32)
    np.testing.assert_array_equal(vectors.apply("transpose", x), x.reshape(lanes, lanes).T.reshape(-1))
    two = x[: 2 * lanes]
    np.testing.assert_array_equal(vectors.apply("weave", two), two.reshape(2, lanes).T.reshape(-1))


def test_parts_touch_nothing_beyond(vectors: Vectors) -> None:
    x, z = np.arange(vectors.lanes, dtype=np.float32), np.full(vectors.lanes, 9, np.float32)
    np.testing.assert_array_equal(vectors.apply("part", x, z=z), [*(x[:-1] + 1), 9])
