"""Functions of vectors of doubles are as accurate as mcc_vecmath_doubles.h says, on every width of vector that this
machine has, NaN, infinities, denormal numbers and signs of zeros included."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mccompile.targets import api as targets
from tests.runtime_c.built import built

HARNESS = Path(__file__).with_name("vec_doubles_harness.c")
ULP = 2.0
FUNCTIONS = ("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")
FUNCTIONS += ("asinh", "acosh", "atanh")
EXACT = ("floor", "ceil", "trunc", "round_even")
PAIRS = ("fmod", "mod")
SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 2.3e-308, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 5.9, 6.0, 40.0, -40.0]
SPECIAL += [709.78, 709.79, 710.4, 710.5, -708.4, -745.1, -745.2, 1048576.0, -1e22, 4503599627370495.5, 1e300, -1e300]
SPECIAL += [math.inf, -math.inf, math.nan, 0.55, 22.0, -22.5, 268435456.5, 1 + 2**-52, 1 - 2**-53]

Errors = Callable[..., np.ndarray]


def _variants() -> list[tuple[str, int, str]]:
    """Compiler, lanes and the flags that make registers for them."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return [("gcc", 2, "")]
    has = targets.load("native").isas
    found = [("gcc", 2, "-msse2"), ("clang", 2, "-msse4.1")]
    found += [("gcc", 4, "-march=x86-64-v3")] if "avx2" in has else []
    return found + ([("gcc", 8, "-march=x86-64-v4"), ("clang", 4, "-march=x86-64-v4")] if "avx512" in has else [])


@pytest.fixture(scope="module", params=_variants(), ids=str)
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    compiler, lanes, flag = request.param
    declared = "\n".join(
        [f"void t_{name}(const double *x, double *ulp, int n);" for name in (*FUNCTIONS, *EXACT, "sqrt")]
        + [f"void t_{name}(const double *x, const double *by, double *ulp, int n);" for name in PAIRS]
    )
    folder, flags = tmp_path_factory.mktemp("doubles"), [*flag.split(), "-ffp-contract=off"]
    library = built(HARNESS, folder, compiler, declared, f"-DLANES={lanes}", *flags)

    def found(name: str, *operands: np.ndarray) -> np.ndarray:
        ulp = np.empty_like(operands[0])
        pointers = [library.ffi.cast("double *", array.ctypes.data) for array in (*operands, ulp)]
        getattr(library.functions, f"t_{name}")(*pointers, ulp.size)
        return ulp

    return found


def _values() -> np.ndarray:
    """Special numbers, every size and sign, and what lies near zeros and turns; a multiple of 8 of them."""
    draw = np.random.default_rng(5)
    signs = draw.choice([-1.0, 1.0], 20000)
    sizes = np.exp(draw.uniform(-740, 709, 20000)) * signs
    small = np.exp(draw.uniform(-37, 3, 20000)) * signs
    quarters = np.arange(-2000, 2000) * (math.pi / 2)
    spread = [draw.uniform(-1.5, 1.5, 20000), draw.uniform(-30, 30, 20000), draw.uniform(-720, 720, 9000)]
    values = np.concatenate([np.array(SPECIAL), sizes, small, quarters, draw.uniform(-2e6, 2e6, 9000), *spread])
    return np.resize(values, values.size // 8 * 8 + 8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_as_accurate_as_documented(errors: Errors, name: str) -> None:
    x = _values()
    found = errors(name, x)
    worst = int(np.argmax(found))
    assert found[worst] <= ULP, f"{name}({x[worst]!r}) is off by {found[worst]} ulp"


@pytest.mark.parametrize("name", EXACT)
def test_rounding_is_exact(errors: Errors, name: str) -> None:
    assert not np.any(errors(name, _values()))


@pytest.mark.parametrize("name", PAIRS)
def test_remainders_are_exact(errors: Errors, name: str) -> None:
    """Of special numbers by each other, of numbers of any size, of multiples and their neighbours."""
    draw = np.random.default_rng(7)
    first, second = np.meshgrid(SPECIAL, SPECIAL)
    x, by = (np.exp(draw.uniform(-740, 709, 20000)) * draw.choice([-1.0, 1.0], 20000) for _ in range(2))
    with np.errstate(over="ignore"):
        times = by * np.exp(draw.uniform(0, 40, 20000)).round()
    multiples = [times, np.nextafter(times, np.inf), np.nextafter(times, -np.inf), draw.uniform(-1e4, 1e4, 20000)]
    xs = np.concatenate([first.ravel(), x, *multiples])
    bys = np.concatenate([second.ravel(), *[by] * 4, draw.uniform(-3, 3, 20000)])
    count = xs.size // 8 * 8
    assert not np.any(errors(name, xs[:count], bys[:count]))


def test_roots_are_rounded_once(errors: Errors) -> None:
    assert np.max(errors("sqrt", _values())) <= 0.5
