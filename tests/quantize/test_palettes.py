"""The 16 values of a layer are the best ones, and those that are few already stay."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mccompile.quantize import palettes
from mccompile.quantize.palettes import palette_of, palettized


def error(weights: np.ndarray, palette: np.ndarray) -> int:
    return int((np.abs(weights[:, None].astype(np.int64) - palette).min(1) ** 2).sum())


def test_no_other_values_are_closer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palettes, "SIZE", 3)
    chance = np.random.default_rng(0)
    for _ in range(20):
        weights = chance.integers(-9, 10, 12).astype(np.int8)
        others = [np.array(found) for found in combinations(range(-9, 10), 3) if 0 in found or 0 not in weights]
        assert error(weights, palette_of(weights)) == min(error(weights, other) for other in others)


def test_few_values_stay_and_many_become_sixteen() -> None:
    chance = np.random.default_rng(1)
    few = chance.choice(np.arange(-128, 128, 17), (8, 4, 3, 3)).astype(np.int8)
    assert np.array_equal(palettized(few), few)
    many = chance.integers(-128, 128, (8, 4, 3, 3)).astype(np.int8)
    made = palettized(many)
    assert len(np.unique(made)) == 16 and made.dtype == np.int8 and np.array_equal(palettized(made), made)
    assert not made[many == 0].any()


def test_zeros_stay_zeros() -> None:
    weights = np.concatenate([np.zeros(3), np.arange(40, 127)]).astype(np.int8)
    assert not palettized(weights)[:3].any()
