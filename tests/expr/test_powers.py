"""Powers as products and roots are as pow gives them: within 2 ulp, and equal where that is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.dtypes import f32, i32
from mccompile.expr.evaluate import evaluate
from mccompile.expr.ir import apply, literal, operand
from mccompile.expr.powers import known_power, near_power, power

EXPONENTS = (1, 2, 3, 4, 0.5, 1.5, -0.5, -1, -2)
ENDS = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 7.1e12, 1.8e19, 1e-20, 8e37]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_known_powers(exponent: float) -> None:
    spread = np.arange(0, 1 << 32, 65537 * 11, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([np.array(ENDS, np.float32), spread])
    found = known_power(operand(0, f32), exponent)
    assert found is not None and "pow" not in str(found)
    got = evaluate(found, [x], x.shape)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), np.full(x.shape, exponent))  # a number would be taken for a root
        want = exact.astype(np.float32)
        finite = np.isfinite(want)
        ulp = np.spacing(np.maximum(np.abs(want[finite]), np.float32(1e-45))).astype(np.float64)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    assert np.max(np.abs(got[finite] - exact[finite]) / ulp) <= 2
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("exponent", [0, 2.5, -3, np.inf, np.nan])
def test_others_take_pow(exponent: float) -> None:
    assert known_power(operand(0, f32), exponent) is None
    assert power(operand(0, f32), exponent) == apply("pow", operand(0, f32), literal(exponent, f32))


def test_integers_have_products_only() -> None:
    assert known_power(operand(0, i32), 3) is not None
    assert known_power(operand(0, i32), -1) is None and known_power(operand(0, i32), 0.5) is None


def test_powers_of_three_quarters_are_near() -> None:
    x = np.arange(1 << 23, 0x7F800000, 65537, dtype=np.uint32).view(np.float32)
    found = near_power(operand(0, f32), 0.75)
    assert "pow" not in str(found)
    exact = x.astype(np.float64) ** 0.75
    assert np.max(np.abs(evaluate(found, [x], x.shape) - exact) / np.spacing(exact.astype(np.float32))) <= 4
    assert near_power(operand(0, f32), 0.6) == power(operand(0, f32), 0.6)
