"""Networks over signals at random become the same code as those over pictures of one row."""

from __future__ import annotations

import pytest

from benchmarks.signals import code_of, compiled
from tests import drawn_signals
from tests.signal_networks import Network


@pytest.mark.parametrize("network", list(drawn_signals.networks(1, 5)), ids=lambda network: network.name)
def test_signals_cost_no_more_than_pictures(network: Network) -> None:
    pictures, signals = (code_of(compiled(network, picture, "x86-64-v3")) for picture in (True, False))
    assert signals == pictures


def test_a_seed_draws_the_same_networks() -> None:
    first, again = ([n.model(False) for n in drawn_signals.networks(7, 4)] for _ in range(2))
    assert first == again
