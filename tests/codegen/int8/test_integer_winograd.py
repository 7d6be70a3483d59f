"""Winograd's convolution in integers is the convolution, and stays within the bits that hold it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embedded.models import path_of
from mccompile.codegen.int8.integer_winograd import (
    ELEMENTS,
    LARGEST_INPUT,
    LARGEST_WEIGHT,
    MOST_CHANNELS,
    transformed_integers,
)
from mccompile.driver import Options, compile

INPUT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
OUTPUT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])


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


@pytest.mark.parametrize(("prefer", "winograd", "wanted"), [("time", None, 3), ("time", 0, 0), ("balanced", None, 0)])
def test_it_is_for_time_and_can_be_left_out(prefer: str, winograd: int | None, wanted: int, tmp_path: Path) -> None:
    options = Options(target="cortex-m4", prefer=prefer, winograd=winograd)
    plan = compile(path_of("residual_int8", tmp_path), options).plan
    assert sum("winograd" in function.kernel.id for function in plan.functions) == wanted
