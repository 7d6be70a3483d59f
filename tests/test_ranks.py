"""Counts that are the same but for a few branches share a rank."""

from __future__ import annotations

from benchmarks.ranks import alike
from mccompile.measure.tuning.tune import spearman


def test_the_same_layer_twice_shares_a_rank() -> None:
    counts = [17_638, 79_084, 17_636, 1_468, 17_638]
    assert alike(counts) == [17_636, 79_084, 17_636, 1_468, 17_636]
    found = spearman([5.0, 9.0, 5.0, 1.0, 5.0], alike(counts))
    assert found is not None and found > 0.999


def test_steps_that_differ_by_more_keep_their_order() -> None:
    assert alike([1030, 1000, 1015]) == [1030, 1000, 1015]
