"""What a core does at most is more than what a network makes of it, by every clock."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mccompile.measure.limits import Limits, measured_peak
from mccompile.targets import api


@pytest.mark.parametrize("name", ["generic", "native"])
def test_limits_of_this_machine(name: str) -> None:
    target = api.load(name)
    limits = Limits(target, clock=time.thread_time)
    assert limits.floats() > 1e8 and limits.read(np.ones(1 << 24, np.uint8)) > 1e8
    assert (limits.bytes() > 1e8) == ("dot" in target.isas)
    assert measured_peak(target) > 0.2


def test_products_of_bytes_are_computed_each_time() -> None:
    """Were they taken out of their loop, it would add faster than the machine multiplies."""
    target = api.load("native")
    if "dot" not in target.isas:
        pytest.skip("the machine has no dot products")
    limits = Limits(target, clock=time.thread_time)
    floats, found = (max(rate() for _ in range(10)) for rate in (limits.floats, limits.bytes))
    assert found < 5 * floats  # four bytes in each lane
