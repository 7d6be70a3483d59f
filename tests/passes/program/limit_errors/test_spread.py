"""How elements are spread: quantiles of channels, and what expressions make of them."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f32
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.expr.ir import apply, literal, operand
from mccompile.passes.program.limit_errors.spread import (
    ALIKE,
    MANY,
    MOST,
    NORMAL,
    STEEPEST,
    Spread,
    axis_of_constant,
    centred,
    largest_of,
    normal,
    of_constant,
    pooled,
    through,
)
from mccompile.program.ir import CONSTANT, Buffer, View

X = operand(0, f32)
RELU = apply("max", X, literal(0, f32))
MEANS = np.arange(1.0, 7.0)
SIX = Spread(normal(MEANS, np.zeros(6)), 20)  # channels of 4x5 elements


def view(shape: tuple[int, ...], array: np.ndarray | None = None) -> View:
    if array is None:
        return Buffer("x", f32, shape).whole()
    return Buffer("w", f32, shape, CONSTANT, Constant.of(array.astype(np.float32))).whole()


def channels_of(found: np.ndarray) -> list[float]:
    return [float(mean) for mean in found.mean(-1)]


def test_what_is_normal_has_mean_0_and_variance_1() -> None:
    assert NORMAL.mean() == pytest.approx(0, abs=1e-9) and NORMAL.var() == pytest.approx(1) and ALIKE.square == 1


def test_channels_lie_along_their_axis() -> None:
    assert channels_of(SIX.along(view((1, 6, 4, 5)), 1)) == list(MEANS)


def test_channels_of_a_part() -> None:
    assert channels_of(SIX.along(view((1, 6, 4, 5)).sliced(1, 4, 2, -2), 1)) == [5, 3]


def test_channels_behind_a_change_of_axes() -> None:
    assert channels_of(SIX.along(view((1, 6, 4, 5)).permuted((0, 2, 3, 1)), 3)) == list(MEANS)


def test_along_other_axes_all_channels_are_alike() -> None:
    assert channels_of(SIX.along(view((1, 6, 4, 5)), 2)) == [3.5]


def test_a_constant_for_each_channel_is_known_exactly() -> None:
    found = of_constant(view((1, 6, 1), MEANS.reshape(1, 6, 1)), 1)
    assert found.shape == (6, MANY) and channels_of(found) == list(MEANS) and found.std(-1).max() == 0


def test_one_that_varies_along_several_axes_is_spread() -> None:
    weights = np.random.default_rng(0).standard_normal((40, 50))
    found = of_constant(view((40, 50), weights), 1)
    assert found.shape == (1, MANY) and found.std() == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(("shape", "axis"), [((1, 6, 1), 1), ((6, 4), None), ((1, 1), None)])
def test_the_axis_along_which_a_constant_varies(shape: tuple[int, ...], axis: int | None) -> None:
    assert axis_of_constant(view(shape, np.ones(shape))) == axis


def test_weights_that_are_no_numbers_or_huge_leave_numbers() -> None:
    found = of_constant(view((2, 2), np.array([[np.nan, np.inf], [-np.inf, 3e38]])), 1)
    assert np.isfinite(found**2).all()


def test_relu_keeps_the_errors_of_half() -> None:
    result, (kept,) = through(RELU, [NORMAL])
    assert float(np.mean(result**2)) == pytest.approx(0.5, rel=0.05) and kept == pytest.approx([0.5], rel=0.1)


def test_a_factor_multiplies_errors() -> None:
    _, kept = through(apply("mul", X, literal(-3, f32)), [NORMAL])
    assert kept[0] == pytest.approx([9], rel=1e-4)


def test_operands_have_nothing_to_do_with_each_other() -> None:
    result, _ = through(apply("add", X, operand(1, f32)), [NORMAL, NORMAL])
    assert result.var() == pytest.approx(2, rel=0.1)


def test_steps_are_not_infinitely_steep() -> None:
    _, (kept,) = through(apply("exp", apply("mul", X, literal(30, f32))), [NORMAL])
    assert kept.max() <= STEEPEST**2


def test_a_bias_takes_away_the_mean_of_each_channel() -> None:
    sums, bias = normal(MEANS, np.ones(6)), normal(np.zeros(6), np.zeros(6))
    assert channels_of(centred(RELU_OF_SUM, [sums, bias], {1})[1]) == pytest.approx(list(-MEANS), rel=1e-5)


def test_what_is_no_bias_stays() -> None:
    sums, residual = normal(MEANS, np.ones(6)), normal(np.zeros(6), np.ones(6))
    assert centred(RELU_OF_SUM, [sums, residual], set())[1] is residual


def test_the_largest_of_several() -> None:
    several = np.random.default_rng(0).standard_normal((4000, 9)).max(1)
    found = largest_of(NORMAL, 9)
    assert found.mean() == pytest.approx(several.mean(), abs=0.1) and found.std() == pytest.approx(
        several.std(), abs=0.1
    )


def test_a_scalar_and_nothing_have_no_channels() -> None:
    assert channels_of(SIX.along(view(()), -1)) == [3.5]
    assert of_constant(view((0, 3), np.zeros((0, 3))), 1) is NORMAL


def test_many_channels_are_not_told_apart() -> None:
    many = np.linspace(-1, 1, MOST + 1)
    assert of_constant(view((MOST + 1,), many), 0).shape == (1, MANY)
    assert len(of_constant(view((MOST,), many[:-1]), 0)) == MOST


def test_pooled_elements_are_as_large_as_those_of_all_channels() -> None:
    apart = normal(np.linspace(-3, 3, 100), np.full(100, 0.25))
    assert pooled(apart).shape == (1, MANY)
    assert np.mean(pooled(apart) ** 2) == pytest.approx(np.mean(apart**2), rel=0.03)


@pytest.mark.parametrize("axis", [1, 3])
def test_a_constant_takes_no_memory_for_what_it_is_broadcast_over(axis: int) -> None:
    """A bias of 6 channels over a picture with 48 million elements."""
    bias = view((6,), MEANS)
    wide = replace(bias, shape=(1, 6, 2000, 4000), strides=(0, 1, 0, 0))
    tracemalloc.start()
    found = of_constant(wide, axis)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert channels_of(found) == (list(MEANS) if axis == 1 else [pytest.approx(3.5, rel=0.01)])
