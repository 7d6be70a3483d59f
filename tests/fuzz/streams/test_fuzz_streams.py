"""The first random networks, streamed."""

from __future__ import annotations

import pytest

from tests.fuzz.streams.__main__ import BAD, verdict


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_networks(first: int) -> None:
    for seed in range(first, first + 10):
        found, why = verdict(seed)
        assert found not in BAD, f"network {seed}: {why}"
