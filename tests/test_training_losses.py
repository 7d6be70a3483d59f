"""`benchmarks.training_losses`: losses are called wrong where no rounding of PyTorch's leads as far."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.training_losses import MOST_OFF, compared

RIGHT = np.array([3.0, 2.0, 1.0])
LATE = np.array([0.0, 0.0, 1e-3])  # a Relu takes the other side


@pytest.mark.parametrize(
    ("off", "torchs", "moved", "told"),
    [
        (1e-6, 0.0, [], ""),
        (1e-3, 1e-3 / MOST_OFF, [], "rounding"),
        (1e-3, 1e-7, [1e-7, 1e-3, 1.0], "moved 2 times by 1.0e-03"),
        (1e-3, 1e-7, [1e-7, 1e-7], "WRONG"),
        (1e-2, 1e-7, [1e-3], "WRONG"),
    ],
)
def test_losses_are_wrong_where_rounding_leads_nowhere_near(
    off: float, torchs: float, moved: list[float], told: str
) -> None:
    mine, theirs, *further = (RIGHT * (1 + LATE / 1e-3 * each) for each in (off, torchs, *moved))
    said = compared(mine, theirs, itertools.cycle(RIGHT.tolist()).__next__, further)
    assert told in said
    assert bool(said) == bool(told)
