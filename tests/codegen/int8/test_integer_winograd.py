"""Winograd's convolution in integers is the convolution, and stays within the bits that hold it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embedded.models import path_of
from mccompile.codegen.int8.integer_winograd import (
    ELEMENTS,
    ELEMENTS_OF_SIX,
    LARGEST_INPUT,
    LARGEST_INPUT_OF_SIX,
    LARGEST_WEIGHT,
    LARGEST_WEIGHT_OF_SIX,
    MOST_CHANNELS,
    MOST_CHANNELS_OF_SIX,
    equal_runs,
    transformed_integers,
    transformed_of_six,
)
from mccompile.driver import Options, compile

INPUT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
OUTPUT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
INPUT_OF_SIX = np.array([
    [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
])  # fmt: skip
OUTPUT_OF_SIX = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 2]])


def test_sums_are_four_times_those_of_the_convolution() -> None:
    chance = np.random.default_rng(1)
    w, x = chance.integers(-128, 128, (2, 5, 3, 3)), chance.integers(-255, 256, (5, 4, 4))
    turned = np.einsum("ai,cij,bj->cab", INPUT, x, INPUT).reshape(5, ELEMENTS)
    products = np.einsum("oce,ce->oe", transformed_integers(w).astype(np.int64), turned).reshape(2, 4, 4)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    wanted = np.einsum("ocij,cyxij->oyx", w, windows)
    np.testing.assert_array_equal(np.einsum("ya,oab,xb->oyx", OUTPUT, products, OUTPUT), 4 * wanted)


def test_the_largest_numbers_fit() -> None:
    weights = np.full((1, 1, 3, 3), -128)
    assert abs(transformed_integers(weights).astype(int)).max() == LARGEST_WEIGHT
    signs = np.sign(np.einsum("ai,bj->abij", INPUT, INPUT))
    assert (abs(np.einsum("ai,bj,abij->ab", INPUT, INPUT, 255 * signs))).max() == LARGEST_INPUT < 2**15
    each = LARGEST_WEIGHT * LARGEST_INPUT
    assert MOST_CHANNELS * each < 2**31 <= (MOST_CHANNELS + 1) * each


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_26_bits_follow_from_what_is_left_of_576_times_as_much(sign: int) -> None:
    chance = np.random.default_rng(2)
    w, x = chance.integers(-128, 128, (2, MOST_CHANNELS_OF_SIX, 3, 3)), chance.integers(-128, 128, (227, 6, 6))
    w[1], x[:] = -128, np.where(sign < 0, -128, x)
    turned = np.einsum("ai,cij,bj->cab", INPUT_OF_SIX, x, INPUT_OF_SIX).reshape(-1, ELEMENTS_OF_SIX)
    products = np.einsum("oce,ce->oe", transformed_of_six(w).astype(np.int64), turned).reshape(2, 6, 6)
    left = np.einsum("ya,oab,xb->oyx", OUTPUT_OF_SIX, products, OUTPUT_OF_SIX).astype(np.uint32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    found = (left * np.uint32(pow(9, -1, 2**32))).view(np.int32) >> 6
    np.testing.assert_array_equal(found, np.einsum("ocij,cyxij->oyx", w, windows))


def test_the_largest_numbers_of_six_elements_fit() -> None:
    weights = np.array([np.full((3, 3), -128), 128 - 256 * (np.indices((3, 3)).sum(0) % 2 == 0)]).clip(-128, 127)
    assert abs(transformed_of_six(weights[:, None]).astype(int)).max() == LARGEST_WEIGHT_OF_SIX < 2**15
    assert (128 * abs(INPUT_OF_SIX).sum(1).max() * abs(INPUT_OF_SIX).sum(1).max()) == LARGEST_INPUT_OF_SIX < 2**15
    assert [equal_runs(channels) for channels in (8, 224, 256, 288, 480, 544)] == [1, 1, 2, 2, 3, 4]


@pytest.mark.parametrize(("prefer", "winograd", "wanted"), [("time", None, 3), ("time", 0, 0), ("balanced", None, 0)])
def test_it_is_for_time_and_can_be_left_out(prefer: str, winograd: int | None, wanted: int, tmp_path: Path) -> None:
    options = Options(target="cortex-m4", prefer=prefer, winograd=winograd)
    plan = compile(path_of("residual_int8", tmp_path), options).plan
    assert sum("winograd" in function.kernel.id for function in plan.functions) == wanted
