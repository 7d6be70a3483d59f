"""No run takes more instructions than the bound of its machine code, nor much fewer."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from embedded.bounds import compared
from embedded.models import path_of
from tests import small_models


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *itertools.product(["separable_int8", "residual_int8"], ["cortex-m3", "cortex-m4", "cortex-m33"]),
        *itertools.product(["mlp", "conv"], ["cortex-m4", "cortex-m55"]),
        ("separable_int8", "cortex-m55"),
    ],
)
def test_bounds_hold_and_are_close(name: str, target: str, tmp_path: Path) -> None:
    found = compared(path_of(name, tmp_path), target)
    assert found.bound.instructions is not None, found.bound.without
    assert found.count <= found.bound.instructions <= 1.1 * found.count


def test_what_is_computed_again_for_numbers_that_are_not_finite_counts(tmp_path: Path) -> None:
    """Depthwise products of floats on a Cortex-M55."""
    found = compared(path_of("digits", tmp_path), "cortex-m55", inputs=8)
    assert found.bound.instructions is not None, found.bound.without
    assert found.count <= found.bound.instructions <= 1.1 * found.count


@pytest.mark.parametrize("op", ["Sin", "Cos"])
def test_waves_take_the_same_for_all_numbers(op: str, tmp_path: Path) -> None:
    made = small_models.model("wave", [small_models.node(op, "x", "y")], [("x", [64])], [("y", [64])])
    found = compared(small_models.save(made, tmp_path), "cortex-m4")
    assert found.bound.instructions == found.count


@pytest.mark.parametrize("name", ["quantized", "mlp"])
def test_products_of_a_library_in_assembly_have_a_bound(name: str, tmp_path: Path) -> None:
    """Their loops end by data, where a factor is subnormal."""
    found = compared(path_of(name, tmp_path), "cortex-m3")
    assert found.bound.instructions is not None, found.bound.without
    assert found.count <= found.bound.instructions


def test_floats_without_an_fpu_have_the_bound_of_their_dearest_numbers(tmp_path: Path) -> None:
    found = compared(path_of("mlp", tmp_path), "cortex-m0")
    assert found.bound.instructions is not None, found.bound.without
    assert found.count <= found.bound.instructions <= 2 * found.count
