"""cap_weights: weights get no larger for the sake of time than runs get faster, and no call is slower than need be."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mccompile.driver import Options, compile
from mccompile.passes.program import cap_weights
from mccompile.passes.program.cap_weights import Cap, KernelOption
from tests.small_models import save
from tests.small_quantized import convolutions

CONSTANTS = 1 << 20


def drawn(seed: int) -> list[list[KernelOption]]:
    """Up to three kernels for each call, faster ones with more bytes, and calls of which nothing is known."""
    chance = np.random.default_rng(seed)
    among = []
    for count in chance.integers(0, 4, 5):
        times, sizes = np.sort(chance.integers(1, 10**6, count)), np.sort(chance.integers(0, CONSTANTS, count))
        among.append(
            [KernelOption(f"k{n}", float(t), int(b)) for n, (t, b) in enumerate(zip(times, sizes[::-1], strict=True))]
        )
    return among


@pytest.mark.parametrize("seed", range(20))
def test_what_is_chosen_fits_and_no_call_can_be_faster(seed: int) -> None:
    cap = Cap(drawn(seed), CONSTANTS)
    picks = cap.picks()
    assert cap.fits(picks)
    for n, pick in enumerate(picks):
        assert not any(cap.fits([*picks[:n], faster, *picks[n + 1 :]]) for faster in range(pick))
    all_of_them = list(product(*(range(max(1, len(ways))) for ways in cap.among)))
    best = min(cap.time(each) for each in all_of_them if cap.fits(each))
    assert cap.time(picks) <= 1.25 * best


def test_weights_that_gain_as_much_as_they_take_are_kept() -> None:
    twice = [[KernelOption("fast", 100.0, CONSTANTS), KernelOption("small", 199.0, 0)]]
    assert Cap(twice, CONSTANTS).picks() == [1]
    assert Cap([[KernelOption("fast", 100.0, CONSTANTS), KernelOption("small", 200.0, 0)]], CONSTANTS).picks() == [0]
    assert Cap([[KernelOption("fast", 199.0, CONSTANTS // 2), KernelOption("small", 200.0, 0)]], CONSTANTS).picks() == [
        0
    ]


def weights(model: Path, **options: object) -> int:
    return compile(model, Options(target="cortex-m4", **options)).weights_bytes  # type: ignore[arg-type]


def test_weights_of_a_network_are_capped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save(convolutions(12, [(24, 3, 1), (24, 3, 1), (24, 3, 1)]), tmp_path)
    free = weights(model, prefer="time")
    monkeypatch.setattr(cap_weights, "FREE", 1 << 10)
    capped = weights(model, prefer="time")
    smallest = weights(model, prefer="balanced")
    assert weights(model, prefer="time", without=frozenset({"cap_weights"})) == free > 2 * smallest
    assert smallest <= capped <= 1.6 * smallest
