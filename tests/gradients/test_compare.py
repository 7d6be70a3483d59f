"""What differences say of a slope, and where they say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests import small_models
from tests.gradients.compare import compared, differences

X = {"x": np.array([0.3, -1.7])}


@pytest.mark.parametrize("type", [10, 16], ids=["f16", "bf16"])
def test_steps_of_types_of_few_bits_are_no_slopes(type: int) -> None:
    nodes = [small_models.node("Cast", "x", "few", to=type), small_models.node("Cast", "few", "y", to=1)]
    model = small_models.model("steps", nodes, [("x", (2,))], [("y", (2,))])
    found = compared(model, X, np.random.default_rng(0))
    assert not found.wrong and found.kinks == 2


@pytest.mark.parametrize("coarse", [False, True])
def test_what_moves_is_compared_in_any_type(coarse: bool) -> None:
    slopes = {"x": np.array([3.0, 4.0])}
    found = differences(lambda given: float(np.sum(3 * given["x"])), X, slopes, np.random.default_rng(0), coarse)
    assert found.checked == 2 and len(found.wrong) == 1


def test_what_stands_still_is_compared_where_nothing_is_rounded() -> None:
    found = differences(lambda given: 0.0, X, {"x": np.ones(2)}, np.random.default_rng(0))
    assert len(found.wrong) == 2
