"""Forms of steps: how weights lie for each, and which tiles fit the registers."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.base.dtypes import i8, u8
from mccompile.codegen.int8.dot_forms import FORMS, FOURS, PAIRS, TERMS, Form, form_of
from mccompile.codegen.int8.dot_tiles import best_dot_tile, shifted, sum_registers
from mccompile.targets import api as targets

RISCV = targets.load("riscv64v")


@pytest.mark.parametrize(
    ("form", "first"),
    [
        (FOURS, [0, 1, 2, 3, 16, 17, 18, 19]),
        (TERMS, [0, 16, 1, 17, 2, 18, 3, 19]),
        (PAIRS, [*range(8), *range(16, 24)]),
    ],
    ids=[form.name for form in FORMS],
)
def test_a_step_has_its_weights_side_by_side(form: Form, first: list[int]) -> None:
    weights = np.arange(32).reshape(2, 16)  # channels, elements
    assert form.steps(weights)[0].reshape(-1).tolist() == first
    assert form.steps(weights).size == 32


def test_registers_of_128_bits_hold_eight_vectors_of_sixteen_sums() -> None:
    assert form_of(RISCV) is TERMS
    assert (sum_registers(RISCV), sum_registers(targets.load("riscv64v256"))) == (8, 16)
    for points in (1, 7, 49, 196):
        size = best_dot_tile(points, 96, 40, RISCV)
        assert size.points * size.vectors < 8 and size.vectors < 4


def test_two_points_by_two_channels_leave_registers_for_weights() -> None:
    matrices = targets.load("aarch64-i8mm")
    assert form_of(matrices) is PAIRS and form_of(targets.load("aarch64")) is FOURS
    for points in (1, 7, 49, 196):
        size = best_dot_tile(points, 96, 40, matrices)
        assert (size.points + size.points % 2) * size.vectors + 2 * size.vectors < 32


def test_elements_that_are_widened_are_not_shifted() -> None:
    assert (shifted(i8, RISCV), shifted(u8, RISCV)) == (0, 0)
